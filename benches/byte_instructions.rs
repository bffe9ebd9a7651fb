//! Instructions of the byte rooms, counted by valgrind: `cargo bench --bench byte_instructions`.
//!
//! Needs valgrind and `cargo install gungraun-runner --version 0.20.0`.

#![allow(missing_docs, reason = "the functions that gungraun makes have none")]

#[path = "common/frames.rs"]
mod frames;

use bytes::Bytes;
use gungraun::{library_benchmark, library_benchmark_group, main};
use heartline::__private::Machine;
use heartline::{Form, Format};
use std::hint::black_box;

/// A stream that has begun, and its next frame.
fn stream(format: Format, frame: Bytes) -> (Machine, Bytes) {
    let mut machine = Machine::new(format);
    machine.pass(frame.clone());
    machine.pass_watched(frame.clone());
    (machine, frame)
}

fn of(name: &str) -> (Machine, Bytes) {
    let (_, format, frame) =
        frames::tokens().into_iter().find(|(token, ..)| *token == name).expect("a frame of this name");
    stream(format, frame)
}

type Done = (Machine, (Bytes, bool));

#[library_benchmark(setup = of)]
#[bench::chat_200_bytes("chat_200_bytes")]
#[bench::anthropic("anthropic")]
#[bench::responses("responses")]
#[bench::ollama("ollama")]
fn pass((mut machine, frame): (Machine, Bytes)) -> Done {
    let passed = black_box(&mut machine).pass(black_box(frame));
    (machine, passed)
}

#[library_benchmark(setup = of)]
#[bench::chat_200_bytes("chat_200_bytes")]
#[bench::anthropic("anthropic")]
fn pass_watched((mut machine, frame): (Machine, Bytes)) -> Done {
    let passed = black_box(&mut machine).pass_watched(black_box(frame));
    (machine, passed)
}

// The cost of measuring: subtract it.
#[library_benchmark(setup = of)]
#[bench::empty("chat_200_bytes")]
fn nothing((mut machine, frame): (Machine, Bytes)) -> Done {
    let frame = black_box(frame);
    black_box(&mut machine);
    (machine, (frame, true))
}

/// A stream between events.
fn between_events() -> Machine {
    of("chat_200_bytes").0
}

#[library_benchmark]
#[bench::newline(setup = between_events)]
fn beat(mut machine: Machine) -> (Machine, Option<Bytes>) {
    let heartbeat = black_box(&mut machine).beat(black_box(&Form::newline()));
    (machine, heartbeat)
}

library_benchmark_group!(name = rooms; benchmarks = nothing, pass, pass_watched, beat);
main!(library_benchmark_groups = rooms);
