//! Live streams that have a client's HTTP/1.1 connection for themselves: what comes before and behind them on the connection,
//! slow readers, TLS.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{sleep, timeout};

use super::support::{Answer, EVENTS, End, Engine, chunk, config, engine_of, plain, start};
use super::tls::{connect, file};

/// An engine that streams two events at `/stream`, half of an answer at `/broken`, and says the path anywhere else.
async fn engine() -> Engine {
    Engine::start(|mut peer, head| async move {
        let path = head.split(' ').nth(1).expect("a path").to_owned();
        if path != "/stream" && path != "/broken" {
            peer.send(plain("text/plain", &path)).await;
            return Some(peer);
        }
        peer.send(EVENTS.to_owned() + &chunk("data: 1\n\n")).await;
        sleep(Duration::from_millis(5)).await; // so that the connection changes hands in the middle
        if path == "/broken" {
            return None;
        }
        peer.send(chunk("data: 2\n\n") + "0\r\n\r\n").await;
        Some(peer)
    })
    .await
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n")
}

fn told(answer: &Answer) -> (u16, String, End) {
    (answer.status, answer.text().replace("\n\ndata", "\n|data").replace('\n', ""), answer.end)
}

#[tokio::test]
async fn a_connection_serves_on_behind_a_stream_whether_its_requests_wait_or_are_pipelined() {
    let engine = engine().await;
    let proxy = start(config(engine.address)).await;
    let paths = ["/a", "/stream", "/stream", "/b", "/stream", "/c"];
    let expected = |path: &str| match path {
        "/stream" => "data: 1|data: 2".to_owned(),
        path => path.to_owned(),
    };
    for is_pipelined in [false, true] {
        let mut client = proxy.connect().await;
        if is_pipelined {
            client.send(paths.map(get).concat()).await;
        }
        for path in paths {
            if !is_pipelined {
                client.send(get(path)).await;
            }
            assert_eq!(told(&client.answer().await), (200, expected(path), End::Whole), "{path} {is_pipelined}");
        }
    }
    proxy.is_empty().await;
}

/// What follows a stream is read with the same care as a first request.
#[tokio::test]
async fn a_contradiction_pipelined_behind_a_stream_is_refused() {
    let engine = engine().await;
    let proxy = start(config(engine.address)).await;
    for wrong in [
        "content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        "content-length: 5\r\ncontent-length: 5\r\n\r\nhello",
    ] {
        let mut client = proxy.connect().await;
        client.send(format!("{}POST /a HTTP/1.1\r\nhost: a\r\n{wrong}", get("/stream"))).await;
        assert_eq!(told(&client.answer().await), (200, "data: 1|data: 2".to_owned(), End::Whole));
        assert_eq!(client.answer().await.status, 400, "{wrong}");
    }
    // Nor is a good one taken for a bad one, because its head was seen twice.
    let mut client = proxy.connect().await;
    client.send(format!("{}POST /a HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhello", get("/stream"))).await;
    client.answer().await;
    assert_eq!(told(&client.answer().await), (200, "/a".to_owned(), End::Whole));
}

#[tokio::test]
async fn a_connection_is_closed_behind_a_stream_whose_client_asked_for_that() {
    let engine = engine().await;
    let proxy = start(config(engine.address)).await;
    let mut client = proxy.connect().await;
    client.send("GET /stream HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await;
    let answer = client.answer().await;
    assert_eq!(told(&answer), (200, "data: 1|data: 2".to_owned(), End::Whole));
    assert_eq!((answer.field("connection"), client.until(b"x").await), (Some("close"), Err(End::Closed)));
    proxy.is_empty().await;
}

#[tokio::test]
async fn a_stream_that_breaks_off_takes_its_connection_along() {
    let engine = engine().await;
    let proxy = start(config(engine.address)).await;
    let mut client = proxy.connect().await;
    client.send(get("/broken") + &get("/a")).await;
    let answer = client.answer().await;
    assert!(answer.text().starts_with("data: 1\n\n"), "{answer:?}");
    assert_ne!(answer.end, End::Whole, "nor is the next request answered");
    proxy.is_empty().await;
}

/// What the socket does not take is kept, and nothing is asked of the engine until it is taken.
#[tokio::test]
async fn a_slow_reader_gets_every_byte_in_order() {
    const EVENTS_SENT: usize = 3_000;
    let event = |number: usize| format!("data: {number:05} {}\n\n", "x".repeat(5_000));
    let engine = Engine::start(move |mut peer, _| async move {
        peer.send(EVENTS).await;
        for number in 0..EVENTS_SENT {
            peer.send(chunk(&event(number))).await;
        }
        peer.send("0\r\n\r\n").await;
        Some(peer)
    })
    .await;
    let mut config = config(engine.address);
    engine_of(&mut config).heart.interval = Duration::from_secs(60);
    let proxy = start(config).await;
    let mut client = proxy.connect().await;
    client.send(get("/")).await;
    client.head().await;
    sleep(Duration::from_millis(300)).await; // the sockets fill up
    let mut answer = Answer { body: Vec::new(), ..fresh() };
    client.body(&mut answer).await;
    assert_eq!(answer.end, End::Whole);
    let expected: String = (0..EVENTS_SENT).map(event).collect();
    assert!(answer.text() == expected, "{} bytes of {}", answer.body.len(), expected.len());
    drop(client);
    proxy.is_empty().await;
}

/// An answer in chunks of which only the head was read.
fn fresh() -> Answer {
    let head = EVENTS.to_owned();
    Answer { status: 200, head, body: Vec::new(), trailers: String::new(), end: End::Whole }
}

#[tokio::test]
async fn over_tls_a_stream_passes_the_connection_serves_on_and_a_client_that_leaves_is_noticed() {
    let mut engine = Engine::start(|mut peer, head| async move {
        peer.send(EVENTS.to_owned() + &chunk("data: 1\n\n")).await;
        if head.starts_with("GET /silent") {
            peer.until_gone().await;
            return None;
        }
        peer.send("0\r\n\r\n").await;
        Some(peer)
    })
    .await;
    let mut config = config(engine.address);
    engine_of(&mut config).heart.interval = Duration::from_secs(60);
    (config.tls_cert, config.tls_key) = (Some(file("certificate.pem")), Some(file("key.pem")));
    let proxy = start(config).await;
    let mut client = connect(proxy.address, "http/1.1").await;
    for (path, end) in [("/", &b"0\r\n\r\n"[..]), ("/", b"0\r\n\r\n"), ("/silent", b"data: 1\n\n\r\n")] {
        client.write_all(get(path).as_bytes()).await.expect("the proxy reads");
        let mut bytes = Vec::new();
        while !bytes.ends_with(end) {
            let read = timeout(Duration::from_secs(10), client.read_buf(&mut bytes)).await;
            assert_ne!(read.expect("in time").expect("a whole answer"), 0, "{path}");
        }
        assert!(bytes.starts_with(b"HTTP/1.1 200 OK\r\n"), "{path}");
    }
    client.shutdown().await.expect("a farewell"); // an alert, which is a byte to the socket and an end to TLS
    engine.gone().await;
    proxy.is_empty().await;
}
