//! `heartline_cli::load` as a loop: closed, open, and with a hop that cuts; what is judged, and when a run ends.
#[allow(dead_code, reason = "each test takes the steps it needs")]
mod scripted;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use heartline_cli::load::{self, Arrivals, Progress, Report, Settings, Shape, Target, Targets};
use scripted::Step::{Beat, Finish, Hang, Raw, Wait};
use scripted::{EVENTS, Server, chunk, ok};

fn settings(address: SocketAddr, shape: Shape) -> Settings {
    let mut settings = Settings::new(format!("http://{address}/events").parse().unwrap());
    settings.shape = shape;
    settings.rate_per_second = 1_000;
    settings.open_within = Duration::from_millis(300);
    settings
}

async fn run_with(settings: Settings, progress: impl FnMut(Progress)) -> Report {
    tokio::time::timeout(Duration::from_secs(20), load::run(settings, progress))
        .await
        .expect("the run ends on time")
        .unwrap()
}

async fn run(settings: Settings) -> Report {
    run_with(settings, |_| {}).await
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn failed(report: &Report, kind: &str) -> u64 {
    report.streams.failed.get(kind).copied().unwrap_or(0)
}

fn closed(concurrency: usize, within: Duration) -> Shape {
    Shape::Closed { concurrency, within }
}

fn open(arrivals: Arrivals, length: Duration) -> Shape {
    Shape::Open { arrivals, length }
}

#[tokio::test]
async fn a_closed_loop_has_so_many_at_a_time_and_so_many_in_all() {
    let server = Server::start(vec![vec![ok(EVENTS), Wait(60), chunk("data: 1\n\n"), Finish]]).await;
    let mut settings = settings(server.address, closed(4, ms(10_000)));
    settings.streams = 21;
    let most = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&most);
    let report = run_with(settings, move |now| {
        seen.fetch_max(now.open, Ordering::Relaxed);
    })
    .await;
    assert_eq!((report.streams.requested, report.streams.completed), (21, 21), "{:?}", report.streams);
    assert!((1..=4).contains(&most.load(Ordering::Relaxed)));
    let ttft = report.ttft_ms.unwrap();
    assert!(ttft.p50 >= 59.0 && ttft.p50 < 200.0, "counted from a stream's own turn: {ttft:?}");
}

#[tokio::test]
async fn a_closed_loop_that_runs_out_of_time_names_its_own_limit() {
    let server = Server::start(vec![vec![ok(EVENTS), Hang]]).await;
    let mut settings = settings(server.address, closed(3, ms(200)));
    settings.streams = 10;
    let report = run(settings).await;
    assert_eq!((report.streams.opened, failed(&report, "not_begun")), (3, 7), "{:?}", report.streams);
    let reasons = report.client.reasons.join("; ");
    assert!(reasons.contains("7 not_begun (the run ended before their turn)"), "{reasons}");
    assert!(reasons.contains("this harness's own limit") && !reasons.contains("client limit"), "{reasons}");
}

#[tokio::test]
async fn an_open_loop_goes_on_however_slow_the_server_is() {
    let server = Server::start(vec![vec![ok(EVENTS), Wait(300), chunk("data: 1\n\n"), Finish]]).await;
    let mut settings = settings(server.address, open(Arrivals::Constant, ms(400)));
    settings.rate_per_second = 100;
    settings.drain = ms(5_000);
    let report = run(settings).await;
    assert_eq!((report.streams.requested, report.streams.completed), (40, 40), "{:?}", report.streams);
    assert!(report.ttft_ms.unwrap().p50 >= 299.0);
}

#[tokio::test]
async fn what_begins_in_the_ramp_of_a_loop_is_not_judged() {
    let slow = vec![ok(EVENTS), Wait(250), chunk("data: 1\n\n"), Finish];
    let fast = vec![ok(EVENTS), chunk("data: 1\n\n"), Finish];
    // The ramp of 200 ms at up to 100/s has ten beginnings, and the server is slow for those.
    let scripts: Vec<_> = (0..30).map(|number| if number < 10 { slow.clone() } else { fast.clone() }).collect();
    let server = Server::start(scripts).await;
    let mut settings = settings(server.address, open(Arrivals::Constant, ms(200)));
    settings.rate_per_second = 100;
    settings.ramp = ms(200);
    let report = run(settings).await;
    assert_eq!(report.streams.completed, 30, "{:?}", report.streams);
    assert!(report.ttft_ms.unwrap().p90 < 200.0, "{:?}", report.ttft_ms);
}

