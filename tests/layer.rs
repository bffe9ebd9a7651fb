//! The tower layer, from outside: which responses it wraps, what it changes in their heads, and
//! that everything else passes as it was.
#![cfg(feature = "tower")]

mod common;
#[path = "layer/through.rs"]
mod through;

use axum::response::{Html, IntoResponse};
use bytes::Bytes;
use common::{Scripted, Silent, engine, heart, pass, poll_once, read_ready, seconds};
use heartline::{Form, Format, HeartlineLayer, HeartlineService};
use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Response};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use static_assertions::assert_impl_all;
use std::convert::Infallible;
use std::future::ready;
use std::time::Duration;
use through::{EVENTS, counted, lines, recorded, response, silent, through};
use tower::{Layer, ServiceExt, service_fn};

assert_impl_all!(HeartlineLayer: Clone, Send, Sync, Unpin);
assert_impl_all!(HeartlineService<()>: Clone, Send, Sync, Unpin);

#[tokio::test(start_paused = true)]
async fn an_event_stream_is_registered_until_its_body_is_dropped() {
    let heart = heart(30);
    let mut response = silent(&heart.layer(), &[EVENTS]).await;
    assert_eq!(heart.active(), 1);
    assert!(response.body().is_live());
    pass(seconds(60)).await;
    assert_eq!(read_ready(response.body_mut()), "\n");
    drop(response);
    assert_eq!(heart.active(), 0);
}

/// Case 37 of the reports: types in any case and with parameters went unrecognised.
#[tokio::test(start_paused = true)]
async fn a_content_type_in_any_case_with_parameters_is_recognised() {
    let heart = heart(30);
    for value in ["Text/Event-Stream;charset=UTF-8", "TEXT/EVENT-STREAM", "text/event-stream; a=b; c=d"] {
        let response = silent(&heart.layer(), &[("content-type", value)]).await;
        assert_eq!(heart.active(), 1, "{value}");
        drop(response);
    }
    for value in ["text/event-stream-2", "text/plain", "text/event-stream,text/plain", "text", ""] {
        let response = silent(&heart.layer(), &[("content-type", value)]).await;
        assert!(!response.body().is_live(), "{value}");
    }
}

