//! Time the injector needs to pass a token frame and to decide on a heartbeat: `cargo bench --bench inject`.
//!
//! Instructions, which do not vary: `benches/byte_instructions.rs`.

#[path = "common/frames.rs"]
#[allow(dead_code, reason = "the other bench of the byte rooms uses the rest")]
mod frames;

use criterion::{Criterion, criterion_group, criterion_main};
use frames::tokens;
use heartline::__private::Machine;
use heartline::{Form, Format};
use std::hint::black_box;

fn pass_tokens(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("inject_pass");
    for (name, format, frame) in tokens() {
        let mut machine = Machine::new(format);
        group.bench_function(name, |bencher| bencher.iter(|| machine.pass(black_box(frame.clone()))));
    }
    group.finish();
    // With `max_silence` the machine also looks for content.
    let mut group = criterion.benchmark_group("inject_pass_watched");
    for (name, format, frame) in tokens() {
        let mut machine = Machine::new(format);
        group.bench_function(name, |bencher| bencher.iter(|| machine.pass_watched(black_box(frame.clone()))));
    }
    group.finish();
}

fn decide_on_heartbeats(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("inject_beat");
    let block = Form::comment_block("keep-alive").expect("a valid text");
    for (name, format, form) in [
        ("newline", Format::EventStream, Form::newline()),
        ("block", Format::EventStream, block),
        ("lines", Format::Ndjson, Form::newline()),
        ("json", Format::Json, Form::newline()),
    ] {
        let mut machine = Machine::new(format);
        group.bench_function(name, |bencher| bencher.iter(|| machine.beat(black_box(&form))));
    }
    group.finish();
}

criterion_group!(benches, pass_tokens, decide_on_heartbeats);
criterion_main!(benches);
