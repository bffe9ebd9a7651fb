//! The proxy under hostile input: every attempt gets a clear answer, the next request works, counts return to zero.

use std::time::{Duration, SystemTime};

use futures::future::join_all;
use tokio::io::AsyncReadExt;
use tokio::time::sleep;

use super::support::{Client, EVENTS, End, Engine, INTERVAL, Running, chunk, config, engine_of, plain, soon, start};

async fn ready() -> (Engine, Running) {
    let engine = Engine::answering(plain("text/plain", "fine")).await;
    let proxy = start(config(engine.address)).await;
    (engine, proxy)
}

/// Sends `request` alone on a connection and returns the status; the proxy must serve another client after it.
async fn status_of(proxy: &Running, request: impl AsRef<[u8]>) -> u16 {
    let mut client = proxy.connect().await;
    client.send(request).await;
    let answer = client.answer().await;
    drop(client);
    assert_eq!(proxy.connect().await.get("/next").await.text(), "fine");
    answer.status
}

#[tokio::test]
async fn two_ways_to_read_one_bodys_end_are_refused() {
    let (mut engine, proxy) = ready().await;
    for fields in [
        "content-length: 5\r\ntransfer-encoding: chunked",
        "transfer-encoding: chunked\r\ncontent-length: 5",
        "Content-Length: 5\r\nContent-Length: 5",
        "content-length: 5\r\ncontent-length: 6",
        "content-length: 5, 6",
        "content-length: +5",
        "content-length: 0x5",
        "content-length: -1",
        "content-length : 5",
        "transfer-encoding: chunked\r\n  , identity",
        "x-folded: a\r\n b",
        "transfer-encoding: xchunked",
        "transfer-encoding: chunked, identity",
        "transfer-encoding : chunked",
        "content-length: 18446744073709551616",
    ] {
        let request = format!(
            "POST /smuggled HTTP/1.1\r\nhost: a\r\n{fields}\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nhost: a\r\n\r\n"
        );
        let status = status_of(&proxy, request).await;
        assert!(matches!(status, 400 | 501), "{fields}: {status}");
        assert!(engine.request().await.starts_with("GET /next"), "{fields}: reached the engine");
    }
    assert_eq!(
        status_of(&proxy, "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n").await,
        501
    );
    assert_eq!(
        status_of(&proxy, "POST / HTTP/1.0\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n").await,
        400
    );
    proxy.is_empty().await;
}

#[tokio::test]
async fn bad_chunks_are_a_400_and_never_reach_the_engine_as_a_whole_request() {
    let engine = Engine::start(|peer, _| async move {
        peer.until_gone().await;
        None
    })
    .await;
    let proxy = start(config(engine.address)).await;
    for body in [
        "zz\r\nhello\r\n0\r\n\r\n",
        "-1\r\n\r\n",
        "5\r\nhelloX\r\n0\r\n\r\n",
        "ffffffffffffffffff\r\n",
        "5;\nx\r\nhello\r\n0\r\n\r\n",
    ] {
        let mut client = proxy.connect().await;
        client.send(format!("POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n{body}")).await;
        let answer = client.answer().await;
        assert_eq!((answer.status, answer.field("connection")), (400, Some("close")), "{body:?}");
        assert!(answer.text().contains("broken_request_body"), "{answer:?}");
    }
    proxy.is_empty().await;
}

#[tokio::test]
async fn malformed_heads_are_told_so() {
    let (_engine, proxy) = ready().await;
    for (request, expected) in [
        ("GET / HTTP/1.1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nhost: a b\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nhost: a\r\nno-colon\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nhost: a\r\nx: a\0b\r\n\r\n", 400),
        ("GET / HTTP/9.9\r\nhost: a\r\n\r\n", 400),
        ("GET  / HTTP/1.1\r\nhost: a\r\n\r\n", 400),
        ("\u{16}\u{3}\u{1} a TLS client \r\n\r\n", 400),
        ("CONNECT a:1 HTTP/1.1\r\nhost: a\r\n\r\n", 405),
        ("TRACE / HTTP/1.1\r\nhost: a\r\n\r\n", 405),
        ("POST / HTTP/1.1\r\nhost: a\r\nexpect: a miracle\r\ncontent-length: 1\r\n\r\n", 417),
    ] {
        assert_eq!(status_of(&proxy, request).await, expected, "{request:?}");
    }
    proxy.is_empty().await;
}

