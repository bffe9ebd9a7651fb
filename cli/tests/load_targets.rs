//! `heartline_cli::load` against HTTP/2, TLS and the APIs it knows: every kind of target, every way theirs end.
#[path = "scripted/http2.rs"]
mod http2;
#[allow(dead_code, reason = "each test takes the steps it needs")]
mod scripted;

use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use heartline::api::Api;
use heartline_cli::load::{self, Protocol, Report, Settings, Shape, Trust};
use http2::{Authority, Server2};
use scripted::Step::{self, Beat, Finish, Hang, Reset, Wait};
use scripted::{EVENTS, Server, chunk, ok};

fn settings(scheme: &str, address: SocketAddr, streams: usize, shape: Shape) -> Settings {
    let mut settings = Settings::new(format!("{scheme}://{address}/events").parse().unwrap());
    settings.streams = streams;
    settings.rate_per_second = 5_000;
    settings.shape = shape;
    settings.open_within = Duration::from_millis(500);
    settings
}

fn http2(streams_per_connection: usize) -> Protocol {
    Protocol::Http2 { streams_per_connection }
}

async fn run(settings: Settings) -> Report {
    tokio::time::timeout(Duration::from_secs(20), load::run(settings, |_| {}))
        .await
        .expect("the run ends on time")
        .unwrap()
}

const COMPLETE: Shape = Shape::Complete(Duration::from_secs(5));

fn failed(report: &Report, kind: &str) -> u64 {
    report.streams.failed.get(kind).copied().unwrap_or(0)
}

#[tokio::test]
async fn streams_share_http2_connections_and_are_measured_each() {
    let server = Server2::start(vec![vec![Beat(b"\n", 200, 25), Hang]], 1_000, None).await;
    let mut settings = settings("http", server.address, 50, Shape::Hold(Duration::from_millis(400)));
    settings.protocol = http2(20);
    let report = run(settings).await;
    assert_eq!((report.streams.opened, report.streams.held_min), (50, 50), "{:?}", report.streams);
    assert_eq!(server.connections.load(Ordering::Relaxed), 3);
    let silence = report.silence_ms.unwrap();
    assert!(silence.p50 >= 20.0 && silence.p50 < 300.0, "{silence:?}");
    assert!(report.heartbeats.total >= 200, "{:?}", report.heartbeats);
    assert_eq!(report.heartbeats.kinds.keys().collect::<Vec<_>>(), ["\\n"]);
}

#[tokio::test]
async fn a_server_that_takes_fewer_streams_a_connection_gets_more_connections() {
    let server = Server2::start(vec![vec![chunk("data: 1\n\n"), Wait(300), Finish]], 7, None).await;
    let mut settings = settings("http", server.address, 30, COMPLETE);
    settings.protocol = http2(100);
    let report = run(settings).await;
    assert_eq!(report.streams.completed, 30, "{:?}", report.streams);
    assert!(report.ttft_ms.unwrap().max < 290.0, "nobody waited for another's end: {:?}", report.ttft_ms);
    assert_eq!(server.connections.load(Ordering::Relaxed), 5);
}

#[tokio::test]
async fn an_http2_stream_fails_in_its_own_way_and_alone() {
    let stays = vec![chunk("data: 1\n\n"), Wait(150), Finish];
    let reset = vec![chunk("data: 1\n\n"), Wait(50), Reset];
    let server = Server2::start(vec![stays, reset], 100, None).await;
    let mut settings = settings("http", server.address, 10, COMPLETE);
    settings.protocol = http2(100);
    let report = run(settings).await;
    assert_eq!((report.streams.completed, failed(&report, "cut_reset")), (5, 5), "{:?}", report.streams);
    assert_eq!(report.cut(), 5);
}

#[tokio::test]
async fn a_server_that_speaks_no_http2_is_named_so() {
    let server = Server::start(vec![vec![Step::Raw(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec())]]).await;
    let mut settings = settings("http", server.address, 3, COMPLETE);
    settings.protocol = http2(1);
    let report = run(settings).await;
    assert_eq!(report.streams.opened, 0);
    assert_eq!(failed(&report, "not_http") + failed(&report, "closed_before_headers"), 3, "{:?}", report.streams);
}

#[tokio::test]
async fn https_is_measured_like_http_over_both_protocols() {
    let authority = Authority::new("both");
    let script = vec![ok(EVENTS), chunk("data: 1\n\n"), Wait(30), chunk("\n"), Finish];
    let one = Server::start_with(vec![script.clone()], Some(authority.acceptor("http/1.1"))).await;
    let two = Server2::start(vec![script[1..].to_vec()], 100, Some(authority.acceptor("h2"))).await;
    for (address, protocol) in [(one.address, Protocol::Http1), (two.address, http2(100))] {
        let mut settings = settings("https", address, 6, COMPLETE);
        settings.protocol = protocol;
        settings.trust = Trust::Authority(authority.file.clone());
        let report = run(settings).await;
        assert_eq!(report.streams.completed, 6, "{protocol:?}: {:?}", report.streams);
        assert_eq!((report.events.total, report.heartbeats.total), (6, 6), "{protocol:?}");
    }
}

