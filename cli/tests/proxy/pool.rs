//! Connections to the engine: reused while they are fresh, never used when they are stale, one request sent once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::time::{sleep, timeout};

use super::support::{Engine, Seen, config, engine_of, plain, start};

/// What an engine does with an idle connection: 5 s in LMDeploy and vLLM, scaled down.
const SERVER_KEEP_ALIVE: Duration = Duration::from_millis(250);

/// An engine that closes a connection that has been idle for too long.
async fn impatient() -> Engine {
    Engine::start(|mut peer, _| async move {
        peer.send(plain("text/plain", "ok")).await;
        let mut byte = [0; 1];
        match timeout(SERVER_KEEP_ALIVE, peer.socket.peek(&mut byte)).await {
            Ok(Ok(1..)) => Some(peer),
            _ => None,
        }
    })
    .await
}

fn accepted(engine: &mut Engine) -> usize {
    let mut accepted = 0;
    while let Ok(seen) = engine.seen.try_recv() {
        accepted += usize::from(matches!(seen, Seen::Accepted));
    }
    accepted
}

/// Case 38: the engine closes idle connections after 5 s, and a request after 6 s was a 502.
#[tokio::test]
async fn a_gap_longer_than_the_engines_patience_is_no_502() {
    let mut engine = impatient().await;
    let mut config = config(engine.address);
    engine_of(&mut config).pool_idle = SERVER_KEEP_ALIVE * 4 / 5;
    let proxy = start(config).await;
    let mut client = proxy.connect().await;
    for gap in [SERVER_KEEP_ALIVE * 6 / 5, SERVER_KEEP_ALIVE * 9 / 10, Duration::ZERO, SERVER_KEEP_ALIVE * 6 / 5] {
        let mut post = "POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n{}".to_owned();
        client.send(std::mem::take(&mut post)).await;
        let answer = client.answer().await;
        assert_eq!(answer.status, 200, "{answer:?}");
        sleep(gap).await;
    }
    assert_eq!(accepted(&mut engine), 3, "one was still fresh");
}

#[tokio::test]
async fn a_fresh_connection_is_used_again_and_none_is_kept_with_an_idle_time_of_zero() {
    for (idle, expected) in [(Duration::from_secs(4), 1), (Duration::ZERO, 3)] {
        let mut engine = Engine::answering(plain("text/plain", "ok")).await;
        let mut config = config(engine.address);
        engine_of(&mut config).pool_idle = idle;
        let proxy = start(config).await;
        let mut client = proxy.connect().await;
        for _ in 0..3 {
            assert_eq!(client.get("/").await.status, 200);
            sleep(Duration::from_millis(5)).await; // the pool takes a connection back when its answer is read
        }
        assert_eq!(accepted(&mut engine), expected, "{idle:?}");
    }
}

/// An idle connection that the engine closed is noticed before it is used, or the request goes out again unwritten.
#[tokio::test]
async fn a_connection_that_was_closed_meanwhile_is_no_502() {
    let engine = Engine::start(|mut peer, _| async move {
        peer.send(plain("text/plain", "ok")).await;
        None // closes at once, without having said so
    })
    .await;
    let proxy = start(config(engine.address)).await;
    let mut client = proxy.connect().await;
    for _ in 0..20 {
        assert_eq!(client.get("/").await.status, 200);
        sleep(Duration::from_millis(2)).await;
    }
}

/// A request that was written may have been acted on: it is told to have failed, and not sent again.
#[tokio::test]
async fn a_request_that_was_written_is_never_sent_again() {
    let seen = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&seen);
    let engine = Engine::start(move |mut peer, _| {
        let count = Arc::clone(&count);
        async move {
            if count.fetch_add(1, Ordering::Relaxed) == 0 {
                peer.send(plain("text/plain", "ok")).await;
                return Some(peer); // the connection is idle and good
            }
            let mut rest = [0; 64];
            let _ = timeout(Duration::from_millis(5), peer.socket.read(&mut rest)).await;
            None // read, then closed without an answer
        }
    })
    .await;
    let proxy = start(config(engine.address)).await;
    let mut client = proxy.connect().await;
    assert_eq!(client.get("/").await.status, 200);
    sleep(Duration::from_millis(5)).await;
    client.send("POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n{}").await;
    assert_eq!(client.answer().await.status, 502);
    assert_eq!(seen.load(Ordering::Relaxed), 2, "sent once");
}
