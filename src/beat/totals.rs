//! [`Totals`]: what the streams that have ended came to. Kept by `core`, written by `guard` when a stream leaves.

use std::ops::AddAssign;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::hops::LIMITS;

/// Sums over the streams of one broadcaster that have ended, as [`Heartline::totals`](crate::Heartline::totals) reads them.
///
/// Those of several broadcasters add up with `+=`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Totals {
    /// How many streams have ended.
    pub streams: u64,
    /// How many heartbeats went out in them.
    pub heartbeats: u64,
    /// The longest silence of the engine, in any of them, in which heartbeats went out; in whole milliseconds.
    pub bridged_max: Duration,
    bridged: [u64; LIMITS.len()],
}

impl Totals {
    /// In how many streams the engine was silent for longer than `limit` while heartbeats went out: as many as a hop with
    /// that limit would have cut without them, one stream counting once.
    ///
    /// Silences are kept by [`LIMITS`], those of common hops, and the count is exact for these; for another limit it is
    /// that of the next longer one, so never too high. They have a resolution of an eighth of the interval.
    pub fn bridged_longer_than(&self, limit: Duration) -> u64 {
        let from = LIMITS.partition_point(|known| *known < limit);
        self.bridged[from..].iter().sum()
    }
}

impl AddAssign for Totals {
    fn add_assign(&mut self, other: Self) {
        self.streams += other.streams;
        self.heartbeats += other.heartbeats;
        self.bridged_max = self.bridged_max.max(other.bridged_max);
        for (own, others) in self.bridged.iter_mut().zip(other.bridged) {
            *own += others;
        }
    }
}

/// Where streams write their sums when they leave; counters, which pair with nothing, so that every access is relaxed.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    streams: AtomicU64,
    heartbeats: AtomicU64,
    bridged_max_ms: AtomicU64,
    /// Streams by the highest of [`LIMITS`] that their longest bridged silence exceeded.
    bridged: [AtomicU64; LIMITS.len()],
}

impl Ledger {
    /// A stream has ended that was sent `heartbeats` and whose engine was silent for `bridged` at most meanwhile.
    pub(crate) fn close(&self, heartbeats: u32, bridged: Duration) {
        self.streams.fetch_add(1, Ordering::Relaxed);
        if heartbeats == 0 {
            return; // most streams: nothing was bridged either
        }
        self.heartbeats.fetch_add(u64::from(heartbeats), Ordering::Relaxed);
        let bridged_ms = u64::try_from(bridged.as_millis()).unwrap_or(u64::MAX);
        self.bridged_max_ms.fetch_max(bridged_ms, Ordering::Relaxed);
        let exceeded = LIMITS.partition_point(|limit| *limit < bridged);
        if let Some(highest) = exceeded.checked_sub(1) {
            self.bridged[highest].fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn totals(&self) -> Totals {
        Totals {
            streams: self.streams.load(Ordering::Relaxed),
            heartbeats: self.heartbeats.load(Ordering::Relaxed),
            bridged_max: Duration::from_millis(self.bridged_max_ms.load(Ordering::Relaxed)),
            bridged: std::array::from_fn(|at| self.bridged[at].load(Ordering::Relaxed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_stream_counts_for_every_limit_that_its_silence_exceeded() {
        let ledger = Ledger::default();
        ledger.close(0, seconds(0));
        ledger.close(2, seconds(60));
        ledger.close(3, seconds(61));
        ledger.close(40, seconds(1_200));
        let totals = ledger.totals();
        assert_eq!((totals.streams, totals.heartbeats, totals.bridged_max), (4, 45, seconds(1_200)));
        for (limit, count) in [(5, 3), (55, 3), (60, 2), (100, 1), (600, 1), (601, 0)] {
            assert_eq!(totals.bridged_longer_than(seconds(limit)), count, "{limit} s");
        }
        assert_eq!(totals.bridged_longer_than(seconds(56)), 2, "counted as for 60 s");
    }

    #[test]
    fn totals_of_broadcasters_add_up() {
        let (one, other) = (Ledger::default(), Ledger::default());
        one.close(1, seconds(35));
        other.close(4, seconds(130));
        let mut sum = one.totals();
        sum += other.totals();
        assert_eq!((sum.streams, sum.heartbeats, sum.bridged_max), (2, 5, seconds(130)));
        assert_eq!((sum.bridged_longer_than(seconds(30)), sum.bridged_longer_than(seconds(100))), (2, 1));
    }
}
