//! `heartline_cli::load` against a scripted server: what it measures, how streams fail, when a run is to be believed.
mod scripted;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use heartline::Format;
use heartline_cli::load::{self, Report, Settings, Shape, Target, Targets};
use scripted::Step::{Beat, Demand, Finish, Hang, Raw, Reset, Wait};
use scripted::{EVENTS, Server, chunk, ok};
use tokio::net::TcpListener;

fn settings(address: SocketAddr, streams: usize, shape: Shape) -> Settings {
    let mut settings = Settings::new(format!("http://{address}/events").parse().unwrap());
    settings.streams = streams;
    settings.rate_per_second = 100_000;
    settings.shape = shape;
    settings.open_within = Duration::from_millis(300);
    settings
}

async fn run(settings: Settings) -> Report {
    tokio::time::timeout(Duration::from_secs(20), load::run(settings, |_| {}))
        .await
        .expect("the run ends on time")
        .unwrap()
}

fn hold(ms: u64) -> Shape {
    Shape::Hold(Duration::from_millis(ms))
}

fn complete(ms: u64) -> Shape {
    Shape::Complete(Duration::from_millis(ms))
}

fn failed(report: &Report, kind: &str) -> u64 {
    report.streams.failed.get(kind).copied().unwrap_or(0)
}

#[tokio::test]
async fn a_stream_that_never_spoke_counts_with_its_whole_silence() {
    let server = Server::start(vec![vec![ok(EVENTS), Hang]]).await;
    let report = run(settings(server.address, 20, hold(300))).await;
    assert_eq!((report.streams.opened, report.streams.held_min), (20, 20));
    let silence = report.silence_ms.unwrap();
    assert!(silence.p50 >= 299.0 && silence.max < 900.0, "{silence:?}");
    assert_eq!(report.heartbeats.total, 0);
    assert!(report.ttft_ms.is_none() && report.gap_ms.is_none() && report.first_byte_ms.is_none());
}

#[tokio::test]
async fn heartbeats_end_silences_and_are_no_events() {
    let server = Server::start(vec![vec![ok(EVENTS), Beat(b"\n", 200, 25), Hang]]).await;
    let report = run(settings(server.address, 10, hold(500))).await;
    let silence = report.silence_ms.unwrap();
    assert!(silence.p50 >= 20.0 && silence.p50 < 250.0, "{silence:?}");
    assert!(report.heartbeats.total >= 50, "{:?}", report.heartbeats);
    assert_eq!(report.bytes, report.heartbeats.total, "one byte each");
    assert_eq!(report.events.total, 0);
    assert!(report.first_byte_ms.is_some() && report.ttft_ms.is_none());
}

#[tokio::test]
async fn events_are_counted_apart_from_the_heartbeats_between_them() {
    let script = vec![
        ok(EVENTS),
        Wait(150),
        chunk(": keep-alive\n\n"),
        chunk("data: one\n\n\n"),
        Wait(60),
        chunk("\n"),
        Wait(60),
        chunk("data: two\n\n"),
        Hang,
    ];
    let server = Server::start(vec![script]).await;
    let report = run(settings(server.address, 5, hold(600))).await;
    assert_eq!(report.events.total, 10);
    let gap = report.gap_ms.unwrap();
    assert!(gap.p50 >= 110.0 && gap.max < 500.0, "{gap:?}");
    assert!(report.ttft_ms.unwrap().p50 >= 145.0);
    assert!((5..=10).contains(&report.heartbeats.total), "{:?}", report.heartbeats);
}

#[tokio::test]
async fn a_space_before_an_ndjson_line_is_a_heartbeat() {
    let script = vec![
        ok("application/x-ndjson"),
        Beat(b" ", 3, 40),
        chunk("{\"a\":1}\n"),
        Wait(30),
        chunk("{\"done\":true}\n"),
        Finish,
    ];
    let server = Server::start(vec![script]).await;
    let report = run(settings(server.address, 4, complete(5_000))).await;
    assert_eq!(report.streams.completed, 4);
    assert_eq!((report.heartbeats.total, report.events.total), (12, 8));
    let expected = load::digest_of(Format::Ndjson, b"{\"a\":1}\n{\"done\":true}\n");
    assert_eq!(report.digests.counts.get(&expected), Some(&4));
}

