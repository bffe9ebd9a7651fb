//! Streams over loopback sockets: the layer and the body under axum and under plain hyper, on
//! HTTP/1.1 and HTTP/2, in real time with the shortest interval.
#![cfg(feature = "tower")]

#[path = "http/client.rs"]
mod client;
mod common;
#[path = "http/server.rs"]
mod server;

use client::{Client, INTERVAL, heart, read_until, until, within};
use common::Engine;
use heartline::Heartline;
use http::Version;
use http::header::{HeaderMap, HeaderValue};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use server::{CASES, Case, Server, Way, serve};

/// Runs `test` for all `cases` at the same time.
async fn in_all<F: Future<Output = ()>>(cases: impl IntoIterator<Item = Case>, test: impl Fn(Case) -> F) {
    futures::future::join_all(cases.into_iter().map(test)).await;
}

/// A server, a client and the answer to its request, of which the head is there.
async fn open(case: Case, heart: &Heartline) -> (Server, Client, Engine, Incoming) {
    open_with(case, heart, |_| ()).await
}

/// As [`open`], for an answer that `begin` has begun.
async fn open_with(case: Case, heart: &Heartline, begin: impl Fn(&Engine)) -> (Server, Client, Engine, Incoming) {
    let server = serve(case, heart).await;
    let hand = server.answers.add();
    begin(&hand);
    let mut client = Client::connect(server.address, case.version).await;
    let response = client.get("/").await;
    assert_eq!(response.version(), case.version, "{case:?}");
    let fields = response.headers();
    assert_eq!(fields.contains_key("x-accel-buffering"), case.way == Way::Layer, "{case:?}");
    assert!(!fields.contains_key("content-length"), "{case:?}");
    (server, client, hand, response.into_body())
}

#[tokio::test]
async fn heartbeats_reach_the_client_of_a_silent_stream_and_events_pass() {
    in_all(CASES, |case| async move {
        let heart = heart();
        let (_server, _client, hand, mut body) = open(case, &heart).await;
        assert_eq!(heart.active(), 1, "{case:?}");
        assert!(read_until(&mut body, "\n\n").await.bytes().all(|byte| byte == b'\n'), "{case:?}");
        hand.send("data: 1\n\n");
        assert_eq!(read_until(&mut body, "1\n\n").await.trim_start(), "data: 1\n\n", "{case:?}");
        // After an id no blank line may come: the boundary is followed across the whole stream.
        hand.send("id: 7\ndata: 2\n\n");
        read_until(&mut body, "2\n\n").await;
        let text = read_until(&mut body, ":\n:\n").await;
        assert!(text.split_terminator(":\n").all(str::is_empty), "{case:?}: {text:?}");

        hand.end();
        let rest = within(body.collect()).await.unwrap().to_bytes();
        assert!(rest.chunks(2).all(|heartbeat| heartbeat == b":\n"), "{case:?}: {rest:?}");
        until(|| heart.active() == 0).await;
        assert!(hand.is_dropped(), "{case:?}");
    })
    .await;
}

/// Case 5 of the reports: a stream leaked with each connection.
#[tokio::test]
async fn a_client_that_goes_away_frees_its_stream() {
    in_all(CASES, |case| async move {
        let heart = heart();
        let (_server, client, hand, body) = open(case, &heart).await;
        assert_eq!(heart.active(), 1, "{case:?}");
        drop((client, body));
        until(|| heart.active() == 0 && hand.is_dropped()).await;
    })
    .await;
}

#[tokio::test]
async fn a_stream_reset_on_a_shared_connection_frees_that_stream_only() {
    in_all(CASES.into_iter().filter(|case| case.version == Version::HTTP_2), |case| async move {
        let heart = heart();
        let (server, mut client, hand, body) = open(case, &heart).await;
        let other = server.answers.add();
        let mut other_body = client.get("/").await.into_body();
        assert_eq!(heart.active(), 2, "{case:?}");
        drop(body);
        until(|| heart.active() == 1 && hand.is_dropped()).await;
        read_until(&mut other_body, "\n").await;
        assert!(!other.is_dropped(), "{case:?}");
    })
    .await;
}

