//! `heartline_cli::load` against the scripted engine with heartbeats embedded: whatever the API and however the chunks are cut,
//! every stream decodes to exactly the engine's events.
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use heartline::Format;
use heartline_cli::load::{self, Report, Shape, Target, Targets};
use heartline_cli::sim::{self, Engine, Heartbeat, Script};

/// Runs 24 streams, each with a seed of its own, against an engine that sends a heartbeat every 100 ms.
async fn report(path: &'static str, body: &'static str, format: Format, script: Script) -> Report {
    let settings = sim::Settings {
        listen: "127.0.0.1:0".parse().unwrap(),
        script,
        tokens: 12,
        ttft: "uniform:120ms..400ms".parse().unwrap(),
        itl: "uniform:5ms..60ms".parse().unwrap(),
        stall: "250ms".parse().unwrap(),
        heartbeat: "newline".parse::<Heartbeat>().unwrap(),
        heartbeat_json: true,
        interval: Duration::from_millis(100),
        ..sim::Settings::default()
    };
    let engine = Engine::bind(settings.clone()).await.unwrap();
    let address = engine.local_addr();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let engine = tokio::spawn(engine.run_until(async {
        let _ = stopped.await;
    }));

    let mut load = load::Settings::new(format!("http://{address}").parse().unwrap());
    load.streams = 24;
    load.shape = Shape::Complete(Duration::from_secs(20));
    load.method = if body.is_empty() { http::Method::GET } else { http::Method::POST };
    load.targets = Targets::Each(Arc::new(move |index| {
        let path = format!("{path}?seed={index}");
        let mut target = Target::new(Bytes::from_static(body.as_bytes()));
        let expected = sim::expected_body(&settings, &path, body.as_bytes());
        target.expected = Some(load::digest_of(format, &expected));
        target.path = Some(path.parse().unwrap());
        target
    }));
    let report = load::run(load, |_| {}).await.unwrap();
    drop(stop);
    engine.await.unwrap();
    report
}

/// Asserts that all streams completed as expected, with heartbeats between.
#[track_caller]
fn assert_identical(report: &Report) {
    assert_eq!(report.streams.completed, 24, "{:?}", report.streams);
    assert_eq!((report.digests.as_expected, report.digests.unexpected), (24, 0), "{:?}", report.digests);
    assert!(report.heartbeats.total > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn openai_chunks_cut_anywhere_decode_as_without_heartbeats() {
    let report = report("/v1/chat/completions", r#"{"stream":true}"#, Format::EventStream, Script::Torn).await;
    assert_identical(&report);
    assert_eq!(report.digests.counts.len(), 24, "each seed has its own text");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn anthropic_events_cut_anywhere_decode_as_without_heartbeats() {
    assert_identical(&report("/v1/messages", r#"{"stream":true}"#, Format::EventStream, Script::Torn).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn plain_events_that_stall_decode_as_without_heartbeats() {
    let report = report("/events", "", Format::EventStream, Script::Stall).await;
    assert_identical(&report);
    // The stall was 250 ms; heartbeats came all the while.
    assert!(report.gap_ms.unwrap().max >= 240.0, "{:?}", report.gap_ms);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn ollama_lines_cut_anywhere_decode_as_without_heartbeats() {
    assert_identical(&report("/api/chat", r#"{"stream":true}"#, Format::Ndjson, Script::Torn).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_json_answer_is_the_same_after_the_whitespace_before_it() {
    let report = report("/v1/chat/completions", "{}", Format::Json, Script::Steady).await;
    assert_identical(&report);
    assert_eq!(report.events.total, 24);
}