#[tokio::test]
async fn poisson_arrivals_of_a_seed_are_the_same_each_time() {
    let server = Server::start(vec![vec![ok(EVENTS), chunk("data: 1\n\n"), Finish]]).await;
    let mut settings = settings(server.address, open(Arrivals::Poisson, ms(300)));
    settings.rate_per_second = 200;
    settings.seed = 5;
    let (one, other) = (run(settings.clone()).await, run(settings.clone()).await);
    assert_eq!(one.streams.requested, other.streams.requested);
    assert!((30..=95).contains(&one.streams.requested), "{}", one.streams.requested);
    assert_eq!(one.settings, other.settings);
    settings.seed = 6;
    assert_ne!(run(settings).await.settings, one.settings);
}

#[tokio::test]
async fn a_stream_silent_for_too_long_is_cut_as_a_hop_would() {
    let silent = vec![ok(EVENTS), chunk("\n"), Hang];
    let mute = vec![Hang];
    let server = Server::start(vec![silent, mute]).await;
    let mut settings = settings(server.address, Shape::Complete(ms(5_000)));
    settings.streams = 6;
    settings.cut_after = Some(ms(150));
    let report = run(settings).await;
    assert_eq!((failed(&report, "cut_after"), failed(&report, "cut_before_headers")), (3, 3), "{:?}", report.streams);
    assert_eq!(report.cut(), 3);
    let silence = report.silence_ms.unwrap();
    assert!(silence.p50 >= 149.0 && silence.max < 1_000.0, "{silence:?}");
}

/// Case 29: an absolute deadline kills a live stream.
#[tokio::test]
async fn an_idle_limit_never_acts_as_a_deadline_for_a_live_stream() {
    let server = Server::start(vec![vec![ok(EVENTS), Beat(b"\n", 16, 40), Finish]]).await;
    let mut settings = settings(server.address, Shape::Complete(ms(10_000)));
    settings.streams = 4;
    // Lives four times as long as it may be silent.
    settings.cut_after = Some(ms(160));
    let report = run(settings.clone()).await;
    assert_eq!((report.streams.completed, report.cut()), (4, 0), "{:?}", report.streams);

    settings.cut_after = None;
    settings.shape = Shape::Complete(ms(200));
    let reasons = run(settings).await.client.reasons;
    assert!(reasons[0].contains("4 streams had not ended") && reasons[0].contains("own limit"), "{reasons:?}");
}

/// Case 22: timers started after the client's own queue.
#[tokio::test]
async fn timers_count_from_the_intended_start_and_the_clients_own_queue_shows() {
    let server = Server::start(vec![vec![ok(EVENTS), Wait(20), chunk("data: 1\n\n"), Finish]]).await;
    let mut settings = settings(server.address, open(Arrivals::Constant, ms(300)));
    settings.rate_per_second = 100;
    // The client itself stands still for 400 ms when the first stream begins.
    settings.targets = Targets::Each(Arc::new(|index| {
        if index == 0 {
            let (_silent, waiting) = std::sync::mpsc::channel::<()>();
            let _ = waiting.recv_timeout(Duration::from_millis(400));
        }
        Target::default()
    }));
    let report = run(settings).await;
    let (waited, from_send) = (report.ttft_ms.unwrap(), report.ttft_from_send_ms.unwrap());
    assert!(waited.p90 >= 300.0, "what its users would have waited: {waited:?}");
    assert!(from_send.p50 < 200.0, "what the server took: {from_send:?}");
    assert!(report.begin_late_ms.unwrap().max >= 300.0);
    assert!(!report.client.valid);
}

/// Case 35: streams that failed to open wait for ever at the end.
#[tokio::test]
async fn streams_that_never_open_do_not_hold_up_the_end_of_a_loop() {
    let server = Server::start(vec![vec![Hang], vec![ok(EVENTS), chunk("data: 1\n\n"), Finish]]).await;
    let mut settings = settings(server.address, open(Arrivals::Constant, ms(200)));
    settings.rate_per_second = 50;
    settings.drain = ms(200);
    let report = run(settings).await;
    assert_eq!((report.streams.completed, failed(&report, "headers_unfinished")), (5, 5), "{:?}", report.streams);
}

/// Case 23: most streams fail, and the tool says all is well.
#[tokio::test]
async fn errors_of_most_streams_are_no_success_and_stay_out_of_its_latencies() {
    let busy = vec![Wait(200), Raw(b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n".to_vec()), Hang];
    let fine = vec![ok(EVENTS), chunk("data: 1\n\n"), Finish];
    let server = Server::start(vec![fine, busy.clone(), busy.clone(), busy.clone(), busy.clone(), busy]).await;
    let mut settings = settings(server.address, closed(6, ms(5_000)));
    settings.streams = 12;
    let report = run(settings).await;
    assert_eq!((report.streams.completed, failed(&report, "status_503")), (2, 10), "{:?}", report.streams);
    assert!(!report.client.valid);
    assert!(report.headers_ms.unwrap().max < 150.0, "{:?}", report.headers_ms);
}