#[tokio::test]
async fn an_error_of_the_stream_is_an_error_at_the_client() {
    in_all(CASES, |case| async move {
        let heart = heart();
        let (_server, _client, hand, mut body) = open(case, &heart).await;
        hand.send("data: 1\n\n");
        read_until(&mut body, "1\n\n").await;
        hand.fail("the engine died");
        let end = within(async {
            loop {
                match body.frame().await {
                    Some(Ok(_)) => continue,
                    end => break end,
                }
            }
        });
        assert!(end.await.is_some_and(|frame| frame.is_err()), "{case:?}: taken for a complete stream");
        until(|| heart.active() == 0 && hand.is_dropped()).await;
    })
    .await;
}

#[tokio::test]
async fn trailers_reach_the_client_after_heartbeats() {
    in_all(CASES, |case| async move {
        let heart = heart();
        let (_server, _client, hand, mut body) = open(case, &heart).await;
        read_until(&mut body, "\n").await;
        hand.send("data: 1\n\n");
        hand.send_trailers(HeaderMap::from_iter([("x-tokens".parse().unwrap(), HeaderValue::from_static("1"))]));
        let rest = within(body.collect()).await.unwrap();
        assert_eq!(rest.trailers().expect("trailers")["x-tokens"], "1", "{case:?}");
        assert_eq!(rest.to_bytes().trim_ascii_start(), b"data: 1\n\n", "{case:?}");
        until(|| heart.active() == 0).await;
    })
    .await;
}

/// Case 18 of the reports: heartbeats kept a dead request alive.
#[tokio::test]
async fn a_stream_ended_for_its_silence_is_told_so_and_ends_cleanly() {
    in_all(CASES, |case| async move {
        let heart = Heartline::builder().interval(INTERVAL).max_silence(INTERVAL * 3).build().unwrap();
        let (_server, _client, hand, body) = open(case, &heart).await;
        let text = within(body.collect()).await.expect("a clean end").to_bytes();
        let event = text.trim_ascii_start();
        assert!(event.starts_with(b"data: {\"error\":") && event.ends_with(b"}\n\n"), "{case:?}: {text:?}");
        until(|| heart.active() == 0 && hand.is_dropped()).await;
    })
    .await;
}

/// Case 31 of the reports: an error glued onto half an event.
#[tokio::test]
async fn a_stream_ended_inside_an_event_is_aborted() {
    in_all(CASES, |case| async move {
        let heart = Heartline::builder().interval(INTERVAL).max_silence(INTERVAL * 3).build().unwrap();
        let (_server, _client, hand, mut body) = open_with(case, &heart, |hand| hand.send("data: half\n")).await;
        let mut text = read_until(&mut body, "half\n").await;
        while let Ok(frame) = within(body.frame()).await.expect("taken for a complete stream") {
            text.push_str(std::str::from_utf8(&frame.into_data().unwrap()).unwrap());
        }
        let after = text.trim_start().strip_prefix("data: half\n").expect("the half event");
        assert!(after.split_terminator(":\n").all(str::is_empty), "{case:?}: {text:?}");
        until(|| heart.active() == 0 && hand.is_dropped()).await;
    })
    .await;
}

/// Case 7 of the reports: open event streams block a graceful shutdown for ever.
#[tokio::test]
async fn drain_ends_silent_streams_of_every_stack() {
    in_all(CASES, |case| async move {
        let heart = heart();
        let (_server, _client, hand, body) = open(case, &heart).await;
        assert_eq!(within(heart.drain(INTERVAL)).await, 0, "{case:?}");
        let text = within(body.collect()).await.expect("a clean end").to_bytes();
        assert!(text.trim_ascii_start().starts_with(b"data: {\"error\":"), "{case:?}: {text:?}");
        assert!(hand.is_dropped(), "{case:?}");
    })
    .await;
}
