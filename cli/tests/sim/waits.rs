//! When headers go, how long tokens take, and that the terms of a request are its own.

use crate::client::{Answer, STREAM, Served, is_silent, quick, soon, text, until};
use heartline_cli::sim::{Script, Settings, WaitMode};
use http::{Method, Request};
use std::time::Duration;
use tokio::time::Instant;

#[tokio::test]
async fn headers_at_once_come_long_before_the_first_token() {
    let served = Served::start(Settings { ttft: "1h".parse().unwrap(), ..quick() }).await;
    for (target, body) in
        [("/v1/chat/completions", STREAM), ("/v1/chat/completions?wait=at-once", "{}"), ("/api/chat", "")]
    {
        let response = soon(served.send(Method::POST, target, body)).await.unwrap();
        assert_eq!(response.status(), 200);
    }
    until(|| served.stats.dropped() == 3).await;
}

#[tokio::test]
async fn headers_with_the_first_token_wait_for_it() {
    let served = Served::start(Settings { wait_headers: WaitMode::FirstToken, ..quick() }).await;
    let begun = Instant::now();
    let response = soon(served.send(Method::POST, "/v1/messages?ttft=40ms&itl=5ms", STREAM)).await.unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(40));
    assert_eq!(Answer::read(response).await.bytes(), served.expected("/v1/messages", STREAM));
    let torn = served.post("/v1/messages?script=torn", STREAM).await;
    assert_eq!(torn.bytes(), served.expected("/v1/messages?script=torn", STREAM));
}

#[tokio::test]
async fn a_client_that_goes_before_the_headers_frees_its_request() {
    let served = Served::start(Settings { wait_headers: WaitMode::FirstToken, script: Script::Hang, ..quick() }).await;
    let mut waiting = Box::pin(served.send(Method::POST, "/v1/messages", STREAM));
    assert!(is_silent(&mut waiting).await);
    assert_eq!(served.stats.live(), 1);
    drop(waiting);
    until(|| served.stats.live() == 0).await;
    assert_eq!(served.stats.dropped(), 1);
}

#[tokio::test]
async fn a_reset_http2_stream_frees_its_request_while_the_connection_lives() {
    let served = Served::start(Settings { script: Script::Hang, ..quick() }).await;
    let mut sender = served.http2().await;
    let mut open = Vec::new();
    for _ in 0..5 {
        let request = Request::post("http://sim/v1/messages").body(text(STREAM)).unwrap();
        open.push(soon(sender.send_request(request)).await.unwrap());
    }
    assert_eq!(served.stats.live(), 5);
    open.truncate(2);
    until(|| served.stats.live() == 2).await;
    assert_eq!(served.stats.dropped(), 3);
}

#[tokio::test]
async fn a_document_takes_as_long_as_its_tokens() {
    let served = Served::start(quick()).await;
    let begun = Instant::now();
    served.post("/v1/messages?ttft=20ms&itl=4ms&tokens=11", "{}").await;
    assert!(begun.elapsed() >= Duration::from_millis(60));
}

#[tokio::test]
async fn tokens_keep_their_pace_without_adding_up_lateness() {
    let served = Served::start(quick()).await;
    let mut best = Duration::MAX;
    // A busy machine may delay a run; not every one of them.
    for _ in 0..10 {
        let begun = Instant::now();
        let response = soon(served.send(Method::GET, "/?itl=2ms&tokens=100", "")).await.unwrap();
        Answer::read(response).await;
        best = best.min(begun.elapsed());
        assert!(best >= Duration::from_millis(198), "{best:?}");
        // A timer that is a millisecond late each time would need 300 ms.
        if best < Duration::from_millis(290) {
            return;
        }
    }
    panic!("{best:?}");
}

#[tokio::test]
async fn the_terms_of_one_request_are_not_those_of_the_next() {
    let served = Served::start(quick()).await;
    let short = served.post("/events?tokens=1&seed=9", "").await.bytes();
    let usual = served.post("/events", "").await.bytes();
    assert!(short.len() < usual.len());
    assert_eq!(usual, served.expected("/events", ""));
}
