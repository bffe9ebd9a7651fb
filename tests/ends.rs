//! I8: how streams are ended by a cap or a drain, and that nothing follows an end.

mod common;

use common::{Silent, engine, heart, pass, pass_slowly, poll_once, read_ready, seconds};
use heartline::{Builder, Ended, ErrorShape, Format, Heartline};
use http_body::Body;
use std::time::Duration;

const OPENAI_END: &str = "data: {\"error\":{\"message\":\"";

fn capped(change: impl FnOnce(Builder) -> Builder) -> Heartline {
    change(Heartline::builder().interval(seconds(8))).build().expect("valid")
}

fn read_error<B>(body: &mut heartline::KeepAlive<B>) -> heartline::StreamError
where
    B: Body<Data = bytes::Bytes> + Unpin,
    B::Error: Into<heartline::BoxError>,
{
    poll_once(body).expect("ready").expect("an error, not the end").expect_err("an error")
}

/// Case 18: heartbeats kept a dead request alive for hours.
#[tokio::test(start_paused = true)]
async fn a_dead_request_ends_with_an_error_event_after_max_silence() {
    let heart = capped(|builder| builder.max_silence(seconds(16)));
    let (engine, body) = engine();
    let mut body = heart.keep_alive(body);
    engine.send("data: 1\n\n");
    assert_eq!(read_ready(&mut body), "data: 1\n\n");
    pass_slowly(seconds(15)).await;
    assert_eq!(read_ready(&mut body), "\n");
    pass_slowly(seconds(2)).await;
    let last = read_ready(&mut body);
    assert!(last.starts_with(OPENAI_END) && last.ends_with("\n\n") && last.contains("max_silence"), "{last}");
    assert!(!last.contains("[DONE]"), "no success terminator");
    assert!(matches!(poll_once(&mut body), Some(None)) && body.is_end_stream());
    assert!(engine.is_dropped(), "the engine's side is told at once (case 12)");
    assert_eq!(heart.active(), 0);
}

/// Case 33: upstream comments, pings or empty `choices` pass for progress for ever.
#[tokio::test(start_paused = true)]
async fn only_content_puts_max_silence_off() {
    for (write, is_content) in [
        (": still here\n\n", false),
        ("\n", false),
        ("event: ping\ndata: {\"type\": \"ping\"}\n\n", false),
        ("data: {\"id\":\"x\",\"choices\":[]}\n\n", false),
        ("data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n", true),
    ] {
        let heart = capped(|builder| builder.max_silence(seconds(16)));
        let (engine, body) = engine();
        let mut body = heart.keep_alive(body);
        for _ in 0..20 {
            engine.send(write);
            read_ready(&mut body);
            pass(seconds(1)).await;
        }
        assert_eq!(body.is_live(), is_content, "{write:?}");
    }
}

/// Case 29: an absolute deadline kills a live stream; an idle limit must never act as a total.
#[tokio::test(start_paused = true)]
async fn max_silence_is_no_total() {
    let heart = capped(|builder| builder.max_silence(seconds(16)));
    let (engine, body) = engine();
    let mut body = heart.keep_alive(body);
    for _ in 0..200 {
        engine.send("data: 1\n\n");
        pass(seconds(3)).await;
        read_ready(&mut body);
    }
    assert!(body.is_live());
}

