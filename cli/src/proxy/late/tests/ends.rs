//! Engines that break off, never answer or hang, and clients that go.

use std::convert::Infallible;

use super::*;

#[tokio::test(start_paused = true)]
async fn an_answer_torn_between_events_is_reported_then_aborted() {
    let (mut engine, mut body) = commit(CHAT);
    engine.begin(200, &[EVENTS], "data: 1\n\n");
    assert_eq!(ready(&mut body), "data: 1\n\n");
    engine.tear();
    let text = to_abort(&mut body);
    assert_eq!(first(&text)["error"]["code"], "failed");
    assert!(!text.contains("[DONE]"));
    // One of Responses goes on counting.
    let (mut engine, mut body) = commit("/v1/responses");
    engine.begin(200, &[EVENTS], "data: {\"type\":\"a\",\"sequence_number\":41}\n\n");
    engine.tear();
    assert!(to_abort(&mut body).contains("\"sequence_number\":42}"));
}

#[tokio::test(start_paused = true)]
async fn an_answer_torn_inside_an_event_is_aborted_and_nothing_else() {
    for (path, format, fields, torn) in [
        (CHAT, Format::EventStream, EVENTS, "data: ha"),
        ("/api/chat", Format::Ndjson, LINES, "{\"a\""),
        (CHAT, Format::Json, JSON, "{"),
    ] {
        let (mut engine, mut body) = commit_as(path, format);
        engine.begin(200, &[fields], torn);
        assert_eq!(ready(&mut body), torn);
        engine.tear();
        assert_eq!(to_abort(&mut body), "");
    }
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_never_answers_is_reported_as_502_then_aborted() {
    for kind in [io::ErrorKind::ConnectionRefused, io::ErrorKind::ConnectionReset, io::ErrorKind::UnexpectedEof] {
        for (path, format, pointer) in [
            (CHAT, Format::EventStream, "/error/status"),
            ("/v1/responses", Format::EventStream, "/error/status"),
            ("/v1/messages", Format::EventStream, "/error/status"),
            (CHAT, Format::Json, "/error/status"),
            ("/v1/messages", Format::Json, "/error/status"),
        ] {
            let (mut engine, mut body) = commit_as(path, format);
            pass(10).await;
            ready(&mut body);
            engine.fail(kind);
            let text = to_abort(&mut body);
            assert_eq!(first(&text).pointer(pointer), Some(&json!(502)), "{text}");
            assert!(!text.contains("[DONE]") && !text.contains("response.failed"), "{text}");
        }
    }
    let (mut engine, mut body) = commit("/api/chat");
    engine.fail(io::ErrorKind::ConnectionRefused);
    let words = "the engine could not be reached or went away before it answered";
    assert_eq!(first(&to_abort(&mut body)), json!({ "error": words }));
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_is_too_slow_is_reported_as_504_then_aborted() {
    for format in [Format::EventStream, Format::Json] {
        let (mut engine, mut body) = commit_as(CHAT, format);
        engine.fail(io::ErrorKind::TimedOut);
        let error = first(&to_abort(&mut body));
        assert_eq!(error["error"]["message"], "the engine did not answer in time");
        assert_eq!((&error["error"]["status"], &error["error"]["code"]), (&json!(504), &json!("504")));
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_whose_text_hangs_is_told_without_it() {
    let (mut engine, mut body) = commit(CHAT);
    engine.begin(503, &[JSON], "{\"error\":");
    assert_eq!(ready(&mut body), "");
    pass(1).await;
    assert_eq!(ready(&mut body), "");
    pass(1).await;
    assert_eq!(first(&to_clean_end(&mut body))["error"]["message"], "the engine answered 503 Service Unavailable");
    assert!(engine.is_dropped());
}

#[tokio::test(start_paused = true)]
async fn an_error_without_end_is_read_no_further_than_it_is_of_use() {
    let (mut engine, mut body) = commit(CHAT);
    engine.begin(500, &[("content-type", "text/plain")], "x");
    for _ in 0..3 {
        engine.write(Box::leak("y".repeat(TEXT_MAX).into_boxed_str()));
    }
    let text = to_clean_end(&mut body);
    assert!(text.contains("xyyy") && text.len() < 3_000, "{}", text.len());
    assert!(engine.is_dropped());
}

/// Cases 13 and 15: the wait is covered, and whoever gives up frees the engine at once.
#[tokio::test(start_paused = true)]
async fn a_client_that_goes_frees_the_engine_at_once() {
    let (engine, body) = commit(CHAT);
    assert!(!engine.is_dropped());
    drop(body);
    assert!(engine.is_dropped(), "while it waits");
    for status in [200, 500] {
        let (mut engine, mut body) = commit(CHAT);
        let content_type = if status == 200 { EVENTS } else { JSON };
        engine.begin(status, &[content_type], "");
        assert_eq!(ready(&mut body), "");
        assert!(!engine.is_dropped());
        drop(body);
        assert!(engine.is_dropped(), "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_beyond_max_silence_ends_in_the_apis_shape_and_frees_the_engine() {
    let (engine_side, pending) = oneshot::channel::<Result<Response<EngineBody>, BoxError>>();
    let pending = pending.map(|answer| answer.unwrap_or_else(|_| Err("gone".into()))).boxed();
    let late = LateBody::new(pending, api("/v1/messages"), Format::EventStream);
    let heart = Heartline::builder().interval(Duration::from_secs(10)).max_silence(Duration::from_secs(60));
    let shape = late.error_shape();
    let mut body = heart.build().unwrap().stream().error_shape(shape).wrap(late);
    let mut text = String::new();
    for _ in 0..10 {
        pass(10).await;
        text += &ready(&mut body);
    }
    let text = text.trim_start();
    assert!(text.starts_with("event: error\n") && text.ends_with("\n\n"), "{text}");
    assert!(engine_side.is_canceled() && body.is_end_stream());
}

/// The engine's streams are infallible here where nothing can fail.
#[tokio::test(start_paused = true)]
async fn any_error_and_body_types_will_do() {
    let response = Response::builder().header(EVENTS.0, EVENTS.1).body(http_body_util::Empty::<Bytes>::new()).unwrap();
    let pending = std::future::ready(Ok::<_, Infallible>(response));
    let mut body = heart().stream().wrap(LateBody::new(pending, api(CHAT), Format::EventStream));
    assert!(Pin::new(&mut body).poll_frame(&mut Context::from_waker(Waker::noop())).is_ready());
    assert!(body.is_end_stream());
}