#[tokio::test]
async fn digests_do_not_see_heartbeats_or_cuts_between_chunks() {
    let body = "id: 7\nevent: token\ndata: {\"t\":\"hello\"}\n\ndata: a\ndata: b\n\ndata: [DONE]\n\n";
    let mut torn: Vec<_> = body.bytes().map(|byte| chunk([byte])).collect();
    torn.insert(0, ok(EVENTS));
    torn.insert(1, chunk("\n\n"));
    torn.push(Finish);
    let whole = vec![ok(EVENTS), chunk(body), Finish];
    let other = vec![ok(EVENTS), chunk(body.replace("data: b", "data: c")), Finish];
    let server = Server::start(vec![torn, whole, other]).await;

    let expected = load::digest_of(Format::EventStream, body.as_bytes());
    assert_eq!(expected.events, 3);
    let mut settings = settings(server.address, 9, complete(5_000));
    let mut target = Target::new(Bytes::new());
    target.expected = Some(expected);
    settings.targets = Targets::Same(target);
    let report = run(settings).await;
    assert_eq!(report.streams.completed, 9);
    assert_eq!(report.digests.counts.get(&expected), Some(&6));
    assert_eq!((report.digests.as_expected, report.digests.unexpected), (6, 3));
    assert_eq!(report.digests.counts.len(), 2);
}

