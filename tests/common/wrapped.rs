//! The property of `bytes_property` once more, through the public API: a wrapped body, the interval task, paused time.

use super::common::{heart, seconds};
use super::neutral::{Scenario, Step, compare};
use super::pieces::{DOCUMENT_PIECES, EVENT_PIECES, LINE_PIECES, scenario, stream};
use bytes::Bytes;
use futures::channel::mpsc::{UnboundedReceiver, unbounded};
use futures::{FutureExt, StreamExt};
use heartline::{Format, KeepAliveStream};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::convert::Infallible;

type Wrapped = KeepAliveStream<UnboundedReceiver<Result<Bytes, Infallible>>>;

/// What is ready now, onto `wire`. True at the stream's end.
fn read_ready(wrapped: &mut Wrapped, wire: &mut Vec<u8>) -> bool {
    while let Some(item) = wrapped.next().now_or_never() {
        match item {
            Some(bytes) => wire.extend_from_slice(&bytes.expect("nothing ends this stream early")),
            None => return true,
        }
    }
    false
}

/// Lets one interval pass, and the sweep of one stream: it yields nine times.
async fn wait_an_interval() {
    tokio::time::advance(seconds(1)).await;
    for _ in 0..32 {
        tokio::task::yield_now().await;
    }
}

/// Plays a scenario against a wrapped stream; a due heartbeat is an interval of silence. Returns how many went out.
async fn play(scenario: &Scenario) -> Result<u32, String> {
    let heart = heart(1);
    let (engine, inner) = unbounded();
    let settings = heart.stream().format(scenario.format).form(scenario.shape.form.clone());
    let mut wrapped = settings.wrap_stream(inner);
    let (mut stream, mut wire) = (Vec::new(), Vec::new());
    for step in &scenario.steps {
        match step {
            Step::Pass(bytes) => {
                stream.extend_from_slice(bytes);
                engine.unbounded_send(Ok(bytes.clone())).expect("the stream is live");
            }
            Step::Beat => wait_an_interval().await,
        }
        assert!(!read_ready(&mut wrapped, &mut wire), "the stream ended before its engine did");
    }
    let heartbeats = heart.streams()[0].heartbeats;
    drop(engine);
    assert!(read_ready(&mut wrapped, &mut wire), "the stream goes on after its engine's end");
    assert_eq!(heart.active(), 0);
    compare(scenario, &stream, &wire).map(|()| heartbeats)
}

/// Plays many scenarios of one format; enough of their heartbeats must have gone out for this to mean something.
fn play_many(format: Format, stream: impl Strategy<Value = Vec<u8>>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let mut runner =
        TestRunner::new(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() });
    let heartbeats = std::cell::Cell::new(0);
    let result = runner.run(&scenario(format, stream), |mut scenario| {
        // Time is played too, at some cost: not all 300 steps of the longest ones.
        let end = scenario.steps.len().min(STEPS_MAX);
        scenario.steps.truncate(end);
        let sent = runtime.block_on(play(&scenario)).map_err(TestCaseError::fail)?;
        heartbeats.set(heartbeats.get() + sent);
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    assert!(heartbeats.get() > CASES / 4, "only {} heartbeats went out", heartbeats.get());
}

#[test]
fn wrapped_event_streams_decode_as_bare_ones() {
    play_many(Format::EventStream, stream(EVENT_PIECES, 2));
}

#[test]
fn wrapped_json_lines_decode_as_bare_ones() {
    play_many(Format::Ndjson, stream(LINE_PIECES, 0));
}

#[test]
fn wrapped_json_decodes_as_bare() {
    play_many(Format::Json, stream(DOCUMENT_PIECES, 2));
}

const CASES: u32 = 256;
const STEPS_MAX: usize = 60;