#[tokio::test(start_paused = true)]
async fn inside_an_event_max_silence_aborts_and_writes_nothing_into_it() {
    for torn in ["data: ha", "data: half\n"] {
        let heart = capped(|builder| builder.max_silence(seconds(16)));
        let (engine, body) = engine();
        let mut body = heart.keep_alive(body);
        engine.send(torn);
        assert_eq!(read_ready(&mut body), torn);
        pass(seconds(20)).await;
        assert!(read_error(&mut body).is_max_silence());
        assert!(matches!(poll_once(&mut body), Some(None)));
        assert_eq!(heart.active(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_lifetime_ends_at_the_next_event_boundary() {
    let heart = capped(|builder| builder.max_lifetime(seconds(32)));
    let (engine, body) = engine();
    let mut body = heart.keep_alive(body);
    for _ in 0..31 {
        engine.send("data: 1\n\n");
        pass(seconds(1)).await;
        read_ready(&mut body);
    }
    engine.send("data: ha");
    assert_eq!(read_ready(&mut body), "data: ha");
    pass(seconds(2)).await;
    assert!(body.is_live() && poll_once(&mut body).is_none(), "inside a line");
    engine.send("lf\n\n");
    engine.send("data: never\n\n");
    let last = read_ready(&mut body);
    assert!(last.starts_with("lf\n\ndata: {\"error\"") && last.contains("max_lifetime"), "{last}");
    assert_eq!(heart.active(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_lifetime_aborts_what_reaches_no_boundary_within_an_interval() {
    let heart = capped(|builder| builder.max_lifetime(seconds(16)));
    let (engine, body) = engine();
    let mut body = heart.keep_alive(body);
    engine.send("data: half\n");
    assert_eq!(read_ready(&mut body), "data: half\n");
    pass_slowly(seconds(20)).await;
    assert_eq!(read_ready(&mut body), ":\n", "heartbeats go on");
    pass_slowly(seconds(5)).await;
    assert!(read_error(&mut body).is_max_lifetime());
}

/// Case 19: heartbeats after the final event, the stream parked.
#[tokio::test(start_paused = true)]
async fn after_a_terminator_only_comments_and_after_the_end_nothing() {
    let heart = heart(30);
    let (engine, body) = engine();
    let mut body = heart.keep_alive(body);
    engine.send("data: [DONE]\n\n");
    assert_eq!(read_ready(&mut body), "data: [DONE]\n\n");
    pass(seconds(30)).await;
    assert_eq!(read_ready(&mut body), ":\n");
    engine.end();
    assert!(matches!(poll_once(&mut body), Some(None)));
    pass(seconds(60)).await;
    assert!(matches!(poll_once(&mut body), Some(None)));
}

#[tokio::test(start_paused = true)]
async fn a_finished_answer_that_is_parked_ends_cleanly_when_drained() {
    let heart = heart(30);
    let (engine, body) = engine();
    let mut body = heart.keep_alive(body);
    engine.send("data: [DONE]\n\n");
    read_ready(&mut body);
    let drained = tokio::spawn({
        let heart = heart.clone();
        async move { heart.drain(Duration::ZERO).await }
    });
    pass(Duration::from_millis(10)).await;
    assert!(matches!(poll_once(&mut body), Some(None)), "the client has its answer: no error follows it");
    assert_eq!(drained.await.expect("no panic"), 0);
}

/// Case 7: open event streams block graceful shutdown for ever.
#[tokio::test(start_paused = true)]
async fn a_drain_gives_grace_then_ends_at_boundaries_then_aborts() {
    let heart = Heartline::builder().interval(seconds(8)).drain_abort_after(seconds(5)).build().expect("valid");
    let (done_engine, body) = engine();
    let mut done = heart.keep_alive(body);
    let (_open_engine, body) = engine();
    let mut open = heart.keep_alive(body);
    let (torn_engine, body) = engine();
    let mut torn = heart.keep_alive(body);
    let mut unread = heart.keep_alive(Silent);
    torn_engine.send("data: ha");
    read_ready(&mut torn);

    let drain = tokio::spawn({
        let heart = heart.clone();
        async move { heart.drain(seconds(20)).await }
    });
    pass(seconds(1)).await;
    assert!(heart.is_draining());
    // New streams end at once.
    let mut late = heart.keep_alive(Silent);
    assert!(read_ready(&mut late).contains("drained"));
    assert!(matches!(poll_once(&mut late), Some(None)));
    // Heartbeats go on, and a stream may finish by itself.
    pass_slowly(seconds(8)).await;
    assert_eq!(read_ready(&mut open), "\n");
    done_engine.send("data: [DONE]\n\n");
    done_engine.end();
    assert_eq!(read_ready(&mut done).trim(), "data: [DONE]");
    // Grace is over: those at a boundary end.
    pass_slowly(seconds(12)).await;
    let last = read_ready(&mut open);
    assert!(last.ends_with("\n\n") && last.contains("drained"), "{last}");
    assert!(torn.is_live() && poll_once(&mut torn).is_none(), "inside a line: not yet");
    // The hard deadline, and a second for connections to notice.
    pass_slowly(Duration::from_millis(4_500)).await;
    assert!(read_error(&mut torn).is_drained());
    pass_slowly(seconds(1)).await;
    // What nobody polls is left to its owner, and counted.
    assert_eq!(drain.await.expect("no panic"), 1);
    assert!(read_ready(&mut unread).contains("drained"));
}

#[tokio::test(start_paused = true)]
async fn a_drain_returns_as_soon_as_the_last_stream_has_gone() {
    let heart = heart(30);
    assert_eq!(heart.drain(seconds(3_600)).await, 0, "nothing to wait for");
    let heart = common::heart(30);
    let body = heart.keep_alive(Silent);
    let began = tokio::time::Instant::now();
    let drain = tokio::spawn({
        let heart = heart.clone();
        async move { heart.drain(seconds(3_600)).await }
    });
    pass(seconds(2)).await;
    drop(body);
    assert_eq!(drain.await.expect("no panic"), 0);
    assert!(began.elapsed() < seconds(3));
}

/// Case 12: dropped from the registry, the handler never told.
#[tokio::test(start_paused = true)]
async fn a_stream_that_heartline_ends_drops_its_source() {
    let heart = heart(30);
    let (engine, body) = engine();
    let mut body = heart.keep_alive(body);
    let drain = tokio::spawn({
        let heart = heart.clone();
        async move { heart.drain(Duration::ZERO).await }
    });
    pass(Duration::from_millis(1)).await;
    assert!(read_ready(&mut body).contains("drained"));
    assert!(engine.is_dropped());
    assert_eq!(drain.await.expect("no panic"), 0);
}

#[tokio::test(start_paused = true)]
async fn each_format_and_shape_says_the_error_its_own_way() {
    let shapes = [
        (Format::EventStream, None, "data: {\"error\""),
        (Format::EventStream, Some(ErrorShape::anthropic()), "event: error\ndata: {\"type\":\"error\""),
        (Format::Ndjson, None, "{\"error\":\""),
        (
            Format::EventStream,
            Some(ErrorShape::custom(|ended: Ended| format!("data: {}\n\n", ended.code()).into())),
            "data: max_silence\n\n",
        ),
    ];
    for (format, shape, expected) in shapes {
        let heart = capped(|builder| builder.max_silence(seconds(8)));
        let mut stream = heart.stream().format(format);
        if let Some(shape) = shape {
            stream = stream.error_shape(shape);
        }
        let mut body = stream.wrap(Silent);
        pass(seconds(9)).await;
        let last = read_ready(&mut body);
        assert!(last.starts_with(expected), "{last:?}");
        assert!(matches!(poll_once(&mut body), Some(None)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_responses_error_counts_on_from_the_stream_s_last_event() {
    let heart = capped(|builder| builder.max_silence(seconds(8)));
    let (engine, body) = engine();
    let mut body = heart.stream().error_shape(ErrorShape::responses()).wrap(body);
    engine.send("event: response.output_text.delta\ndata: {\"sequence_number\":41,\"delta\":\"a\"}\n\n");
    read_ready(&mut body);
    pass(seconds(9)).await;
    assert!(read_ready(&mut body).contains("\"sequence_number\":42"));
}

/// A JSON document never ends cleanly with an error in it: clients take that for a success (`docs/forms.md`).
#[tokio::test(start_paused = true)]
async fn json_is_aborted_after_its_error_body_is_flushed() {
    let heart = capped(|builder| builder.max_silence(seconds(8)));
    let mut body = heart.stream().format(Format::Json).wrap(Silent);
    pass(seconds(9)).await;
    assert!(read_ready(&mut body).contains("\"code\":\"max_silence\""));
    assert!(!body.is_end_stream());
    // `read_ready` stopped at the one pending poll that lets the connection flush.
    assert!(read_error(&mut body).is_max_silence());

    let heart = capped(|builder| builder.max_silence(seconds(8)));
    let (engine, body) = engine();
    let mut body = heart.stream().format(Format::Json).wrap(body);
    engine.send("{\"id\":");
    read_ready(&mut body);
    pass(seconds(9)).await;
    assert!(read_error(&mut body).is_max_silence());
}

/// Case 31: an engine that dies inside an event, and an error glued onto the half event.
#[tokio::test(start_paused = true)]
async fn a_failure_is_reported_at_a_boundary_and_never_into_a_torn_event() {
    use heartline::Failures;
    let heart = heart(30);
    for (sent, failures, event, aborts) in [
        ("data: 1\n\n", Failures::Abort, false, true),
        ("data: 1\n\n", Failures::ReportThenAbort, true, true),
        ("data: 1\n\n", Failures::ReportThenEnd, true, false),
        ("data: 1\n", Failures::ReportThenAbort, false, true),
        ("data: ha", Failures::ReportThenEnd, false, true),
    ] {
        let (engine, body) = engine();
        let mut body = heart.stream().failures(failures).wrap(body);
        engine.send(sent);
        assert_eq!(read_ready(&mut body), sent);
        engine.fail("connection reset");
        if event {
            let last = read_ready(&mut body);
            assert!(last.starts_with(OPENAI_END) && last.contains("\"failed\""), "{last}");
        }
        if aborts {
            let error = read_error(&mut body);
            assert_eq!(error.is_reported(), event);
            assert_eq!(error.into_inner().expect("the engine's").to_string(), "connection reset");
        }
        assert!(matches!(poll_once(&mut body), Some(None)), "{sent:?} {failures:?}");
        assert_eq!(heart.active(), 0);
    }
}
