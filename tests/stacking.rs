//! The tower layer among others, from outside: over itself, over a layer that changes the response,
//! and over another keep-alive.
#![cfg(feature = "tower")]

mod common;
#[path = "layer/through.rs"]
mod through;

use axum::response::IntoResponse;
use axum::response::sse::{KeepAlive as AxumKeepAlive, Sse};
use common::{Silent, heart, pass, read_ready, seconds};
use heartline::{Cadence, Heartline};
use http::{Method, Request};
use http_body_util::BodyExt;
use std::convert::Infallible;
use std::future::ready;
use through::{EVENTS, counted, lines, recorded, response, through};
use tower::{Layer, ServiceExt, service_fn};

/// Case 26 of the reports: two keep-alives stack.
#[test]
fn layered_twice_is_one_registration_and_one_heartbeat() {
    recorded(|snapshotter| async move {
        let heart = heart(30);
        let handler = service_fn(|_: Request<()>| ready(Ok::<_, Infallible>(response(200, &[EVENTS], Silent))));
        let twice = heart.layer().layer(heart.layer().layer(handler));
        let mut response = twice.oneshot(Request::new(())).await.unwrap();
        assert_eq!(heart.active(), 1);
        assert_eq!(lines(response.headers(), "cache-control"), ["no-cache, no-transform"]);
        pass(seconds(60)).await;
        assert_eq!(read_ready(response.body_mut()), "\n");
        drop(response);
        assert_eq!(counted(&snapshotter, "heartline_streams_total", "cancelled"), 1);
        assert_eq!(heart.active(), 0);
    });
}

#[test]
fn layered_twice_counts_a_bypass_once() {
    recorded(|snapshotter| async move {
        let heart = heart(30);
        let fields = &[EVENTS, ("content-encoding", "br")];
        let handler = service_fn(|_: Request<()>| ready(Ok::<_, Infallible>(response(200, fields, Silent))));
        let twice = heart.layer().layer(heart.layer().layer(handler));
        let response = twice.oneshot(Request::new(())).await.unwrap();
        assert!(!response.body().is_live());
        assert_eq!(counted(&snapshotter, "heartline_heartbeats_total", "bypassed"), 1);
    });
}

/// A layer between may decode what the inner layer had to let pass.
#[tokio::test(start_paused = true)]
async fn a_response_decoded_between_two_layers_is_wrapped_by_the_outer() {
    let heart = heart(30);
    let fields = &[EVENTS, ("content-encoding", "br")];
    let handler = service_fn(|_: Request<()>| ready(Ok::<_, Infallible>(response(200, fields, Silent))));
    let decoded = heart.layer().layer(handler).map_response(|mut response| {
        response.headers_mut().remove("content-encoding");
        response
    });
    let response = heart.layer().layer(decoded).oneshot(Request::new(())).await.unwrap();
    assert_eq!(heart.active(), 1);
    assert!(response.body().is_live());
}

/// Case 26 of the reports: over axum's own keep-alive, whose bytes count as life.
#[tokio::test(start_paused = true)]
async fn over_another_keep_alive_an_idle_stream_has_that_ones_heartbeats_only() {
    let heart = Heartline::builder().interval(seconds(30)).cadence(Cadence::IdleOnly).build().unwrap();
    let silent = futures::stream::pending::<Result<axum::response::sse::Event, Infallible>>();
    let theirs = AxumKeepAlive::new().interval(seconds(5)).text("theirs");
    let handler = Sse::new(silent).keep_alive(theirs).into_response();
    let response = through(&heart.layer(), Method::GET, handler).await;
    assert_eq!(heart.active(), 1);
    let mut body = response.into_body();
    for _ in 0..20 {
        let data = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(data, ": theirs\n\n");
    }
    assert_eq!(heart.streams()[0].heartbeats, 0);
}

/// The handler has kept its body alive already: that is wasteful, but no client sees it.
#[tokio::test(start_paused = true)]
async fn over_a_body_kept_alive_by_its_handler_heartbeats_do_not_double() {
    let heart = heart(30);
    let kept = response(200, &[EVENTS], heart.keep_alive(Silent));
    let mut response = through(&heart.layer(), Method::GET, kept).await;
    assert_eq!(heart.active(), 2);
    for _ in 0..10 {
        pass(seconds(30)).await;
        assert_eq!(read_ready(response.body_mut()), "\n");
    }
    drop(response);
    assert_eq!(heart.active(), 0);
}
