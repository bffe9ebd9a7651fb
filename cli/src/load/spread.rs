//! A distribution of times. Each worker fills its own; `report` adds them and reads the percentiles.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Collects times with three significant digits in fixed memory, and the largest one exactly.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Spread {
    micros: Histogram<u64>,
    ns_max: u64,
}

impl Spread {
    /// Creates an empty distribution.
    pub(super) fn new() -> Self {
        Self {
            micros: Histogram::new_with_bounds(1, MICROS_MAX, DIGITS)
                .unwrap_or_else(|_| unreachable!("constant bounds that the crate accepts")),
            ns_max: 0,
        }
    }

    /// Adds one time.
    pub(super) fn add(&mut self, ns: u64) {
        self.micros.saturating_record(ns / 1_000);
        self.ns_max = self.ns_max.max(ns);
    }

    /// Adds one time of a series that should have come every `every_ns`, and those that were missed because of it.
    pub(super) fn add_expected(&mut self, ns: u64, every_ns: u64) {
        // Within bounds by the `min`, so nothing is refused.
        let _ = self.micros.record_correct((ns / 1_000).min(MICROS_MAX), every_ns / 1_000);
        self.ns_max = self.ns_max.max(ns);
    }

    /// Adds what another one collected.
    pub(super) fn merge(&mut self, other: &Self) {
        // Same bounds, so nothing is refused.
        let _ = self.micros.add(&other.micros);
        self.ns_max = self.ns_max.max(other.ns_max);
    }

    /// Adds the same time several times.
    pub(super) fn add_times(&mut self, ns: u64, times: u64) {
        // Within bounds by the `min`, so nothing is refused.
        let _ = self.micros.record_n((ns / 1_000).min(MICROS_MAX), times);
        self.ns_max = self.ns_max.max(ns);
    }

    /// Returns the largest time in nanoseconds; 0 when there is nothing.
    pub(super) fn ns_max(&self) -> u64 {
        self.ns_max
    }

    /// Returns the median in microseconds, `None` when there is nothing.
    pub(super) fn median_us(&self) -> Option<u64> {
        (!self.micros.is_empty()).then(|| self.micros.value_at_quantile(0.5))
    }

    /// Returns each time in microseconds that came, with how often.
    pub(super) fn micros(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.micros.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value()))
    }

    /// Returns how many times were added.
    pub(super) fn count(&self) -> u64 {
        self.micros.len()
    }

    /// Returns how many of the times are at least this, within 0.1 %.
    pub(super) fn count_at_least(&self, ns: u64) -> u64 {
        let us = ns / 1_000;
        if us > MICROS_MAX || self.ns_max < ns { 0 } else { self.micros.count_between(us, MICROS_MAX) }
    }

    /// Returns which time so many of all are at most, in milliseconds; `None` when there is nothing.
    pub(super) fn quantile_ms(&self, quantile: f64) -> Option<f64> {
        let max = millis(self.ns_max);
        (!self.micros.is_empty()).then(|| (self.micros.value_at_quantile(quantile) as f64 / 1_000.0).min(max))
    }

    /// Returns the histogram and the largest time in nanoseconds.
    pub(super) fn parts(&self) -> (&Histogram<u64>, u64) {
        (&self.micros, self.ns_max)
    }

    /// Makes a distribution from its parts; `None` when they hold a time longer than any run's.
    pub(super) fn of_parts(micros: &Histogram<u64>, ns_max: u64) -> Option<Self> {
        let mut spread = Self::new();
        spread.micros.add(micros).ok()?;
        spread.ns_max = ns_max;
        Some(spread)
    }

    /// Returns how many times fall into each of so many ranges of the same width, from the least time to the largest.
    pub(super) fn bars(&self, bars: usize) -> Vec<Bar> {
        let (from_us, to_us) = (self.micros.min(), (self.ns_max / 1_000).max(self.micros.min()));
        let width = (to_us - from_us) as f64 / bars as f64;
        let edge = |bar: usize| millis(self.ns_max).min((from_us as f64 + width * bar as f64) / 1_000.0);
        let mut found: Vec<_> = (1..=bars).map(|bar| Bar { to_ms: edge(bar), count: 0 }).collect();
        for (us, count) in self.micros() {
            let bar = (us.saturating_sub(from_us) as f64 / width.max(1.0)) as usize;
            found[bar.min(bars - 1)].count += count;
        }
        found
    }

    /// Returns the percentiles, `None` when there is nothing.
    pub(super) fn distribution(&self) -> Option<Distribution> {
        if self.micros.is_empty() {
            return None;
        }
        let max = millis(self.ns_max);
        let at = |quantile| (self.micros.value_at_quantile(quantile) as f64 / 1_000.0).min(max);
        Some(Distribution { p50: at(0.5), p90: at(0.9), p99: at(0.99), p99_9: at(0.999), max })
    }
}

/// One range of times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bar {
    pub(super) to_ms: f64,
    pub(super) count: u64,
}

/// Percentiles of a time, in milliseconds; within 0.1 % but for `max`, which is exact.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Distribution {
    /// Half of all are at most this.
    pub p50: f64,
    /// 90 % are at most this.
    pub p90: f64,
    /// 99 % are at most this.
    pub p99: f64,
    /// 99.9 % are at most this.
    pub p99_9: f64,
    /// The largest.
    pub max: f64,
}

/// Returns milliseconds with whole microseconds.
pub(super) fn millis(ns: u64) -> f64 {
    (ns / 1_000) as f64 / 1_000.0
}

/// The largest time told apart: the longest phase a run may have is seven days.
const MICROS_MAX: u64 = 7 * 24 * 3_600 * 1_000_000;

/// Significant digits kept: 0.1 %, in some 250 KB a distribution.
const DIGITS: u8 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_has_no_percentiles() {
        assert_eq!(Spread::new().distribution(), None);
    }

    #[test]
    fn percentiles_of_two_workers_are_those_of_both() {
        let (mut one, mut other) = (Spread::new(), Spread::new());
        for ms in 1..=500 {
            one.add(ms * 1_000_000);
            other.add((ms + 500) * 1_000_000);
        }
        one.merge(&other);
        let all = one.distribution().unwrap();
        assert!((all.p50 - 500.0).abs() <= 0.5, "{all:?}");
        assert!((all.p99_9 - 999.0).abs() <= 1.0, "{all:?}");
        assert_eq!(all.max, 1_000.0);
    }

    #[test]
    fn one_long_stall_counts_for_the_ticks_it_swallowed() {
        let mut lag = Spread::new();
        for _ in 0..90 {
            lag.add_expected(0, 10_000_000);
        }
        lag.add_expected(100_000_000, 10_000_000);
        let lag = lag.distribution().unwrap();
        assert!(lag.p99 > 80.0, "{lag:?}");
    }
}
