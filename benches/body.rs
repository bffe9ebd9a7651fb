//! What a token pays for being kept alive: one frame of 200 bytes through `KeepAlive` against the bare body, by time.
//!
//! `cargo bench --bench body`. `instructions.rs` counts the same two polls in instructions, which do not vary.

use std::hint::black_box;
use std::pin::Pin;
use std::task::{Context, Waker};
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use heartline::Heartline;

#[path = "body/tokens.rs"]
mod tokens;

use tokens::{TOKEN, Tokens, poll_twice};

fn body(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime starts");
    let _entered = runtime.enter();
    let mut context = Context::from_waker(Waker::noop());
    let mut group = criterion.benchmark_group("token_frame");
    group.throughput(Throughput::Bytes(TOKEN.len() as u64));

    let mut bare = Tokens::default();
    group.bench_function("bare", |bencher| bencher.iter(|| poll_twice(Pin::new(black_box(&mut bare)), &mut context)));

    let heart = Heartline::builder().build().expect("the defaults are valid");
    let mut kept = heart.keep_alive(Tokens::default());
    assert!(kept.is_live());
    group.bench_function("keep_alive", |bencher| {
        bencher.iter(|| poll_twice(Pin::new(black_box(&mut kept)), &mut context))
    });

    let capped = Heartline::builder().max_silence(Duration::from_secs(600)).build().expect("the cap is valid");
    let mut watched = capped.keep_alive(Tokens::default());
    group.bench_function("keep_alive_max_silence", |bencher| {
        bencher.iter(|| poll_twice(Pin::new(black_box(&mut watched)), &mut context));
    });
    group.finish();
}

criterion_group! {
    name = bodies;
    config = Criterion::default().warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(3));
    targets = body
}
criterion_main!(bodies);
