//! I6 and I7: how long a stream can be silent on the wire, in both cadences and whatever its traffic; no bursts, no delay
//! of live tokens. All with paused time, which moves to the next timer only when every task is idle.

mod common;

use bytes::Bytes;
use common::{Silent, engine, heart, pass, pass_slowly, poll_once, read_ready, seconds, settle};
use heartline::{Cadence, Format, Heartline, KeepAlive};
use http_body_util::BodyExt;
use proptest::prelude::*;
use std::time::Duration;
use tokio::time::Instant;

const INTERVAL: Duration = Duration::from_secs(8); // so that a visit is a second

fn with(cadence: Cadence) -> Heartline {
    Heartline::builder().interval(INTERVAL).cadence(cadence).build().expect("valid")
}

/// When bytes arrived, and which.
type Arrivals = Vec<(Instant, Bytes)>;

/// Reads as a connection does, until the body ends.
async fn arrivals<B>(body: KeepAlive<B>) -> Arrivals
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<heartline::BoxError>,
{
    let mut body = std::pin::pin!(body);
    let mut arrivals = Vec::new();
    while let Some(Ok(frame)) = body.as_mut().frame().await {
        arrivals.push((Instant::now(), frame.into_data().unwrap_or_default()));
    }
    arrivals
}

/// The longest silence between non-empty arrivals, the ends included, that did not begin inside a line.
fn longest_silence(began: Instant, arrivals: &Arrivals) -> Duration {
    let (mut last, mut inside_line, mut longest) = (began, false, Duration::ZERO);
    for (at, bytes) in arrivals.iter().filter(|(_, bytes)| !bytes.is_empty()) {
        if !inside_line {
            longest = longest.max(*at - last);
        }
        inside_line = !bytes.ends_with(b"\n") && !bytes.ends_with(b"\r");
        last = *at;
    }
    if inside_line { longest } else { longest.max(Instant::now() - last) }
}

/// What an engine may write at once; the line it may leave unfinished is finished by the next write.
const WRITES: &[&str] =
    &["data: 1\n\n", ": ping\n\n", "", "data: half", "\n", "\r", "\r\n", "id: 7\n", ":\n", "retry: 1\r\r"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn no_stream_is_silent_for_longer_than_the_interval_and_a_sweep(
        writes in proptest::collection::vec((0u64..20_000, 0..WRITES.len()), 0..30),
        late_ms in 0u64..8_000,
        idle in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
        runtime.block_on(async {
            let heart = with(if idle { Cadence::IdleOnly } else { Cadence::EveryTick });
            let _other = heart.keep_alive(Silent); // the task's visits began before the stream did
            tokio::time::sleep(Duration::from_millis(late_ms)).await;
            let (engine, body) = engine();
            let (began, reader) = (Instant::now(), tokio::spawn(arrivals(heart.keep_alive(body))));
            for (gap_ms, write) in writes {
                tokio::time::sleep(Duration::from_millis(gap_ms)).await;
                engine.send(WRITES[write]);
            }
            tokio::time::sleep(seconds(20)).await;
            engine.end();
            let arrivals = reader.await.expect("no panic");
            // A sweep takes no paused time, but timers have a resolution of a millisecond.
            let most = INTERVAL + Duration::from_millis(2);
            let longest = longest_silence(began, &arrivals);
            prop_assert!(longest <= most, "{longest:?} of silence in {arrivals:?}");
            Ok(())
        })?;
    }
}

