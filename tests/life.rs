//! One heartbeat's whole life with paused time, its counts asserted at each step, and the ways a stream can end.

mod common;

use common::{engine, heart, pass, poll_once, read_ready, seconds, settle};
use http_body::Body;
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};

/// The value of a counter or gauge, 0 when it was never touched.
fn value(
    snapshotter: &Snapshotter,
    name: &str,
    label: Option<&str>,
    sum: &mut std::collections::HashMap<String, f64>,
) -> f64 {
    // Taking a snapshot resets everything, so it is summed here.
    for (key, _, _, value) in snapshotter.snapshot().into_vec() {
        let label = key.key().labels().map(|label| label.value().to_owned()).collect::<Vec<_>>().join(",");
        let slot = sum.entry(format!("{}{{{label}}}", key.key().name())).or_default();
        match value {
            DebugValue::Counter(count) => *slot += count as f64,
            DebugValue::Gauge(change) => *slot += change.into_inner(),
            DebugValue::Histogram(values) => *slot += values.len() as f64,
        }
    }
    sum.get(&format!("{name}{{{}}}", label.unwrap_or_default())).copied().unwrap_or(0.0)
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_from_registration_to_removal() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _recorder = metrics::set_default_local_recorder(&recorder); // installed before, used by handles looked up later
    let mut sums = std::collections::HashMap::new();
    let mut metric = |name: &str, label: Option<&str>| value(&snapshotter, name, label, &mut sums);
    let active = "heartline_streams_active";
    let beats = "heartline_heartbeats_total";

    // Built: no stream, no task.
    let heart = heart(30);
    assert_eq!((heart.active(), heart.streams().len()), (0, 0));
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0);

    // Wrapped: one entry, one task, nothing sent.
    let (engine, body) = engine();
    let mut body = heart.stream().label("life").wrap(body);
    assert_eq!((heart.active(), heart.streams().len()), (1, 1));
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 1);
    assert_eq!(metric(active, None), 1.0);
    assert!(poll_once(&mut body).is_none());

    // One moment before the interval: still nothing.
    pass(seconds(30) - std::time::Duration::from_millis(10)).await;
    assert_eq!(read_ready(&mut body), "");
    assert_eq!(metric(beats, Some("sent")), 0.0);

    // At the interval: the stream is woken and writes one newline, once.
    pass(std::time::Duration::from_millis(10)).await;
    assert_eq!(read_ready(&mut body), "\n");
    assert_eq!(read_ready(&mut body), "");
    assert_eq!(metric("heartline_silence_seconds", None), 1.0);
    pass(seconds(4)).await; // tallies are told at each visit
    assert_eq!(metric(beats, Some("sent")), 1.0);
    let snapshot = &heart.streams()[0];
    assert_eq!((snapshot.heartbeats, snapshot.label.as_deref()), (1, Some("life")));
    assert!(snapshot.age >= seconds(30) && snapshot.silence <= seconds(4));

    // A token comes exactly when the next is due: it goes, the heartbeat does not.
    pass(seconds(25)).await;
    engine.send("data: 1\n\n");
    pass(seconds(1)).await;
    assert_eq!(read_ready(&mut body), "data: 1\n\n");
    pass(seconds(4)).await;
    assert_eq!(metric(beats, Some("skipped_active")), 1.0);

    // A reader that does not read: one heartbeat is pending, the next ones are skipped and counted.
    pass(seconds(26)).await;
    pass(seconds(30)).await;
    pass(seconds(30)).await;
    assert_eq!(metric(beats, Some("skipped_backpressure")), 2.0);
    assert_eq!(read_ready(&mut body), "\n", "one, not three");
    assert_eq!(heart.streams()[0].heartbeats, 2);

    // The end: the entry goes with the end of the body, before the body is dropped; the task goes at its next visit.
    engine.send("data: [DONE]\n\n");
    engine.end();
    assert_eq!(read_ready(&mut body), "data: [DONE]\n\n");
    assert!(matches!(poll_once(&mut body), Some(None)) && body.is_end_stream());
    assert_eq!((heart.active(), heart.streams().len()), (0, 0));
    assert_eq!(metric(active, None), 0.0);
    assert_eq!(metric("heartline_streams_total", Some("completed")), 1.0);
    pass(seconds(4)).await;
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0);
    assert!(metric("heartline_sweep_duration_seconds", None) >= 8.0);
    assert!(metric("heartline_sweep_lag_seconds", None) >= 8.0);

    // The next stream starts it again.
    let again = heart.keep_alive(common::Silent);
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 1);
    drop(again);
    assert_eq!(heart.active(), 0);
    assert_eq!(metric("heartline_streams_total", Some("cancelled")), 1.0);
    settle().await;
}

