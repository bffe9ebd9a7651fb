//! What registering and removing a stream costs, how long a registration may have to wait while half a million streams are
//! swept, and what one stream's channel costs against the alternatives.
//!
//! `cargo bench --bench registry`; started without cargo's `--bench` flag it makes one short pass.

#![expect(clippy::disallowed_types, reason = "a bench times real threads and sockets by the wall clock")]

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use criterion::{BenchmarkId, Criterion};
use heartline::{Heartline, KeepAlive};
use http_body::{Body, Frame};
use tokio::runtime::{Builder, Runtime};

#[path = "../src/beat/cell.rs"]
#[allow(dead_code, unused_imports, reason = "the bench needs the ordering of heartbeats only, and not the tests")]
mod cell;
#[path = "registry/channels.rs"]
mod channels;
#[path = "registry/latency.rs"]
mod latency;
#[path = "../src/beat/sync.rs"]
#[allow(unused_imports, reason = "shared with other parts of the library")]
mod sync;

/// Threads that register and remove at the same time.
const THREADS: [u32; 3] = [1, 2, 4];

/// A body that waits forever.
struct Silent;

impl Body for Silent {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Pending
    }
}

fn main() {
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    latency::print(if is_bench { 500_000 } else { 5_000 });
    channels::print_heap(if is_bench { 100_000 } else { 1_000 });
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(2))
        .configure_from_args();
    register_and_drop(&mut criterion);
    channels::order_and_obey(&mut criterion);
    criterion.final_summary();
}

fn register_and_drop(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("register_and_drop");
    for (name, population) in [("among_none", 0), ("among_100k", 100_000)] {
        let (runtime, heart) = broadcaster(Duration::from_secs(3600));
        let _held = hold(&runtime, &heart, population);
        for threads in THREADS {
            group.bench_function(BenchmarkId::new(name, format!("{threads}_threads")), |bencher| {
                // The time of one thread's rounds while the others do as many.
                bencher.iter_custom(|rounds| churn(&runtime, &heart, threads, rounds));
            });
        }
    }
    group.finish();
}

/// Registers and removes `rounds` streams on each of so many threads; returns the mean time a thread took.
fn churn(runtime: &Runtime, heart: &Heartline, threads: u32, rounds: u64) -> Duration {
    let taken: Duration = std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    let _entered = runtime.enter();
                    let begun = Instant::now();
                    for _ in 0..rounds {
                        drop(std::hint::black_box(heart.keep_alive(Silent)));
                    }
                    begun.elapsed()
                })
            })
            .collect();
        running.into_iter().map(|thread| thread.join().expect("a thread does not panic")).sum()
    });
    taken / threads
}

/// A broadcaster and the runtime that sweeps it.
fn broadcaster(interval: Duration) -> (Runtime, Heartline) {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_time().build().expect("a runtime starts");
    (runtime, Heartline::builder().interval(interval).build().expect("the interval is valid"))
}

/// So many registered streams.
fn hold(runtime: &Runtime, heart: &Heartline, count: usize) -> Vec<KeepAlive<Silent>> {
    let _entered = runtime.enter();
    (0..count).map(|_| heart.keep_alive(Silent)).collect()
}
