//! What a token pays for being kept alive, in instructions: the two polls of `body.rs`, once each, under valgrind.
//!
//! `cargo bench --bench instructions`; needs valgrind and `cargo install gungraun-runner` of the version in `Cargo.lock`.
//! The figure is the difference between `kept` and `bare`: at most 350, `docs/performance.md` has what it is.

#![allow(missing_docs, reason = "the functions that gungraun makes have none")]

use std::hint::black_box;
use std::pin::Pin;
use std::task::{Context, Waker};
use std::time::Duration;

use gungraun::{library_benchmark, library_benchmark_group, main};
use heartline::{Heartline, KeepAlive};
use tokio::runtime::Runtime;

#[path = "body/tokens.rs"]
mod tokens;

use tokens::{Tokens, poll_twice};

/// A body after its first token: what is done once per stream is not part of the figure.
fn bare() -> Box<Tokens> {
    let mut body = Box::<Tokens>::default();
    poll_twice(Pin::new(&mut *body), &mut Context::from_waker(Waker::noop()));
    body
}

/// The same within `KeepAlive`, and the runtime it is registered with; boxed, so that moving them counts nothing.
fn kept(max_silence: Option<Duration>) -> Box<(Runtime, KeepAlive<Tokens>)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime starts");
    let builder = max_silence.into_iter().fold(Heartline::builder(), heartline::Builder::max_silence);
    let heart = builder.build().expect("the settings are valid");
    let entered = runtime.enter();
    let mut body = heart.keep_alive(Tokens::default());
    drop(entered);
    poll_twice(Pin::new(&mut body), &mut Context::from_waker(Waker::noop()));
    Box::new((runtime, body))
}

#[library_benchmark]
#[bench::token(setup = bare)]
fn token_bare(mut body: Box<Tokens>) -> Box<Tokens> {
    black_box(poll_twice(Pin::new(black_box(&mut *body)), &mut Context::from_waker(Waker::noop())));
    body
}

#[library_benchmark]
#[bench::token(args = (None), setup = kept)]
#[bench::token_with_max_silence(args = (Some(Duration::from_secs(600))), setup = kept)]
fn token_kept(mut kept: Box<(Runtime, KeepAlive<Tokens>)>) -> Box<(Runtime, KeepAlive<Tokens>)> {
    black_box(poll_twice(Pin::new(black_box(&mut kept.1)), &mut Context::from_waker(Waker::noop())));
    kept
}

library_benchmark_group!(name = tokens_group, benchmarks = [token_bare, token_kept]);
main!(library_benchmark_groups = tokens_group);
