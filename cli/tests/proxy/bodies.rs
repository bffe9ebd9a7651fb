//! Requests' bodies on their way to the engine: whole before it hears of them when they are small, at a least rate, and with
//! everything that came.

use std::time::{Duration, SystemTime};

use tokio::io::AsyncReadExt;
use tokio::time::sleep;

use super::support::{Client, Engine, Peer, Running, Seen, chunk, config, plain, soon, start};

/// How long a client may be silent here, and the grace before the rate counts.
const GRACE: Duration = Duration::from_millis(300);
const STEP: Duration = Duration::from_millis(20);

/// Reads a body of `length` bytes of which some came with the head, then answers with how many came.
async fn swallow(mut peer: Peer, head: &str, length: usize) -> Option<Peer> {
    let (_, body) = head.split_once("\r\n\r\n")?;
    let (mut taken, mut buffer) = (body.len(), vec![0; 64 * 1024]);
    while taken < length {
        match peer.socket.read(&mut buffer).await {
            Ok(0) | Err(_) => {
                peer.until_gone().await;
                return None;
            }
            Ok(more) => taken += more,
        }
    }
    peer.send(plain("text/plain", &taken.to_string())).await;
    Some(peer)
}

fn length_of(head: &str) -> usize {
    let head = head.to_ascii_lowercase();
    let length = head.split_once("content-length: ").and_then(|(_, rest)| rest.split_once("\r\n"));
    length.map_or(0, |(length, _)| length.parse().expect("a length"))
}

async fn ready(rate: Option<usize>) -> (Engine, Running) {
    let engine = Engine::start(|peer, head| async move {
        let length = length_of(&head);
        swallow(peer, &head, length).await
    })
    .await;
    let mut config = config(engine.address);
    (config.limits.header_timeout, config.limits.body_rate) = (GRACE, rate);
    (engine, start(config).await)
}

async fn post(proxy: &Running, length: usize) -> Client {
    let mut client = proxy.connect().await;
    client.send(format!("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n\r\n")).await;
    client
}

/// Sends `piece` every `STEP` until the proxy answers or closes.
async fn drip(client: &mut Client, piece: &[u8]) -> Duration {
    let began = SystemTime::now();
    let dripping = async {
        let mut byte = [0];
        loop {
            client.send(piece).await;
            tokio::select! {
                _ = client.socket.peek(&mut byte) => return,
                () = sleep(STEP) => {}
            }
        }
    };
    soon("the drip is ended", dripping).await;
    began.elapsed().unwrap_or_default()
}

/// Two bytes a second were served for ever, and held a connection to the engine from the first.
#[tokio::test]
async fn a_body_that_drips_is_ended_and_the_engine_never_hears_of_it() {
    let (mut engine, proxy) = ready(Some(1_000)).await;
    for head in ["content-length: 10000", "transfer-encoding: chunked"] {
        let mut client = proxy.connect().await;
        client.send(format!("POST / HTTP/1.1\r\nhost: a\r\n{head}\r\n\r\n")).await;
        let piece = if head.starts_with("content") { "x".to_owned() } else { chunk("x") };
        let took = drip(&mut client, piece.as_bytes()).await;
        assert!(took >= GRACE * 9 / 10 && took < 5 * GRACE, "{took:?}");
        let answer = client.answer().await;
        assert_eq!((answer.status, answer.field("connection")), (408, Some("close")));
        assert!(answer.text().contains("slow_request_body"), "{answer:?}");
    }
    assert!(engine.seen.try_recv().is_err(), "no connection to the engine");
    proxy.is_empty().await;
}

/// One that is longer than what is gathered reaches the engine, which is rid of it as soon.
#[tokio::test]
async fn a_long_body_that_drips_is_ended_at_the_engine_too() {
    let (mut engine, proxy) = ready(Some(1_000_000)).await;
    let mut client = post(&proxy, 1_000_000).await;
    client.send(vec![b'x'; 100_000]).await;
    engine.request().await;
    let took = drip(&mut client, b"x").await;
    assert!(took < 5 * GRACE, "{took:?}");
    assert_eq!(client.answer().await.status, 408);
    engine.gone().await;
    proxy.is_empty().await;
}

#[tokio::test]
async fn a_slow_body_above_the_rate_is_served_and_any_without_one() {
    for (rate, length) in [(Some(1_000), 20_000), (None, 40)] {
        let (mut engine, proxy) = ready(rate).await;
        let mut client = post(&proxy, length).await;
        let pieces = 40;
        for _ in 0..pieces {
            client.send(vec![b'x'; length / pieces]).await;
            sleep(STEP).await; // 0.8 s in all, far beyond the grace
        }
        let answer = client.answer().await;
        assert_eq!((answer.status, answer.text()), (200, length.to_string().as_str()));
        assert!(engine.request().await.starts_with("POST /"));
    }
}