#[tokio::test(start_paused = true)]
async fn idle_streams_get_a_heartbeat_after_three_quarters_to_one_interval() {
    let heart = with(Cadence::IdleOnly);
    let (engine, body) = engine();
    let reader = tokio::spawn(arrivals(heart.keep_alive(body)));
    for _ in 0..50 {
        engine.send("data: 1\n\n");
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    tokio::time::sleep(seconds(60)).await;
    engine.end();
    let arrivals = reader.await.expect("no panic");
    let beats: Vec<_> = arrivals.iter().filter(|(_, bytes)| &bytes[..] == b"\n").map(|(at, _)| *at).collect();
    let last_token = arrivals.iter().rfind(|(_, bytes)| bytes.len() > 1).expect("tokens").0;
    let (first, gaps) = (beats[0] - last_token, beats.windows(2).map(|pair| pair[1] - pair[0]));
    for gap in std::iter::once(first).chain(gaps) {
        assert!(gap >= INTERVAL.mul_f64(0.75) - Duration::from_millis(1) && gap <= INTERVAL, "{gap:?}");
    }
    assert_eq!(arrivals.len() - beats.len(), 50, "a busy stream carried none");
}

/// Case 10: a catch-up burst after a laptop's sleep.
#[tokio::test(start_paused = true)]
async fn after_five_minutes_of_pause_one_heartbeat_goes_out() {
    for cadence in [Cadence::EveryTick, Cadence::IdleOnly] {
        let heart = with(cadence);
        let mut body = heart.keep_alive(Silent);
        pass(seconds(8)).await;
        assert_eq!(read_ready(&mut body), "\n");
        pass(seconds(300)).await; // one jump: no timer fired meanwhile
        assert_eq!(read_ready(&mut body), "\n", "at once, and one");
        pass(seconds(1)).await;
        assert_eq!(read_ready(&mut body), "");
        pass_slowly(seconds(7)).await;
        assert_eq!(read_ready(&mut body), "\n", "back in step");
    }
}

/// Case 34: an item is ready exactly when the heartbeat is due.
#[tokio::test(start_paused = true)]
async fn data_that_is_ready_when_the_heartbeat_is_due_goes_instead_of_it() {
    let heart = heart(30);
    let (engine, body) = engine();
    let mut body = heart.keep_alive(body);
    pass(seconds(30)).await;
    engine.send("data: 1\n\n");
    assert_eq!(read_ready(&mut body), "data: 1\n\n");
    pass_slowly(seconds(29)).await;
    assert_eq!(read_ready(&mut body), "");
    pass_slowly(seconds(1)).await;
    assert_eq!(read_ready(&mut body), "\n");
}

/// I7: an empty frame is silence, so the heartbeat that is due goes all the same.
#[tokio::test(start_paused = true)]
async fn an_empty_frame_is_no_life() {
    let heart = heart(30);
    let (engine, body) = engine();
    let mut body = heart.keep_alive(body);
    pass(seconds(30)).await;
    engine.send("");
    assert_eq!(read_ready(&mut body), "\n");
}

/// Case 26: another's keep-alive under ours counts as life.
#[tokio::test(start_paused = true)]
async fn heartbeats_of_an_inner_keep_alive_are_life() {
    let heart = with(Cadence::IdleOnly);
    let (engine, body) = engine();
    let reader = tokio::spawn(arrivals(heart.keep_alive(body)));
    for _ in 0..20 {
        engine.send(":\n\n");
        tokio::time::sleep(seconds(5)).await;
    }
    engine.end();
    assert_eq!(reader.await.expect("no panic").len(), 20, "none of ours was needed");
}

/// Case 25 and I6: heartbeats of streams opened one after another spread over the interval instead of falling into step.
#[tokio::test(start_paused = true)]
async fn streams_opened_one_after_another_keep_their_own_phase() {
    let heart = with(Cadence::EveryTick);
    let mut bodies = Vec::new();
    for _ in 0..8 {
        bodies.push(heart.keep_alive(Silent));
        pass(seconds(1)).await;
    }
    for _ in 0..3 {
        for late in 0..8 {
            let beats: Vec<_> = bodies.iter_mut().map(|body| read_ready(body).len()).collect();
            assert_eq!(beats.iter().sum::<usize>(), 1, "visit {late}: {beats:?}");
            pass(seconds(1)).await;
        }
    }
}

/// Case 25 and I6: a task with live tokens runs between slices, however many streams a sweep wakes.
#[tokio::test(start_paused = true)]
async fn a_sweep_of_ten_thousand_lets_other_tasks_run_in_between() {
    let heart = heart(30);
    let mut bodies: Vec<_> = (0..10_000).map(|_| heart.keep_alive(Silent)).collect();
    let woken = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    for body in &mut bodies {
        let woken = woken.clone();
        let waker = common::Hook::waker(move || {
            woken.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        });
        let polled = http_body::Body::poll_frame(std::pin::Pin::new(body), &mut std::task::Context::from_waker(&waker));
        assert!(polled.is_pending());
    }
    settle().await;
    tokio::time::advance(seconds(30)).await;
    let (mut before, mut most, mut turns) = (0, 0, 0);
    while before < 10_000 && turns < 2_000 {
        tokio::task::yield_now().await; // this task is the live stream
        let now = woken.load(std::sync::atomic::Ordering::Relaxed);
        most = most.max(now - before);
        before = now;
        turns += 1;
    }
    assert_eq!(before, 10_000);
    assert!(most <= 32, "{most} heartbeats between two turns of a live stream");
}

/// Case 32: a strict JSON client; none before one interval, none after the body began.
#[tokio::test(start_paused = true)]
async fn json_gets_none_before_one_interval_and_none_after_its_first_byte() {
    for late_ms in [0, 300, 999] {
        let heart = with(Cadence::EveryTick);
        let _other = heart.keep_alive(Silent);
        pass(Duration::from_millis(late_ms)).await;
        let (engine, body) = engine();
        let mut body = heart.stream().format(Format::Json).wrap(body);
        let began = Instant::now();
        let first = loop {
            pass(Duration::from_millis(50)).await;
            if !read_ready(&mut body).is_empty() {
                break began.elapsed();
            }
        };
        assert!(first >= INTERVAL && first <= INTERVAL + Duration::from_millis(1_100), "{first:?}");
        engine.send("{");
        assert_eq!(read_ready(&mut body), "{");
        pass_slowly(seconds(60)).await;
        assert_eq!(read_ready(&mut body), "");
    }
}

/// Case 30: a client that is always one event behind.
#[tokio::test(start_paused = true)]
async fn an_event_is_passed_whole_at_once_whatever_its_line_ends() {
    let heart = heart(30);
    let (engine, body) = engine();
    let mut body = heart.keep_alive(body);
    for event in ["data: 1\n\n", "data: 2\r\r", "data: 3\r\n\r\n"] {
        engine.send(event);
        assert_eq!(read_ready(&mut body), event);
    }
}

/// I1: a heartbeat that is due inside a line waits and is counted as held; the rest of the line is life.
#[tokio::test(start_paused = true)]
async fn heartbeat_waits_for_the_end_of_the_line() {
    let heart = heart(30);
    let (engine, body) = engine();
    let mut body = heart.keep_alive(body);
    engine.send("data: ha");
    assert_eq!(read_ready(&mut body), "data: ha");
    pass(seconds(30)).await;
    assert!(poll_once(&mut body).is_none());
    engine.send("lf\n");
    assert_eq!(read_ready(&mut body), "lf\n");
    pass(seconds(30)).await;
    assert_eq!(read_ready(&mut body), ":\n", "inside the event, at a line's end");
    engine.send("\n");
    assert_eq!(read_ready(&mut body), "\n");
    pass(seconds(30)).await;
    assert_eq!(read_ready(&mut body), "\n");
}