#[tokio::test]
async fn every_way_to_fail_has_its_own_kind_and_success_stands_apart() {
    let server = Server::start(vec![
        vec![ok(EVENTS), chunk("data: 1\n\n"), Wait(50), Finish],
        vec![Raw(b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n".to_vec()), Hang],
        vec![ok(EVENTS), chunk("data: 1\n\n"), Wait(50)],
        vec![ok(EVENTS), chunk("data: 1\n\n"), Wait(50), Reset],
        vec![Wait(20)],
        vec![Raw(b"SSH-2.0-OpenSSH\r\n\r\n".to_vec())],
        vec![Hang],
    ])
    .await;
    let report = run(settings(server.address, 14, complete(700))).await;
    assert_eq!(report.streams.completed, 2);
    assert_eq!(report.streams.opened, 6);
    for kind in ["status_503", "cut_closed", "cut_reset", "closed_before_headers", "not_http", "headers_unfinished"] {
        assert_eq!(failed(&report, kind), 2, "{kind}: {:?}", report.streams.failed);
    }
    assert_eq!((report.cut(), report.failed_otherwise()), (4, 8));
    assert!(!report.client.valid);
    // The longest headers belong to a success; what waited in vain is only in the silences.
    assert!(report.headers_ms.unwrap().max < 600.0);
    assert!(report.silence_ms.unwrap().max >= 650.0);
}

#[tokio::test]
async fn streams_that_do_not_open_do_not_delay_the_end() {
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nobody = port.local_addr().unwrap();
    drop(port);
    let mut settings = settings(nobody, 50, Shape::Hold(Duration::from_secs(3_600)));
    settings.open_within = Duration::from_secs(3_600);
    let report = run(settings).await;
    assert_eq!(failed(&report, "connect_refused"), 50);
    assert_eq!(report.client.reasons, ["50 of 50 streams did not open: 50 connect_refused"]);
    assert!(report.connect_ms.is_none() && report.silence_ms.is_none());
}

#[tokio::test]
async fn streams_that_end_cleanly_in_the_hold_phase_make_the_run_invalid() {
    let stays = vec![ok(EVENTS), Hang];
    let ends = vec![ok(EVENTS), Wait(250), Finish];
    let server = Server::start(vec![stays, ends]).await;
    let report = run(settings(server.address, 10, hold(600))).await;
    assert_eq!(report.streams.opened, 10);
    assert_eq!((report.streams.held_min, report.streams.completed), (5, 5));
    assert_eq!(report.cut(), 0, "ended is not cut");
    assert!(!report.client.valid);
    assert!(report.client.reasons[0].contains("5 of 10 opened streams were held"), "{:?}", report.client);
}

#[tokio::test]
async fn a_run_of_streams_that_complete_ends_with_the_last_one() {
    let server = Server::start(vec![vec![ok(EVENTS), Wait(30), chunk("data: 1\n\n"), Finish]]).await;
    let report = run(settings(server.address, 30, complete(3_600_000))).await;
    assert_eq!(report.streams.completed, 30);
    assert_eq!(report.events.total, 30);
    assert!(!report.interrupted);
}

#[tokio::test]
async fn stopping_early_gives_the_report_of_what_there_was() {
    let server = Server::start(vec![vec![ok(EVENTS), Beat(b"\n", 1_000, 20)]]).await;
    let settings = settings(server.address, 5, Shape::Hold(Duration::from_secs(3_600)));
    let stop = tokio::time::sleep(Duration::from_millis(400));
    let report = load::run_until(settings, |_| {}, stop).await.unwrap();
    assert!(report.interrupted && !report.client.valid);
    assert!(report.client.reasons[0].starts_with("interrupted"), "{:?}", report.client.reasons);
    assert_eq!(report.streams.opened, 5);
    assert!(report.heartbeats.total > 0);
}

/// Lets the worker's own thread stand still for 400 ms when the first stream begins.
fn standing_still() -> Targets {
    Targets::Each(Arc::new(|index| {
        if index == 0 {
            let (_silent, waiting) = std::sync::mpsc::channel::<()>();
            let _ = waiting.recv_timeout(Duration::from_millis(400));
        }
        Target::default()
    }))
}

#[tokio::test]
async fn a_client_that_falls_behind_shows_it_and_hides_no_waiting() {
    let server = Server::start(vec![vec![ok(EVENTS), Hang]]).await;
    let mut settings = settings(server.address, 20, complete(900));
    settings.interval = Duration::from_millis(100);
    settings.targets = standing_still();
    let report = run(settings).await;
    let connect = report.connect_ms.unwrap();
    assert!(connect.p50 >= 380.0, "counted from the intended start: {connect:?}");
    assert!(report.client.lag_ms.unwrap().max >= 300.0);
    assert!(
        report.client.reasons.iter().any(|reason| reason.starts_with("client limit")),
        "{:?}",
        report.client.reasons
    );
}

#[tokio::test]
async fn a_client_that_stands_still_past_the_end_shows_it_too() {
    let server = Server::start(vec![vec![ok(EVENTS), Hang]]).await;
    let mut settings = settings(server.address, 1, complete(100));
    settings.targets = standing_still();
    let report = run(settings).await;
    assert!(report.client.lag_ms.unwrap().max >= 300.0, "{:?}", report.client);
}

#[tokio::test]
async fn the_clients_own_work_is_its_cpu_time() {
    let server = Server::start(vec![vec![ok(EVENTS), Hang]]).await;
    let mut settings = settings(server.address, 2, complete(300));
    settings.rate_per_second = 10;
    let idle = run(settings.clone()).await.client.cpu_percent;
    settings.targets = Targets::Each(Arc::new(|_| {
        assert_eq!((0..10_000_000_u32).map(std::hint::black_box).max(), Some(9_999_999));
        Target::default()
    }));
    let busy = run(settings).await.client.cpu_percent;
    assert!(busy > idle + 2.0, "{idle} % idle, {busy} % busy");
}

#[tokio::test]
async fn a_body_of_unknown_or_encoded_bytes_is_life_without_events() {
    let encoded = "text/event-stream\r\ncontent-encoding: gzip";
    for content_type in ["text/plain", encoded] {
        let server = Server::start(vec![vec![ok(content_type), Beat(b"data: x\n\n", 5, 20), Finish]]).await;
        let report = run(settings(server.address, 2, complete(5_000))).await;
        assert_eq!((report.events.total, report.heartbeats.total, report.bytes), (0, 0, 2 * 5 * 9), "{content_type}");
        assert!(report.silence_ms.unwrap().max < 1_000.0 && report.ttft_ms.is_none());
    }
}

#[tokio::test]
async fn each_stream_sends_what_its_target_says() {
    let answer = |demand| vec![Demand(demand), ok(EVENTS), chunk("data: 1\n\n"), Finish];
    let server = Server::start(vec![answer("POST /events?seed=2 HTTP/1.1\r\n")]).await;
    let mut settings = settings(server.address, 3, complete(2_000));
    settings.method = http::Method::POST;
    settings.headers.insert("x-team", "red".parse().unwrap());
    settings.targets = Targets::Each(Arc::new(|index| {
        let mut target = Target::new(Bytes::from(format!("{{\"n\":{index}}}")));
        target.path = Some(format!("/events?seed={index}").parse().unwrap());
        target
    }));
    let report = run(settings.clone()).await;
    assert_eq!(report.streams.completed, 1, "only one asks for seed 2");
    assert_eq!(failed(&report, "headers_unfinished"), 2);

    for demand in ["x-team: red\r\n", "content-length: 7\r\n", "host: 127.0.0.1:", "{\"n\":0}"] {
        let server = Server::start(vec![answer(demand)]).await;
        settings.url = format!("http://{}/", server.address).parse().unwrap();
        settings.streams = 1;
        assert_eq!(run(settings.clone()).await.streams.completed, 1, "{demand}");
    }
}

#[tokio::test]
async fn settings_that_cannot_work_are_refused_before_anything_starts() {
    let address: SocketAddr = "127.0.0.1:9".parse().unwrap();
    let refused = async |change: fn(&mut Settings)| {
        let mut settings = settings(address, 1, hold(1));
        change(&mut settings);
        let error = load::run(settings, |_| {}).await.unwrap_err();
        assert!(error.is_config(), "{error}");
        error.to_string()
    };
    assert!(refused(|s| s.streams = 0).await.contains("0 streams"));
    assert!(refused(|s| s.shape = Shape::Hold(Duration::ZERO)).await.contains("0s"));
    assert!(refused(|s| s.rate_per_second = 0).await.contains("2k/s"));
    assert!(refused(|s| s.interval = Duration::ZERO).await.contains("30s"));
    assert!(refused(|s| s.url = "ftp://x/".parse().unwrap()).await.contains("http://"));
    assert!(refused(|s| s.url = "/events".parse().unwrap()).await.contains("http://host"));
    assert!(refused(|s| s.targets = Targets::List(Arc::new([]))).await.contains("empty"));
}

#[tokio::test]
async fn more_streams_than_files_are_refused_with_the_fix() {
    let address: SocketAddr = "127.0.0.1:9".parse().unwrap();
    let error = load::run(settings(address, 2_000_000, hold(1)), |_| {}).await.unwrap_err();
    assert!(error.is_host_limit(), "{error}");
    assert!(error.to_string().contains("--streams "), "{error}");
}

#[tokio::test]
async fn the_report_has_the_published_fields() {
    let server = Server::start(vec![vec![ok(EVENTS), Hang]]).await;
    let report = serde_json::to_value(run(settings(server.address, 2, hold(50))).await).unwrap();
    let keys = |value: &serde_json::Value| {
        let mut keys: Vec<_> = value.as_object().unwrap().keys().cloned().collect();
        keys.sort();
        keys.join(" ")
    };
    assert_eq!(
        keys(&report),
        "begin_late_ms bytes client connect_ms events first_byte_ms first_heartbeat_ms gap_ms headers_ms heartbeats \
         histograms hold interrupted settings shard silence_ms streams thresholds timeline ttft_from_send_ms ttft_ms \
         would_be_cut"
    );
    assert_eq!(keys(&report["streams"]), "completed failed held_min opened requested");
    assert_eq!(keys(&report["heartbeats"]), "jitter_ms kinds missed per_stream period_ms total");
    assert_eq!(keys(&report["events"]), "ends_seen ids_missing ids_repeated per_second total");
    assert_eq!(keys(&report["would_be_cut"]), "100s 10s 120s 20s 240s 300s 30s 350s 50s 55s 5s 600s 60s");
    assert_eq!(keys(&report["client"]), "cpu_percent lag_ms reasons valid");
    assert_eq!(keys(&report["silence_ms"]), "max p50 p90 p99 p99_9");
    assert!(report["ttft_ms"].is_null() && report["gap_ms"].is_null());
    let read: Report = serde_json::from_value(report).unwrap();
    assert_eq!(read.streams.opened, 2);
}
