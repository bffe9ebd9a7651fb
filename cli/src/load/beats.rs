//! Heartbeats apart from events: how regularly they came, how many were missed, which bytes they were. Filled by
//! `record`, added up over workers, read by `report`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::spread::{Distribution, Spread, millis};

/// What one worker, or all of them, heard of heartbeats in the hold phase.
#[derive(Clone, Debug)]
pub(super) struct Beats {
    pub(super) total: u64,
    /// Between two heartbeats of one stream with no event between them.
    pub(super) between: Spread,
    /// From the last byte of each open stream to the end of the hold phase.
    pub(super) since: Spread,
    pub(super) kinds: Kinds,
}

impl Beats {
    /// Creates the books of nothing heard.
    pub(super) fn new() -> Self {
        Self { total: 0, between: Spread::new(), since: Spread::new(), kinds: Kinds::default() }
    }

    /// Adds what another worker heard.
    pub(super) fn merge(&mut self, other: &Self) {
        self.total += other.total;
        self.between.merge(&other.between);
        self.since.merge(&other.since);
        self.kinds.merge(&other.kinds);
    }
}

/// Works out from the times between heartbeats, and from the last byte to the end, which period was kept, and how well.
///
/// The period is the median time between two heartbeats, whatever was promised: jitter is how far each time lies from it,
/// and a time, or a silence at the end, of one and a half periods or longer has missed its heartbeats.
pub(super) fn regularity(between: &Spread, since: &Spread) -> Regularity {
    let Some(period_us) = between.median_us().filter(|period_us| *period_us > 0) else {
        return Regularity::default();
    };
    let mut jitter = Spread::new();
    let mut missed = 0;
    for (us, times) in between.micros() {
        jitter.add_times(us.abs_diff(period_us) * 1_000, times);
        missed += missed_in(us, period_us) * times;
    }
    for (us, times) in since.micros() {
        missed += missed_in(us, period_us) * times;
    }
    Regularity { period_ms: Some(millis(period_us * 1_000)), jitter_ms: jitter.distribution(), missed }
}

/// How regularly heartbeats came.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Regularity {
    /// The median time between two heartbeats of one stream with no event between them; `None` when there were none.
    pub period_ms: Option<f64>,
    /// How far the times between heartbeats were from the period.
    pub jitter_ms: Option<Distribution>,
    /// How many heartbeats should have come by the period and did not.
    pub missed: u64,
}

/// How many heartbeats a silence of this length has missed.
fn missed_in(us: u64, period_us: u64) -> u64 {
    ((us + period_us / 2) / period_us).saturating_sub(1)
}

/// Heartbeats by the bytes they were made of, written with escapes; digits are one `#`, so that a clock in a comment
/// makes no kind of its own.
#[derive(Clone, Debug, Default)]
pub(super) struct Kinds {
    /// The last bytes seen as they came, with their place in `counts`: most heartbeats of a run are the same.
    last: Option<(Vec<u8>, usize)>,
    counts: Vec<(String, u64)>,
}

impl Kinds {
    /// Counts one heartbeat.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        if let Some((last, place)) = &self.last
            && last == bytes
        {
            self.counts[*place].1 += 1;
            return;
        }
        let place = self.place(kind_of(bytes));
        self.counts[place].1 += 1;
        if bytes.len() <= KIND_BYTES_MAX {
            self.last = Some((bytes.to_owned(), place));
        }
    }

    /// Adds what another one counted.
    pub(super) fn merge(&mut self, other: &Self) {
        for (kind, heartbeats) in &other.counts {
            let place = self.place(kind.clone());
            self.counts[place].1 += heartbeats;
        }
    }

    /// Returns the counts by kind.
    pub(super) fn counts(&self) -> BTreeMap<String, u64> {
        self.counts.iter().cloned().collect()
    }

    fn place(&mut self, kind: String) -> usize {
        let kind = if self.counts.len() < KINDS_MAX { kind } else { OTHER.to_owned() };
        let known = self.counts.iter().position(|(known, _)| *known == kind);
        known.unwrap_or_else(|| {
            self.counts.push((kind, 0));
            self.counts.len() - 1
        })
    }
}

fn kind_of(bytes: &[u8]) -> String {
    let mut kind = String::new();
    let mut digits = false;
    for byte in &bytes[..bytes.len().min(KIND_BYTES_MAX)] {
        if byte.is_ascii_digit() {
            if !digits {
                kind.push('#');
            }
            digits = true;
        } else {
            digits = false;
            kind.extend(std::ascii::escape_default(*byte).map(char::from));
        }
    }
    if bytes.len() > KIND_BYTES_MAX {
        kind.push('…');
    }
    kind
}

/// Heartbeats longer than this are named by their beginning: the longest seen carries a date and is 45 bytes.
const KIND_BYTES_MAX: usize = 64;

/// The most kinds told apart; a server sends one or two.
const KINDS_MAX: usize = 16;

/// The kind of what found no room.
const OTHER: &str = "other";

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_missed_heartbeat_is_one_that_the_observed_period_had_promised() {
        let mut beats = Beats::new();
        for ms in [100, 100, 100, 101, 99, 300, 140] {
            beats.between.add(ms * MS);
        }
        beats.since.add(90 * MS);
        beats.since.add(260 * MS);
        let found = regularity(&beats.between, &beats.since);
        assert_eq!(found.period_ms.map(f64::round), Some(100.0));
        assert_eq!(found.missed, 2 + 2, "two in the gap of 300, two before the end");
        let jitter = found.jitter_ms.unwrap();
        assert!(jitter.p50 <= 1.1 && jitter.max >= 195.0, "{jitter:?}");
    }

    #[test]
    fn without_two_heartbeats_there_is_no_period() {
        let mut beats = Beats::new();
        beats.since.add(9_000 * MS);
        assert_eq!(regularity(&beats.between, &beats.since), Regularity::default());
    }

    #[test]
    fn kinds_are_written_with_escapes_and_a_clock_makes_no_new_one() {
        let mut kinds = Kinds::default();
        for bytes in ["\n", ":\n", "\n", ": ping - 2026-12-01 10:00:01\r\n\r\n", ": ping - 2026-12-01 10:00:02\r\n\r\n"]
        {
            kinds.add(bytes.as_bytes());
        }
        let counts = kinds.counts();
        assert_eq!((counts["\\n"], counts[":\\n"]), (2, 1));
        assert_eq!(counts[": ping - #-#-# #:#:#\\r\\n\\r\\n"], 2, "{counts:?}");
    }

    #[test]
    fn endless_variety_of_heartbeats_keeps_a_bounded_list() {
        let mut kinds = Kinds::default();
        for byte in b'a'..=b'z' {
            kinds.add(&[b':', byte, b'\n']);
        }
        assert_eq!(kinds.counts().len(), KINDS_MAX + 1);
        assert_eq!(kinds.counts()[OTHER], 26 - KINDS_MAX as u64);
    }
}