/// The answer must arrive though the client is still sending: a connection closed on unread bytes is reset.
#[tokio::test]
async fn huge_heads_are_told_so_while_they_are_still_being_sent() {
    let (_engine, proxy) = ready().await;
    let many: String = (0..500).map(|n| format!("x-{n}: 1\r\n")).collect();
    let long = format!("x: {}\r\n", "a".repeat(1 << 20));
    for fields in [many, long] {
        let status = status_of(&proxy, format!("GET / HTTP/1.1\r\nhost: a\r\n{fields}\r\n")).await;
        assert_eq!(status, 431);
    }
    let path = format!("GET /{} HTTP/1.1\r\nhost: a\r\n\r\n", "a".repeat(100_000));
    assert!(matches!(status_of(&proxy, path).await, 414 | 431));
    proxy.is_empty().await;
}

/// A bound of 8 KiB let 34,000 bytes through in pieces of 1,000, and the default 70,000 at once.
#[tokio::test]
async fn heads_are_bounded_to_the_byte_however_they_come() {
    let engine = Engine::answering(plain("text/plain", "fine")).await;
    for bound in [8 * 1_024, 64 * 1_024] {
        let mut config = config(engine.address);
        config.limits.header_bytes = bound;
        let proxy = start(config).await;
        for (length, expected) in [(bound, 200), (bound + 1, 431), (bound + 6_000, 431), (bound + 26_000, 431)] {
            let head = |x: usize| format!("GET / HTTP/1.1\r\nhost: a\r\nx: {}\r\n\r\n", "a".repeat(x));
            let head = head(length - head(0).len());
            for step in [bound / 100, 1_000, 4_096, usize::MAX] {
                let mut client = proxy.connect().await;
                // In pieces up to just before the bound, and there all that is left.
                let (first, rest) = head.as_bytes().split_at(bound - 100);
                for piece in first.chunks(step).chain([rest]) {
                    // It may be refused before all of it is sent.
                    let _ = tokio::io::AsyncWriteExt::write_all(&mut client.socket, piece).await;
                    sleep(Duration::from_millis(1)).await;
                }
                assert_eq!(client.answer().await.status, expected, "{length} of {bound} in pieces of {step}");
            }
        }
        // Also behind another head, and the body behind a head is none of it.
        let body = "b".repeat(2 * bound);
        let next = format!("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        let mut client = proxy.connect().await;
        client.send(format!("{next}GET / HTTP/1.1\r\nhost: a\r\nx: {}\r\n\r\n", "a".repeat(bound))).await;
        assert_eq!(client.answer().await.status, 200);
        assert_eq!(client.answer().await.status, 431);
    }
}

#[tokio::test]
async fn heads_in_many_segments_are_one_head() {
    let (_engine, proxy) = ready().await;
    let mut client = proxy.connect().await;
    for piece in "GET /slow HTTP/1.1\r\nhost: a\r\nx-split: yes\r\n\r\n".as_bytes().chunks(5) {
        client.send(piece).await;
        sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(client.answer().await.text(), "fine");
    // Also when the first segment is shorter than what tells HTTP/2.
    let mut client = proxy.connect().await;
    client.send("P").await;
    sleep(Duration::from_millis(10)).await;
    client.send("OST / HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n").await;
    assert_eq!(client.answer().await.text(), "fine");
}

#[tokio::test]
async fn slow_writers_of_heads_are_let_go() {
    let engine = Engine::answering(plain("text/plain", "fine")).await;
    let mut config = config(engine.address);
    config.limits.header_timeout = Duration::from_millis(100);
    let proxy = start(config).await;
    for said in ["", "PR", "GET / HTTP/1.1\r\nhost: a\r\n"] {
        let mut client = proxy.connect().await;
        client.send(said).await;
        let began = SystemTime::now();
        let mut rest = Vec::new();
        let _ = soon("the proxy lets go", client.socket.read_to_end(&mut rest)).await;
        assert!(began.elapsed().unwrap_or_default() < Duration::from_secs(2), "{said:?}");
    }
    proxy.is_empty().await;
}

#[tokio::test]
async fn slow_writers_of_bodies_are_told_so() {
    let engine = Engine::start(|peer, _| async move {
        peer.until_gone().await;
        None
    })
    .await;
    let mut config = config(engine.address);
    config.limits.header_timeout = Duration::from_millis(100);
    let proxy = start(config).await;
    let mut client = proxy.connect().await;
    client.send("POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\n{").await;
    let answer = client.answer().await;
    assert_eq!((answer.status, answer.field("connection")), (408, Some("close")));
    drop(client);
    proxy.is_empty().await;
}

/// Case 4 in the proxy: one client that reads nothing stalls no other, and is let go.
#[tokio::test]
async fn a_slow_reader_stalls_nobody_and_is_let_go() {
    let engine = Engine::start(|mut peer, head| async move {
        peer.send(EVENTS).await;
        if head.starts_with("GET /flood") {
            let event = chunk(&format!("data: {}\n\n", "x".repeat(8_000)));
            while tokio::io::AsyncWriteExt::write_all(&mut peer.socket, event.as_bytes()).await.is_ok() {}
            return None;
        }
        peer.send(chunk("data: 1\n\n") + "0\r\n\r\n").await;
        Some(peer)
    })
    .await;
    let mut config = config(engine.address);
    config.limits.stalled_after = Duration::from_secs(1);
    let proxy = start(config).await;
    let mut frozen = proxy.connect().await;
    frozen.send("GET /flood HTTP/1.1\r\nhost: a\r\n\r\n").await;
    sleep(Duration::from_millis(50)).await;
    let mut other = proxy.connect().await;
    assert_eq!(soon("another client", other.get("/v1/events")).await.text(), "data: 1\n\n");
    drop(other);
    proxy.is_empty().await; // the frozen client still holds its end
    let held = proxy.handle.state();
    assert_eq!(held.connections, 0, "{held:?}");
    drop(frozen);
}

#[tokio::test]
async fn connections_are_capped_in_all_and_for_one_address() {
    let engine = Engine::answering(plain("text/plain", "fine")).await;
    for (all, of_one) in [(3, 100), (100, 3)] {
        let mut config = config(engine.address);
        (config.limits.connections, config.limits.connections_per_address) = (all, of_one);
        let proxy = start(config).await;
        let mut clients = Vec::new();
        for _ in 0..3 {
            let mut client = proxy.connect().await;
            assert_eq!(client.get("/").await.status, 200);
            clients.push(client);
        }
        let mut refused = proxy.connect().await;
        let answer = refused.answer().await;
        assert_eq!((answer.status, answer.field("retry-after")), (503, Some("1")));
        drop((clients, refused));
        proxy.is_empty().await;
        assert_eq!(proxy.connect().await.get("/").await.status, 200);
    }
}

/// A thousand, so that the suite stays quick; `tests/real/hostile.py` does ten thousand.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_opens_and_aborts_leave_nothing() {
    let engine = Engine::start(|mut peer, head| async move {
        if head.starts_with("GET /late") {
            peer.until_gone().await;
            return None;
        }
        peer.send(EVENTS.to_owned() + &chunk("data: 1\n\n")).await;
        peer.until_gone().await;
        None
    })
    .await;
    let mut config = config(engine.address);
    engine_of(&mut config).heart.interval = INTERVAL;
    let proxy = start(config).await;
    for round in 0..10 {
        join_all((0..100).map(|n| {
            let address = proxy.address;
            async move {
                let mut client = Client::to(address).await;
                match n % 5 {
                    0 => {}
                    1 => client.send("GET /half HTT").await,
                    2 => client.send("GET /late HTTP/1.1\r\nhost: a\r\n\r\n").await,
                    3 => client.send("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\nhalf").await,
                    _ => {
                        client.send("GET /v1/events HTTP/1.1\r\nhost: a\r\n\r\n").await;
                        client.until(b"data: 1\n\n").await.expect("an event");
                    }
                }
                if n % 2 == 0 {
                    socket2::SockRef::from(&client.socket).set_linger(Some(Duration::ZERO)).expect("a socket");
                }
            }
        }))
        .await;
        assert!(proxy.task.len() == 1, "round {round}");
    }
    proxy.is_empty().await;
    let mut client = proxy.connect().await;
    client.send("GET /v1/events HTTP/1.1\r\nhost: a\r\n\r\n").await;
    assert_eq!(client.head().await.status, 200);
    assert_ne!(client.until(b"data: 1\n\n").await, Err(End::Closed));
}
