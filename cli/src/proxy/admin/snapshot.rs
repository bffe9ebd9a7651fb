//! Everything the live page shows, at one moment. Pure; taken by `feed` once a second.

use std::cmp::Reverse;
use std::time::Duration;

use serde::Serialize;

use super::super::state::{IntervalTotals, LiveStream, Phase, State};
use super::hops::Worth;
use super::listing::Row;

/// One moment of the proxy.
#[derive(Debug, Serialize)]
pub(super) struct Snapshot<'a> {
    version: &'static str,
    phase: &'static str,
    uptime_ms: u64,
    /// The longest of the intervals in use.
    interval_ms: u64,
    /// Responses that are registered for heartbeats.
    streams: usize,
    connections: usize,
    /// Requests under way that no heartbeat can reach: still without a response, or not a live stream.
    others: usize,
    tunnels: usize,
    reloads: u64,
    /// Streams that have ended.
    ended: u64,
    /// In streams ended and live.
    heartbeats: u64,
    /// The longest silence of an engine in which heartbeats went out, in streams ended and live.
    bridged_ms_max: u64,
    silence: Histogram,
    hops: Vec<Worth>,
    /// The streams whose engines have been silent longest.
    worst: Vec<Row<'a>>,
}

impl<'a> Snapshot<'a> {
    /// What `state`, the live exchanges and the sums over ended streams amount to.
    pub(super) fn new(state: &State, all: &'a [LiveStream], ended: &[IntervalTotals], uptime: Duration) -> Self {
        let live: Vec<LiveStream> = all.iter().filter(|stream| stream.format.is_some()).cloned().collect();
        let mut sums = heartline::Totals::default();
        ended.iter().for_each(|interval| sums += interval.totals);
        let interval = ended.iter().filter(|sums| sums.is_in_use).map(|sums| sums.interval).max();
        let live_beats: u64 = live.iter().map(|stream| u64::from(stream.heartbeats)).sum();
        let live_bridged = live.iter().map(|stream| stream.bridged).max().unwrap_or_default();
        Self {
            version: env!("CARGO_PKG_VERSION"),
            phase: word(state.phase),
            uptime_ms: millis(uptime),
            interval_ms: millis(interval.unwrap_or_default()),
            streams: live.len(),
            connections: state.connections,
            others: all.len().saturating_sub(live.len()).saturating_sub(state.tunnels),
            tunnels: state.tunnels,
            reloads: state.reloads,
            ended: sums.streams,
            heartbeats: sums.heartbeats + live_beats,
            bridged_ms_max: millis(sums.bridged_max.max(live_bridged)),
            silence: Histogram::of(&live),
            hops: Worth::at_all(ended, &live),
            worst: worst(all),
        }
    }
}

/// How long live streams have been silent now, in slots whose upper bounds are `below_s`; the last slot has none.
#[derive(Debug, Serialize, PartialEq, Eq)]
struct Histogram {
    below_s: [u64; BOUNDS.len()],
    /// By what the engine last sent: what hops would see without heartbeats.
    engine: [u64; BOUNDS.len() + 1],
    /// By what last went out: what hops see.
    wire: [u64; BOUNDS.len() + 1],
}

impl Histogram {
    fn of(live: &[LiveStream]) -> Self {
        let mut histogram = Self { below_s: BOUNDS, engine: Default::default(), wire: Default::default() };
        let slot = |silence: Duration| BOUNDS.partition_point(|bound| silence >= Duration::from_secs(*bound));
        for stream in live {
            histogram.engine[slot(stream.content_silence)] += 1;
            histogram.wire[slot(stream.silence)] += 1;
        }
        histogram
    }
}

/// The exchanges that heartbeats keep alive come first: for the others nobody knows how silent they are.
fn worst(all: &[LiveStream]) -> Vec<Row<'_>> {
    let mut order: Vec<&LiveStream> = all.iter().collect();
    order.sort_unstable_by_key(|stream| (stream.format.is_none(), Reverse(stream.content_silence), stream.id));
    order.into_iter().take(WORST).map(Row::from).collect()
}

pub(super) fn word(phase: Phase) -> &'static str {
    match phase {
        Phase::Serving => "serving",
        Phase::Draining => "draining",
        Phase::Ending => "ending",
        Phase::Stopped => "stopped",
    }
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Close where tokens live, and at the limits that matter.
const BOUNDS: [u64; 8] = [1, 5, 10, 20, 30, 60, 100, 300];
/// More rows than these say nothing new; `/streams` has them all.
const WORST: usize = 12;

#[cfg(test)]
mod tests {
    use super::super::tests::{forgotten, live, seconds, used};
    use super::*;

    #[test]
    fn a_silence_is_counted_by_the_engine_and_on_the_wire() {
        let mut stream = live(1);
        (stream.content_silence, stream.silence) = (seconds(100), Duration::from_millis(999));
        let histogram = Histogram::of(&[stream.clone(), stream]);
        assert_eq!(histogram.engine, [0, 0, 0, 0, 0, 0, 0, 2, 0]);
        assert_eq!(histogram.wire, [2, 0, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn live_and_ended_add_up() {
        let mut stream = live(1);
        (stream.heartbeats, stream.bridged) = (4, seconds(70));
        let all = [stream, LiveStream { format: None, ..live(2) }];
        let sums = [forgotten(seconds(10)), used(seconds(20))];
        let state = State { exchanges: 2, ..State::default() };
        let snapshot = Snapshot::new(&state, &all, &sums, seconds(9));
        assert_eq!((snapshot.streams, snapshot.others, snapshot.heartbeats), (1, 1, 4));
        assert_eq!((snapshot.bridged_ms_max, snapshot.interval_ms), (70_000, 20_000));
        let avoided =
            snapshot.hops.iter().filter(|hop| hop.avoided > 0).map(|hop| (hop.limit().as_secs(), hop.avoided));
        assert_eq!(avoided.collect::<Vec<_>>(), [(50, 1), (55, 1), (60, 1)]);
    }

    #[test]
    fn the_worst_are_the_most_silent_and_few() {
        let mut all: Vec<_> = (0..40).map(live).collect();
        all[7].content_silence = seconds(40);
        all[9].content_silence = seconds(50);
        all[3].format = None;
        all[3].content_silence = seconds(600);
        let worst: Vec<_> = worst(&all).iter().map(|row| row.id).collect();
        assert_eq!((worst.len(), &worst[..3]), (WORST, &[9, 7, 0][..]));
    }
}