#[tokio::test]
async fn a_server_nobody_vouches_for_is_refused_by_name() {
    let (known, other) = (Authority::new("known"), Authority::new("other"));
    let server = Server::start_with(vec![vec![ok(EVENTS), Hang]], Some(other.acceptor("http/1.1"))).await;
    let mut settings = settings("https", server.address, 2, COMPLETE);
    settings.trust = Trust::Authority(known.file.clone());
    let report = run(settings.clone()).await;
    assert_eq!(failed(&report, "tls_failed"), 2, "{:?}", report.streams);
    settings.trust = Trust::Authority("/nonexistent.pem".into());
    let error = load::run(settings, |_| {}).await.unwrap_err();
    assert!(error.is_config() && error.to_string().starts_with("/nonexistent.pem cannot be used"), "{error}");
}

#[tokio::test]
async fn https_without_http2_is_told_from_a_failure() {
    let authority = Authority::new("alpn");
    let acceptor = authority.acceptor("");
    let server = Server::start_with(vec![vec![ok(EVENTS), Hang]], Some(acceptor)).await;
    let mut settings = settings("https", server.address, 2, COMPLETE);
    settings.protocol = http2(1);
    settings.trust = Trust::Authority(authority.file.clone());
    let report = run(settings).await;
    let named = failed(&report, "no_http2") + failed(&report, "tls_failed");
    assert_eq!(named, 2, "{:?}", report.streams);
}

#[tokio::test]
async fn a_missing_end_an_error_in_the_stream_and_a_clean_end_are_three_things() {
    let (token, done) = (chunk("data: {\"choices\":[{}]}\n\n"), chunk("data: [DONE]\n\n"));
    let error = chunk("data: {\"error\":{\"message\":\"out of memory\"}}\n\n");
    let server = Server::start(vec![
        vec![ok(EVENTS), token.clone(), done.clone(), Finish],
        vec![ok(EVENTS), token.clone(), Finish],
        vec![ok(EVENTS), token.clone(), error.clone(), done, Finish],
        vec![ok(EVENTS), token, error, Wait(20)],
    ])
    .await;
    let mut settings = settings("http", server.address, 8, COMPLETE);
    let unjudged = run(settings.clone()).await;
    assert_eq!((unjudged.streams.completed, failed(&unjudged, "cut_closed")), (6, 2), "{:?}", unjudged.streams);
    settings.api = Some(Api::OPENAI_CHAT);
    let report = run(settings).await;
    assert_eq!((report.streams.completed, report.events.ends_seen), (2, 2), "{:?}", report.streams);
    assert_eq!((failed(&report, "end_missing"), failed(&report, "error_in_stream")), (2, 4), "{:?}", report.streams);
}

#[tokio::test]
async fn heartbeats_are_told_apart_by_their_bytes_and_those_missed_are_counted() {
    let script = vec![
        ok(EVENTS),
        Wait(30),
        chunk(": ping - 2026-12-01 10:00:00\r\n\r\n"),
        Beat(b"\n", 5, 50),
        Wait(170),
        chunk("\n"),
        chunk("event: ping\ndata: {\"type\": \"ping\"}\n\n"),
        Wait(50),
        chunk("event: message_stop\ndata: {}\n\n"),
        Finish,
    ];
    let server = Server::start(vec![script]).await;
    let mut settings = settings("http", server.address, 4, COMPLETE);
    settings.api = Some(Api::ANTHROPIC);
    let report = run(settings).await;
    assert_eq!(report.streams.completed, 4);
    assert_eq!(report.events.total, 4, "a ping is no event of this API");
    let kinds = &report.heartbeats.kinds;
    assert_eq!((kinds["\\n"], kinds[": ping - #-#-# #:#:#\\r\\n\\r\\n"]), (24, 4), "{kinds:?}");
    assert_eq!(report.heartbeats.total, 32, "{kinds:?}");
    let regularity = &report.heartbeats.regularity;
    let period_ms = regularity.period_ms.unwrap();
    assert!((45.0..80.0).contains(&period_ms), "{regularity:?}");
    assert!((4..=12).contains(&regularity.missed), "two or three a stream, in the pause of 170 ms: {regularity:?}");
    assert!(report.first_heartbeat_ms.unwrap().p50 >= 29.0);
    assert!(report.ttft_ms.unwrap().p50 > report.first_heartbeat_ms.unwrap().p50);
}

#[tokio::test]
async fn ids_that_repeat_or_are_left_out_are_counted() {
    let events = ["1", "2", "2", "5"].map(|id| format!("id: {id}\ndata: x\n\n")).concat();
    let server = Server::start(vec![vec![ok(EVENTS), chunk(events), chunk("data: none\n\n"), Finish]]).await;
    let report = run(settings("http", server.address, 3, COMPLETE)).await;
    assert_eq!((report.events.ids_repeated, report.events.ids_missing), (3, 9));
}

#[tokio::test]
async fn a_connection_that_takes_no_more_requests_is_followed_by_another() {
    let server = Server2::start(vec![vec![chunk("data: 1\n\n"), Finish]], 100, None).await;
    server.requests_max.store(5, Ordering::Relaxed);
    let shape = Shape::Closed { concurrency: 2, within: Duration::from_secs(10) };
    let mut settings = settings("http", server.address, 22, shape);
    settings.protocol = http2(100);
    let report = run(settings).await;
    assert_eq!(report.streams.completed, 22, "{:?}", report.streams);
    assert!(server.connections.load(Ordering::Relaxed) >= 4);
}