/// The rate is the client's: what waits for an engine that does not read is not held against it.
#[tokio::test]
async fn an_engine_that_reads_late_costs_the_client_nothing() {
    const LENGTH: usize = 16 << 20;
    let engine = Engine::start(|peer, head| async move {
        sleep(4 * GRACE).await;
        swallow(peer, &head, LENGTH).await
    })
    .await;
    let mut config = config(engine.address);
    (config.limits.header_timeout, config.limits.body_rate) = (GRACE, Some(1_000_000_000));
    let proxy = start(config).await;
    let mut client = post(&proxy, LENGTH).await;
    client.send(vec![b'x'; LENGTH]).await;
    let answer = client.answer().await;
    assert_eq!((answer.status, answer.text()), (200, LENGTH.to_string().as_str()));
}

#[tokio::test]
async fn a_small_body_is_whole_before_the_engine_hears_of_it() {
    let (mut engine, proxy) = ready(None).await;
    let mut client = post(&proxy, 10).await;
    for _ in 0..9 {
        client.send("x").await;
        sleep(STEP).await;
        assert!(engine.seen.try_recv().is_err(), "a connection before the body is whole");
    }
    client.send("x").await;
    assert_eq!(client.answer().await.text(), "10");
    // A client that leaves before that was never there for the engine.
    engine.request().await;
    let mut client = post(&proxy, 10).await;
    client.send("xxxxx").await;
    drop(client);
    proxy.is_empty().await;
    assert!(engine.seen.try_recv().is_err(), "half a request");
}

#[tokio::test]
async fn a_long_body_goes_on_before_it_is_whole() {
    let (mut engine, proxy) = ready(None).await;
    let mut client = post(&proxy, 200_000).await;
    client.send(vec![b'x'; 100_000]).await;
    assert!(engine.request().await.starts_with("POST /"), "half a body is enough");
    client.send(vec![b'x'; 100_000]).await;
    assert_eq!(client.answer().await.text(), "200000");
}

/// What was gathered goes on as it came: chunked stays chunked, with its trailers.
#[tokio::test]
async fn a_gathered_body_keeps_its_framing_and_its_trailers() {
    let mut engine = Engine::start(|mut peer, mut head| async move {
        let mut buffer = [0; 1_024];
        while !head.ends_with("\r\n\r\n") || head.matches("\r\n\r\n").count() < 2 {
            let length = peer.socket.read(&mut buffer).await.ok().filter(|length| *length > 0)?;
            head.push_str(std::str::from_utf8(&buffer[..length]).expect("text"));
        }
        peer.send(plain("text/plain", head.split_once("\r\n\r\n").expect("a body").1)).await;
        Some(peer)
    })
    .await;
    let proxy = start(config(engine.address)).await;
    let mut client = proxy.connect().await;
    client.send("POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n").await;
    for piece in [chunk("hello"), chunk(" world"), "0\r\nx-sum: 7\r\n\r\n".to_owned()] {
        client.send(piece).await;
        sleep(STEP).await;
    }
    let answer = client.answer().await;
    assert!(engine.request().await.to_ascii_lowercase().contains("transfer-encoding: chunked"));
    assert_eq!(answer.text().to_ascii_lowercase(), "b\r\nhello world\r\n0\r\nx-sum: 7\r\n\r\n");
}

/// The client is asked for its body once, and not at all when the answer needs none of it.
#[tokio::test]
async fn an_expected_continue_comes_once_and_only_for_a_body_that_is_wanted() {
    let (_engine, proxy) = ready(None).await;
    let mut client = proxy.connect().await;
    for _ in 0..2 {
        client.send("POST / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 4\r\n\r\n").await;
        assert_eq!(client.head().await.status, 100);
        client.send("body").await;
        let mut answer = client.head().await;
        client.body(&mut answer).await;
        assert_eq!((answer.status, answer.text()), (200, "4"));
    }
    client.send("POST / HTTP/1.1\r\nhost: a\r\nhost: b\r\nexpect: 100-continue\r\ncontent-length: 4\r\n\r\n").await;
    assert_eq!(client.head().await.status, 400);
}

/// A connection that the engine has closed meanwhile costs no request, however its body came.
#[tokio::test]
async fn a_gathered_body_is_sent_again_when_no_byte_of_it_was_written() {
    let mut engine = Engine::start(|mut peer, head| async move {
        let length = length_of(&head);
        peer = swallow(peer, &head, length).await?;
        peer.reset();
        None
    })
    .await;
    let proxy = start(config(engine.address)).await;
    for _ in 0..20 {
        let mut client = post(&proxy, 10).await;
        for _ in 0..2 {
            client.send("xxxxx").await;
            sleep(Duration::from_millis(2)).await;
        }
        assert_eq!(client.answer().await.text(), "10");
    }
    let mut requests = 0;
    while let Ok(seen) = engine.seen.try_recv() {
        requests += usize::from(matches!(seen, Seen::Request(_)));
    }
    assert_eq!(requests, 20, "each once");
}
