//! The hops that cut silent responses, and how many streams each would have cut without heartbeats. Pure; used by
//! `snapshot` and `metrics`.

use std::time::Duration;

use serde::Serialize;

use super::super::state::{IntervalTotals, LiveStream};

/// Hops that cut alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hop {
    pub(super) name: &'static str,
    pub(super) limit: Duration,
}

/// What heartbeats were worth at one kind of hop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Worth {
    name: &'static str,
    limit_s: u64,
    /// Streams, ended and live, whose engine was silent for longer than the limit while heartbeats came oftener.
    pub(super) avoided: u64,
    /// Whether heartbeats come oftener than the limit everywhere: otherwise this hop still cuts.
    is_covered: bool,
}

impl Worth {
    /// The worth at `hop`, from what ended and what lives.
    pub(super) fn of(hop: Hop, ended: &[IntervalTotals], live: &[LiveStream]) -> Self {
        // A heartbeat that comes later than the cut saves nothing, so such streams do not count.
        let ended_avoided: u64 = ended
            .iter()
            .filter(|sums| sums.interval < hop.limit)
            .map(|sums| sums.totals.bridged_longer_than(hop.limit))
            .sum();
        let live_avoided =
            live.iter().filter(|stream| stream.interval < hop.limit && stream.bridged > hop.limit).count();
        Self {
            name: hop.name,
            limit_s: hop.limit.as_secs(),
            avoided: ended_avoided + live_avoided as u64,
            is_covered: ended.iter().all(|sums| !sums.is_in_use || sums.interval < hop.limit),
        }
    }

    /// The limit.
    pub(super) fn limit(&self) -> Duration {
        Duration::from_secs(self.limit_s)
    }
}

const fn hop(limit_s: u64, name: &'static str) -> Hop {
    Hop { name, limit: Duration::from_secs(limit_s) }
}

/// Limits as their vendors document them, those of Fastly and Azure Application Gateway second-hand. `docs/admin.md` has
/// the same table.
pub(super) const HOPS: [Hop; 10] = [
    hop(10, "Fastly"),
    hop(20, "Azure Application Gateway"),
    hop(30, "CloudFront, Azure Front Door, API Gateway"),
    hop(50, "HAProxy (as in its examples)"),
    hop(55, "Heroku"),
    hop(60, "nginx, AWS ALB, Apache, Fly.io"),
    hop(100, "Cloudflare"),
    hop(240, "Azure Load Balancer, Container Apps"),
    hop(300, "Envoy, fetch in Node.js"),
    hop(350, "AWS NLB"),
];

#[cfg(test)]
mod tests {
    use super::super::tests::{forgotten, live, seconds, used};
    use super::*;

    #[test]
    fn a_stream_counts_where_heartbeats_came_before_the_cut() {
        let mut slow = live(1);
        (slow.interval, slow.bridged) = (seconds(30), seconds(61));
        let worth = |limit| Worth::of(hop(limit, "a hop"), &[], std::slice::from_ref(&slow)).avoided;
        assert_eq!((worth(20), worth(30), worth(50), worth(60), worth(100)), (0, 0, 1, 1, 0));
    }

    #[test]
    fn a_hop_is_covered_when_every_interval_in_use_is_below_its_limit() {
        let covered = |sums: &[IntervalTotals]| Worth::of(hop(30, "a hop"), sums, &[]).is_covered;
        assert!(covered(&[used(seconds(10)), forgotten(seconds(30))]));
        assert!(!covered(&[used(seconds(10)), used(seconds(30))]));
    }

    #[test]
    fn the_page_and_its_documentation_name_the_same_hops() {
        let page = include_str!("../../../../docs/admin.md");
        for hop in HOPS {
            let row = format!("| {} s | {}", hop.limit.as_secs(), hop.name);
            assert!(page.contains(&row), "docs/admin.md: no row {row}");
        }
    }

    #[test]
    fn the_limit_of_each_hop_is_counted_exactly() {
        for hop in HOPS {
            assert!(heartline::Totals::limits().any(|limit| limit == hop.limit), "{}", hop.name);
        }
        assert!(HOPS.is_sorted_by_key(|hop| hop.limit));
    }
}
