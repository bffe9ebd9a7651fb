//! I2 and I5: wakers that come back into the registry, panic or drop things, and readers that never read.

mod common;

use common::{Hook, Silent, engine, heart, pass, poll_once, read_ready, seconds};
use heartline::{Heartline, KeepAlive};
use http_body::Body;
use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Context;

/// Polls once with a waker of the test's own.
fn poll_with(body: &mut KeepAlive<Silent>, waker: &std::task::Waker) {
    assert!(Pin::new(body).poll_frame(&mut Context::from_waker(waker)).is_pending());
}

/// Case 11: a map reference held across re-entry is a deadlock. One thread, so that a lock held would hang for ever.
#[tokio::test(start_paused = true)]
async fn a_waker_that_registers_and_drops_streams_during_a_sweep_does_not_hang_it() {
    let heart = heart(30);
    let kept: Arc<Mutex<Vec<KeepAlive<Silent>>>> = Arc::default();
    let wakes = Arc::new(AtomicUsize::new(0));
    kept.lock().expect("free").extend((0..3_000).map(|_| heart.keep_alive(Silent)));
    let mut bodies: Vec<_> = (0..3_000).map(|_| heart.keep_alive(Silent)).collect();
    for (index, body) in bodies.iter_mut().enumerate() {
        let (heart, kept, wakes) = (heart.clone(), Arc::clone(&kept), Arc::clone(&wakes));
        let waker = Hook::waker(move || {
            wakes.fetch_add(1, Ordering::Relaxed);
            let dropped = kept.lock().expect("free").pop(); // in any lane, the swept one too
            drop(dropped);
            kept.lock().expect("free").push(heart.keep_alive(Silent));
            if index % 300 == 0 {
                assert_eq!(heart.streams().len(), 6_000);
            }
        });
        poll_with(body, &waker);
    }
    pass(seconds(30)).await;
    pass(seconds(1)).await;
    assert_eq!(wakes.load(Ordering::Relaxed), 3_000);
    drop(bodies);
    kept.lock().expect("free").clear();
    assert_eq!(heart.active(), 0);
}

