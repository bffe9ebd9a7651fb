//! What a sweep costs in process, without sockets: per entry that is not due, and per entry that is sent a heartbeat.
//!
//! `cargo bench --bench sweep`. Criterion prints the time of one whole visit and its throughput in entries.

#![expect(clippy::disallowed_types, reason = "a bench times real threads and sockets by the wall clock")]

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use heartline::__private::Sweep;
use heartline::{Heartline, KeepAlive};
use http_body::{Body, Frame};

/// Registered streams; the largest is what one process holds at most.
const SIZES: [usize; 3] = [10_000, 100_000, 1_000_000];

/// Visits in one interval: after so many every entry is due.
const VISITS: u32 = 8;

/// A body that waits forever.
struct Silent;

impl Body for Silent {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Pending
    }
}

/// Streams of a runtime that nobody drives, so that no other sweep runs.
struct Streams {
    _runtime: tokio::runtime::Runtime,
    bodies: Vec<KeepAlive<Silent>>,
    sweep: Sweep,
    tick: u32,
}

impl Streams {
    fn new(count: usize) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime starts");
        let heart = Heartline::builder().build().expect("the defaults are valid");
        let entered = runtime.enter();
        let bodies = (0..count).map(|_| heart.keep_alive(Silent)).collect();
        drop(entered);
        let mut streams = Self { _runtime: runtime, bodies, sweep: Sweep::new(&heart), tick: 0 };
        assert_eq!(streams.poll_all(), 0);
        streams
    }

    /// Polls every body, as their connections do after a wake; returns how many heartbeats came.
    fn poll_all(&mut self) -> usize {
        let mut context = Context::from_waker(Waker::noop());
        let mut heartbeats = 0;
        for body in &mut self.bodies {
            while Pin::new(&mut *body).poll_frame(&mut context).is_ready() {
                heartbeats += 1;
            }
        }
        heartbeats
    }
}

fn sweep(criterion: &mut Criterion) {
    for size in SIZES {
        let mut streams = Streams::new(size);

        let mut group = criterion.benchmark_group("sweep_not_due");
        group.throughput(Throughput::Elements(size as u64));
        group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
            bencher.iter(|| streams.sweep.visit(streams.tick));
        });
        group.finish();

        let mut group = criterion.benchmark_group("sweep_sent");
        group.throughput(Throughput::Elements(size as u64)).sample_size(10);
        group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
            bencher.iter_custom(|rounds| {
                let mut swept = Duration::ZERO;
                for _ in 0..rounds {
                    streams.tick += VISITS;
                    let begun = Instant::now();
                    streams.sweep.visit(streams.tick);
                    swept += begun.elapsed();
                    assert_eq!(streams.poll_all(), size);
                }
                swept
            });
        });
        group.finish();
    }
}

criterion_group! {
    name = sweeps;
    config = Criterion::default().warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    targets = sweep
}
criterion_main!(sweeps);