/// What a hop would have cut, and what it would not have: counted from the engine's own bytes, kept when the stream ends.
#[tokio::test(start_paused = true)]
async fn a_bridged_silence_is_told_while_it_lasts_and_after_its_stream() {
    let heart = common::heart(8); // a visit is a second
    let (engine, body) = engine();
    let mut body = heart.keep_alive(body);
    assert_eq!(heart.totals(), heartline::Totals::default());
    let read_for = async |body: &mut _, long| {
        let mut read = String::new();
        for _ in 0..long {
            pass(seconds(1)).await;
            read.push_str(&read_ready(body));
        }
        read
    };

    assert_eq!(read_for(&mut body, 7).await, "");
    assert_eq!(heart.streams()[0].bridged, seconds(0), "no heartbeat yet");
    engine.send("data: 1\n\n");
    read_for(&mut body, 1).await;
    read_for(&mut body, 60).await;
    let snapshot = &heart.streams()[0];
    assert!(snapshot.bridged >= seconds(59) && snapshot.bridged <= seconds(61), "{snapshot:?}");
    assert!(snapshot.content_silence >= seconds(59) && snapshot.silence <= seconds(9), "{snapshot:?}");

    engine.send(": still here\n");
    read_for(&mut body, 20).await;
    let snapshot = &heart.streams()[0];
    assert!(snapshot.bridged <= seconds(62), "the engine's comment is life to a hop: {snapshot:?}");
    assert_eq!(heart.totals().streams, 0, "it lives");

    let beats = u64::from(snapshot.heartbeats);
    drop(body);
    let totals = heart.totals();
    assert_eq!((totals.streams, totals.heartbeats), (1, beats));
    assert_eq!((totals.bridged_longer_than(seconds(55)), totals.bridged_longer_than(seconds(100))), (1, 0));
    assert!(totals.bridged_max >= seconds(59));
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_engine_is_passed_on_and_removes_the_stream() {
    let heart = heart(30);
    let (engine, body) = engine();
    let mut body = heart.keep_alive(body);
    engine.fail("engine died");
    let error = poll_once(&mut body).expect("ready").expect("not the end").expect_err("the error");
    assert!(error.is_body());
    assert_eq!(error.into_inner().expect("inner").to_string(), "engine died");
    assert_eq!(heart.active(), 0);
    assert!(matches!(poll_once(&mut body), Some(None)), "nothing comes after it");
}

#[tokio::test(start_paused = true)]
async fn trailers_pass_and_end_the_stream() {
    let heart = heart(30);
    let (engine, body) = engine();
    let mut body = heart.keep_alive(body);
    let mut trailers = http::HeaderMap::new();
    trailers.insert("x-usage", http::HeaderValue::from_static("7"));
    engine.send("data: 1\n\n");
    engine.send_trailers(trailers);
    assert!(poll_once(&mut body).expect("ready").expect("data").expect("fine").is_data());
    let last = poll_once(&mut body).expect("ready").expect("trailers").expect("fine");
    assert_eq!(last.into_trailers().expect("trailers")["x-usage"], "7");
    assert_eq!(heart.active(), 0);
}

#[tokio::test(start_paused = true)]
async fn dropped_before_its_first_poll_a_stream_leaves_nothing() {
    let heart = heart(30);
    let (engine, body) = engine();
    drop(heart.keep_alive(body));
    assert!(engine.is_dropped());
    assert_eq!((heart.active(), heart.streams().len()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_already_over_is_not_registered() {
    let heart = heart(30);
    let body = heart.keep_alive(http_body_util::Empty::<bytes::Bytes>::new());
    assert!(!body.is_live() && body.is_end_stream());
    assert_eq!(body.size_hint().exact(), Some(0));
    assert_eq!(heart.active(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_bypassed_body_keeps_its_size_and_a_wrapped_one_has_none() {
    let heart = heart(30);
    let full = || http_body_util::Full::new(bytes::Bytes::from_static(b"data: 1\n\n"));
    let bypassed = heartline::KeepAlive::bypass(full());
    assert_eq!(bypassed.size_hint().exact(), Some(9));
    assert_eq!(heart.keep_alive(full()).size_hint().upper(), None);
}

#[test]
fn outside_a_runtime_a_body_passes_through() {
    let heart = heart(30);
    let mut body = heart.keep_alive(http_body_util::Full::new(bytes::Bytes::from_static(b"data: 1\n\n")));
    assert!(!body.is_live());
    assert_eq!(read_ready(&mut body), "data: 1\n\n");
    assert_eq!(heart.active(), 0);
}

#[test]
fn in_a_runtime_without_a_timer_a_body_passes_through() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let heart = heart(30);
    runtime.block_on(async {
        for _ in 0..2 {
            let body = heart.keep_alive(common::Silent);
            assert!(!body.is_live());
        }
    });
    assert_eq!(heart.active(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_same_for_a_stream_of_bytes() {
    use futures::StreamExt;
    let heart = heart(30);
    let (sender, receiver) = futures::channel::mpsc::unbounded::<Result<bytes::Bytes, std::io::Error>>();
    let mut stream = Box::pin(heart.keep_alive_stream(receiver));
    assert_eq!(heart.active(), 1);
    let read = tokio::spawn(async move {
        let mut all = Vec::new();
        while let Some(Ok(bytes)) = stream.next().await {
            all.extend_from_slice(&bytes);
        }
        all
    });
    pass(seconds(30)).await;
    sender.unbounded_send(Ok("data: 1\n\n".into())).expect("open");
    pass(seconds(30)).await;
    drop(sender);
    settle().await;
    assert_eq!(read.await.expect("no panic"), b"\ndata: 1\n\n\n");
    assert_eq!(heart.active(), 0);
}