/// A waker's drop is foreign as well: here it drops the last handle of another stream.
#[tokio::test(start_paused = true)]
async fn a_waker_whose_drop_removes_a_stream_does_not_hang_the_removal() {
    struct DropsBody(Mutex<Option<KeepAlive<Silent>>>);
    impl std::task::Wake for DropsBody {
        fn wake(self: Arc<Self>) {}
    }
    impl Drop for DropsBody {
        fn drop(&mut self) {
            drop(self.0.get_mut().expect("free").take());
        }
    }
    let heart = heart(30);
    // 2,048 streams fill each lane twice, so that the removed one and the one its waker removes share lanes.
    let others: Vec<_> = (0..2_048).map(|_| heart.keep_alive(Silent)).collect();
    let mut bodies = Vec::new();
    for other in others {
        let mut body = heart.keep_alive(Silent);
        poll_with(&mut body, &Arc::new(DropsBody(Mutex::new(Some(other)))).into());
        bodies.push(body);
    }
    assert_eq!(heart.active(), 4_096);
    drop(bodies);
    assert_eq!(heart.active(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_waker_that_panics_costs_its_own_heartbeat_only() {
    let heart = heart(30);
    let mut bodies: Vec<_> = (0..100).map(|_| heart.keep_alive(Silent)).collect();
    let woken = Arc::new(AtomicUsize::new(0));
    for (index, body) in bodies.iter_mut().enumerate() {
        let woken = Arc::clone(&woken);
        poll_with(
            body,
            &Hook::waker(move || {
                assert!(index % 10 != 0, "this waker panics");
                woken.fetch_add(1, Ordering::Relaxed);
            }),
        );
    }
    pass(seconds(30)).await;
    assert_eq!(woken.load(Ordering::Relaxed), 90);
    assert_eq!(
        bodies.iter_mut().map(|body| read_ready(body).len()).sum::<usize>(),
        100,
        "the marks were set all the same"
    );
    pass(seconds(30)).await;
    assert_eq!(bodies.iter_mut().map(|body| read_ready(body).len()).sum::<usize>(), 100, "the task lives");
}

/// Case 4: one frozen client stalls the pings of all.
#[tokio::test(start_paused = true)]
async fn one_frozen_among_ten_thousand_delays_nobody() {
    let heart = heart(30);
    let mut frozen = heart.keep_alive(Silent);
    let mut bodies: Vec<_> = (0..9_999).map(|_| heart.keep_alive(Silent)).collect();
    for round in 0..3 {
        pass(seconds(30)).await;
        for body in &mut bodies {
            assert_eq!(read_ready(body), "\n", "round {round}");
        }
    }
    assert_eq!(read_ready(&mut frozen), "\n", "and one is pending for it, not three");
}

/// Case 9: a full channel was taken for a gone client.
#[tokio::test(start_paused = true)]
async fn a_slow_reader_stays_registered_and_a_gone_one_does_not() {
    let heart = heart(30);
    let mut slow = heart.keep_alive(Silent);
    let gone = heart.keep_alive(Silent);
    for _ in 0..10 {
        pass(seconds(30)).await;
    }
    drop(gone);
    assert_eq!(heart.active(), 1);
    assert_eq!(read_ready(&mut slow), "\n");
}

/// Case 28: the first heartbeat cancels the pending read of the inner stream.
#[tokio::test(start_paused = true)]
async fn the_inner_body_is_polled_on_across_heartbeats_and_dropped_once() {
    let heart = heart(30);
    let (engine, body) = engine();
    let mut body = heart.keep_alive(body);
    assert!(poll_once(&mut body).is_none());
    for _ in 0..3 {
        pass(seconds(30)).await;
        assert_eq!(read_ready(&mut body), "\n");
    }
    let polls = engine.polls();
    assert!(polls >= 4, "the inner body was asked first each time: {polls}");
    engine.send("data: 1\n\n");
    assert_eq!(read_ready(&mut body), "data: 1\n\n");
    engine.end();
    assert!(!engine.is_dropped());
    assert!(matches!(poll_once(&mut body), Some(None)));
    assert!(engine.is_dropped());
}

/// Case 27: send and disconnect take two locks in opposite order.
#[test]
fn threads_that_drop_bodies_during_sweeps_do_not_hang() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().expect("a runtime");
    let heart = Heartline::builder().interval(std::time::Duration::from_millis(100)).build().expect("valid");
    let threads: Vec<_> = (0..64)
        .map(|_| {
            let (heart, handle) = (heart.clone(), runtime.handle().clone());
            std::thread::spawn(move || {
                let _inside = handle.enter();
                for round in 0..40 {
                    let mut bodies: Vec<_> = (0..20).map(|_| heart.keep_alive(Silent)).collect();
                    for body in &mut bodies {
                        let heart = heart.clone();
                        let waker = Hook::waker(move || drop(heart.keep_alive(Silent)));
                        // Ready where a sweep came first: the heartbeat then waits no more.
                        let _ = Pin::new(body).poll_frame(&mut Context::from_waker(&waker));
                    }
                    if round % 8 == 0 {
                        std::thread::yield_now();
                        assert!(heart.streams().len() >= 20);
                    }
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("no panic");
    }
    assert_eq!(heart.active(), 0);
    assert!(heart.streams().is_empty());
}

/// Cases 5 and I9: a stream leaks an entry, a task or memory for each connection.
#[test]
fn a_hundred_thousand_streams_come_and_go_and_leave_nothing() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().expect("a runtime");
    let heart = Heartline::builder().interval(std::time::Duration::from_millis(100)).build().expect("valid");
    let tasks: Vec<_> = (0..100)
        .map(|index: usize| {
            let heart = heart.clone();
            runtime.spawn(async move {
                for round in 0..1_000 {
                    let (engine, body) = engine();
                    let mut body = heart.keep_alive(body);
                    match (index + round) % 5 {
                        0 => drop(body),
                        1 => {
                            engine.fail("died");
                            assert!(matches!(poll_once(&mut body), Some(Some(Err(_)))));
                        }
                        2 => {
                            engine.send("data: 1\n\n");
                            engine.end();
                            assert_eq!(read_ready(&mut body).trim(), "data: 1");
                        }
                        3 => {
                            let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
                                let _held = body;
                                std::panic::resume_unwind(Box::new("a handler's panic"));
                            }));
                            assert!(unwound.is_err());
                        }
                        _ => {
                            drop(poll_once(&mut body));
                            tokio::task::yield_now().await;
                        }
                    }
                }
            })
        })
        .collect();
    runtime.block_on(async {
        for task in tasks {
            task.await.expect("no panic");
        }
        assert_eq!(heart.active(), 0);
        assert!(heart.streams().is_empty());
        // The interval task notices at its next visit, an eighth of 100 ms away.
        let metrics = tokio::runtime::Handle::current().metrics();
        let mut tries = 0;
        while metrics.num_alive_tasks() > 0 && tries < 400 {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            tries += 1;
        }
        assert_eq!(metrics.num_alive_tasks(), 0);
    });
}

/// Counts warnings of the library.
struct Warnings(Arc<AtomicUsize>);

impl tracing::Subscriber for Warnings {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target().starts_with("heartline") && *metadata.level() == tracing::Level::WARN
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, _: &tracing::Event<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

/// Case 17: one global beat overran its interval, and nobody was told.
#[tokio::test(start_paused = true)]
async fn a_sweep_that_outlasts_its_interval_is_measured_and_warned_of() {
    let (warnings, recorder) = (Arc::new(AtomicUsize::new(0)), DebuggingRecorder::new());
    let _subscriber = tracing::subscriber::set_default(Warnings(Arc::clone(&warnings)));
    let (snapshotter, _recorder) = (recorder.snapshotter(), metrics::set_default_local_recorder(&recorder));
    let longest = |name: &str| {
        let all = snapshotter.snapshot().into_vec().into_iter();
        let values = all.filter(|(key, ..)| key.key().name() == name).map(|(.., value)| value);
        let values = values.flat_map(|value| if let DebugValue::Histogram(values) = value { values } else { vec![] });
        values.map(|seconds| seconds.into_inner()).fold(0.0, f64::max)
    };
    let heart = heart(30);
    let mut body = heart.keep_alive(Silent);
    // A waker during which 31 s pass.
    let waker = Hook::waker(|| {
        let mut advance = std::pin::pin!(tokio::time::advance(seconds(31)));
        assert!(advance.as_mut().poll(&mut Context::from_waker(std::task::Waker::noop())).is_pending());
    });
    poll_with(&mut body, &waker);
    pass(seconds(29)).await;
    assert_eq!((warnings.load(Ordering::Relaxed), longest("heartline_sweep_duration_seconds")), (0, 0.0));
    pass(seconds(1)).await;
    assert_eq!(warnings.load(Ordering::Relaxed), 1);
    assert!(longest("heartline_sweep_duration_seconds") >= 31.0);
    pass(seconds(4)).await;
    assert!(longest("heartline_sweep_lag_seconds") > 0.0, "and the visits after it are late");
}
