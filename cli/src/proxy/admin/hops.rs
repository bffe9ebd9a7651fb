//! How many streams each hop would have cut without heartbeats. Pure; used by `snapshot` and `metrics`.

use std::time::Duration;

use serde::Serialize;

use super::super::state::{IntervalTotals, LiveStream};
use heartline::hops::{self, Limit};

/// What heartbeats were worth at one kind of hop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Worth {
    name: String,
    limit_s: u64,
    /// Streams, ended and live, whose engine was silent for longer than the limit while heartbeats came oftener.
    pub(super) avoided: u64,
    /// Whether heartbeats come oftener than the limit everywhere: otherwise this hop still cuts.
    is_covered: bool,
}

impl Worth {
    /// The worth at every known hop, the strictest first, from what ended and what lives.
    pub(super) fn at_all(ended: &[IntervalTotals], live: &[LiveStream]) -> Vec<Self> {
        hops::limits().map(|limit| Self::at(limit, ended, live)).collect()
    }

    fn at(limit: Limit, ended: &[IntervalTotals], live: &[LiveStream]) -> Self {
        // A heartbeat that comes later than the cut saves nothing, so such streams do not count.
        let ended_avoided: u64 = ended
            .iter()
            .filter(|sums| sums.interval < limit.after)
            .map(|sums| sums.totals.bridged_longer_than(limit.after))
            .sum();
        let live_avoided =
            live.iter().filter(|stream| stream.interval < limit.after && stream.bridged > limit.after).count();
        Self {
            name: limit.names(),
            limit_s: limit.seconds(),
            avoided: ended_avoided + live_avoided as u64,
            is_covered: ended.iter().all(|sums| !sums.is_in_use || sums.interval < limit.after),
        }
    }

    /// The limit.
    pub(super) fn limit(&self) -> Duration {
        Duration::from_secs(self.limit_s)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{forgotten, live, seconds, used};
    use super::*;

    fn worth(limit_s: u64, ended: &[IntervalTotals], live: &[LiveStream]) -> Worth {
        let worth = Worth::at_all(ended, live).into_iter().find(|worth| worth.limit() == seconds(limit_s));
        worth.expect("a known limit")
    }

    #[test]
    fn a_stream_counts_where_heartbeats_came_before_the_cut() {
        let mut slow = live(1);
        (slow.interval, slow.bridged) = (seconds(30), seconds(61));
        let avoided = [20, 30, 50, 60, 100].map(|limit_s| worth(limit_s, &[], std::slice::from_ref(&slow)).avoided);
        assert_eq!(avoided, [0, 0, 1, 1, 0]);
    }

    #[test]
    fn a_hop_is_covered_when_every_interval_in_use_is_below_its_limit() {
        let covered = |sums: &[IntervalTotals]| worth(30, sums, &[]).is_covered;
        assert!(covered(&[used(seconds(10)), forgotten(seconds(30))]));
        assert!(!covered(&[used(seconds(10)), used(seconds(30))]));
    }
}