/// Case 6 of the reports: HEAD requests hung and leaked.
#[tokio::test(start_paused = true)]
async fn responses_without_a_body_never_register() {
    let heart = heart(30);
    let layer = heart.layer();
    for method in [Method::HEAD, Method::CONNECT] {
        let response = through(&layer, method.clone(), response(200, &[EVENTS], Silent)).await;
        assert!(!response.body().is_live(), "{method}");
        assert!(!response.headers().contains_key("x-accel-buffering"), "{method}");
    }
    for status in [101, 204, 205, 304] {
        let fields = [EVENTS, ("etag", "\"1\"")];
        let response = through(&layer, Method::GET, response(status, &fields, Silent)).await;
        assert!(!response.body().is_live(), "{status}");
        assert_eq!(lines(response.headers(), "etag"), ["\"1\""], "{status}");
    }
    assert_eq!(heart.active(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_empty_event_stream_is_not_registered() {
    let heart = heart(30);
    let empty = response(200, &[EVENTS], Full::new(Bytes::new()));
    let response = through(&heart.layer(), Method::GET, empty).await;
    assert_eq!(heart.active(), 0);
    assert!(response.body().is_end_stream());
}

/// Case 16 of the reports, and ranges: bytes that are not the stream's own text.
#[test]
fn encoded_and_partial_responses_are_bypassed_and_counted() {
    recorded(|snapshotter| async move {
        let heart = heart(30);
        for (status, field) in [
            (200, ("content-encoding", "gzip")),
            (200, ("content-encoding", "identity, zstd")),
            (200, ("content-range", "bytes 0-3/9")),
            (206, ("vary", "*")),
        ] {
            let fields = [EVENTS, field, ("content-length", "4"), ("etag", "\"1\"")];
            let encoded = response(status, &fields, Full::new(Bytes::from("\x1f\u{8}00")));
            let before = encoded.headers().clone();
            let response = through(&heart.layer(), Method::GET, encoded).await;
            assert_eq!(response.headers(), &before, "{field:?}");
            assert_eq!(response.body().size_hint().exact(), Some(4), "{field:?}");
            assert!(!response.body().is_live());
            assert_eq!(counted(&snapshotter, "heartline_heartbeats_total", "bypassed"), 1, "{field:?}");
            assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "\x1f\u{8}00");
        }
        assert_eq!(heart.active(), 0);
    });
}

/// A stream whose server switches compression off by `Content-Encoding: none` got no heartbeat at all.
#[tokio::test(start_paused = true)]
async fn a_response_whose_encoding_is_none_is_kept_alive() {
    let heart = heart(30);
    for encoding in ["none", "None", "IDENTITY", "", ", ,"] {
        let response = silent(&heart.layer(), &[EVENTS, ("content-encoding", encoding)]).await;
        assert!(response.body().is_live(), "{encoding:?}");
    }
}

#[test]
fn what_is_no_stream_passes_untouched_and_uncounted() {
    recorded(|snapshotter| async move {
        let heart = heart(30);
        let page = Html("<p>").into_response();
        let before = page.headers().clone();
        let response = through(&heart.layer(), Method::GET, page).await;
        assert_eq!(response.headers(), &before);
        assert_eq!(response.body().size_hint().exact(), Some(3));
        let head = through(&heart.layer(), Method::HEAD, self::response(200, &[EVENTS], Silent)).await;
        assert!(!head.body().is_live());
        assert_eq!(counted(&snapshotter, "heartline_heartbeats_total", "bypassed"), 0);
    });
}

#[tokio::test(start_paused = true)]
async fn a_wrapped_response_promises_nothing_about_its_bytes() {
    let heart = heart(30);
    let promises =
        ["content-length", "etag", "content-md5", "digest", "content-digest", "repr-digest", "accept-ranges"];
    for format in [Format::EventStream, Format::Ndjson] {
        let mut fields = vec![("content-type", format.content_type()), ("last-modified", "x"), ("x-own", "y")];
        fields.extend(promises.map(|name| (name, "1")));
        let whole = response(200, &fields, Full::new(Bytes::from("data: 1\n\n")));
        let response = through(&heart.layer().formats(&[format]), Method::GET, whole).await;
        let mut names: Vec<_> = response.headers().keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["cache-control", "content-type", "last-modified", "x-accel-buffering", "x-own"]);
        assert_eq!(response.body().size_hint().upper(), None);
    }
}

#[tokio::test(start_paused = true)]
async fn buffering_is_forbidden_where_the_response_has_not_decided() {
    let layer = heart(30).layer();
    let response = silent(&layer, &[EVENTS]).await;
    assert_eq!(lines(response.headers(), "x-accel-buffering"), ["no"]);
    let response = silent(&layer, &[EVENTS, ("x-accel-buffering", "yes")]).await;
    assert_eq!(lines(response.headers(), "x-accel-buffering"), ["yes"]);
}

#[tokio::test(start_paused = true)]
async fn no_transform_joins_what_the_response_says_about_caching() {
    let layer = heart(30).layer();
    for (before, after) in [
        (&["private"][..], &["private, no-transform"][..]),
        (&["no-cache", "private"], &["no-cache, no-transform", "private"]),
        (&["no-cache", "No-Transform"], &["no-cache", "No-Transform"]),
        (&[], &["no-cache, no-transform"]),
    ] {
        let mut fields = vec![EVENTS];
        fields.extend(before.iter().map(|value| ("cache-control", *value)));
        let response = silent(&layer, &fields).await;
        assert_eq!(lines(response.headers(), "cache-control"), after);
    }
    let mut odd = response(200, &[EVENTS], Silent);
    odd.headers_mut().insert("cache-control", HeaderValue::from_bytes(b"x=\"\xe9\"").unwrap());
    let response = through(&layer, Method::GET, odd).await;
    assert_eq!(response.headers()["cache-control"].as_bytes(), b"x=\"\xe9\", no-transform");
}

#[tokio::test(start_paused = true)]
async fn ndjson_and_json_are_wrapped_only_when_asked_for() {
    let heart = heart(30);
    for format in [Format::Ndjson, Format::Json] {
        let fields = [("content-type", format.content_type())];
        assert!(!silent(&heart.layer(), &fields).await.body().is_live());

        let layer = heart.layer().formats(&[Format::EventStream, format]);
        let mut response = silent(&layer, &fields).await;
        assert_eq!(lines(response.headers(), "cache-control"), ["no-transform"]);
        pass(seconds(60)).await;
        let heartbeat = if format == Format::Json { "\n" } else { " " };
        assert_eq!(read_ready(response.body_mut()), heartbeat);
        assert!(silent(&layer, &[EVENTS]).await.body().is_live());
    }
}

/// Case 32 of the reports: JSON of known length is complete; nothing is written before it.
#[tokio::test(start_paused = true)]
async fn json_with_a_length_is_left_alone() {
    let heart = heart(30);
    let fields = [("content-type", "application/json"), ("content-length", "2"), ("etag", "\"1\"")];
    let layer = heart.layer().formats(&[Format::Json]);
    let response = through(&layer, Method::GET, response(200, &fields, Full::new(Bytes::from("{}")))).await;
    assert_eq!(heart.active(), 0);
    assert_eq!(lines(response.headers(), "content-length"), ["2"]);
    assert_eq!(lines(response.headers(), "etag"), ["\"1\""]);
    assert_eq!(response.body().size_hint().exact(), Some(2));
}

#[tokio::test(start_paused = true)]
async fn the_form_is_the_layers_own_or_suits_the_client() {
    let heart = heart(30);
    let auto = heart.layer().auto_form();
    for (layer, client, heartbeat) in [
        (heart.layer(), "Mozilla/5.0", "\n"),
        (heart.layer().form(Form::comment()), "curl/8.0", ":\n"),
        (auto.clone(), "Mozilla/5.0", ":\n"),
        (auto.clone(), "curl/8.0", "\n"),
        (auto.form(Form::comment()), "curl/8.0", ":\n"),
    ] {
        let handler = service_fn(|_: Request<()>| ready(Ok::<_, Infallible>(response(200, &[EVENTS], Silent))));
        let request = Request::builder().header("user-agent", client).body(()).unwrap();
        let mut response = layer.layer(handler).oneshot(request).await.unwrap();
        pass(seconds(60)).await;
        assert_eq!(read_ready(response.body_mut()), heartbeat, "{client}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_label_is_seen_in_the_snapshot() {
    let heart = heart(30);
    let _response = silent(&heart.layer().label("chat"), &[EVENTS]).await;
    assert_eq!(heart.streams()[0].label.as_deref(), Some("chat"));
}

/// The handler gets the request as it was, and its error passes.
#[tokio::test(start_paused = true)]
async fn request_and_error_pass_through() {
    let heart = heart(30);
    let handler = service_fn(|request: Request<&'static str>| {
        assert_eq!(request.uri(), "/path?query");
        assert_eq!(request.headers()["x-own"], "y");
        assert_eq!(request.extensions().get::<u8>(), Some(&7));
        ready(Err::<Response<Silent>, _>(*request.body()))
    });
    let request = Request::post("/path?query").header("x-own", "y").extension(7_u8).body("failed").unwrap();
    let error = heart.layer().auto_form().layer(handler).oneshot(request).await.unwrap_err();
    assert_eq!(error, "failed");
    assert_eq!(heart.active(), 0);
}

#[tokio::test(start_paused = true)]
async fn data_trailers_and_errors_of_the_inner_body_pass() {
    let heart = heart(30);
    let (hand, body) = engine();
    let mut response = through(&heart.layer(), Method::GET, response(200, &[EVENTS], body)).await;
    let body = response.body_mut();
    hand.send("data: 1\n\n");
    assert_eq!(read_ready(body), "data: 1\n\n");
    let trailers = HeaderMap::from_iter([("x-tokens".parse().unwrap(), HeaderValue::from_static("1"))]);
    hand.send_trailers(trailers.clone());
    let frame = poll_once::<Scripted>(body).unwrap().unwrap().unwrap();
    assert_eq!(frame.into_trailers().unwrap(), trailers);
    assert!(poll_once(body).unwrap().is_none());

    let (hand, body) = engine();
    let mut response = through(&heart.layer(), Method::GET, self::response(200, &[EVENTS], body)).await;
    hand.fail("boom");
    let error = poll_once(response.body_mut()).unwrap().unwrap().unwrap_err();
    assert_eq!(error.into_inner().unwrap().to_string(), "boom");
    assert_eq!(heart.active(), 0);
}

/// A handler that is dropped before its head is there leaves nothing behind.
#[tokio::test(start_paused = true)]
async fn a_cancelled_handler_registers_nothing() {
    let heart = heart(30);
    let handler = service_fn(|_: Request<()>| std::future::pending::<Result<Response<Silent>, Infallible>>());
    let waiting = heart.layer().layer(handler).oneshot(Request::new(()));
    assert!(tokio::time::timeout(Duration::from_secs(90), waiting).await.is_err());
    assert_eq!(heart.active(), 0);
}
