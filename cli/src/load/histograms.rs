//! The distributions of a run as a result file keeps them, whole: `merge` adds them, thresholds ask them for any
//! percentile. Made by `report`.

use serde::{Deserialize, Serialize};

use super::spread::Spread;
use super::tally::Tally;

/// Everything that was measured as a time, each one an HdrHistogram of microseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Histograms {
    pub(super) connect: Spread,
    pub(super) headers: Spread,
    pub(super) first_byte: Spread,
    pub(super) ttft: Spread,
    pub(super) ttft_from_send: Spread,
    pub(super) first_heartbeat: Spread,
    pub(super) begin_late: Spread,
    pub(super) gap: Spread,
    pub(super) silence: Spread,
    /// Between two heartbeats of one stream with no event between them.
    pub(super) between_heartbeats: Spread,
    /// From the last byte of each stream to the end of the hold phase.
    pub(super) since_last_byte: Spread,
    pub(super) lag: Spread,
}

impl Histograms {
    /// Copies those of a tally.
    pub(super) fn of(tally: &Tally) -> Self {
        Self {
            connect: tally.connect.clone(),
            headers: tally.headers.clone(),
            first_byte: tally.first_byte.clone(),
            ttft: tally.ttft.clone(),
            ttft_from_send: tally.ttft_from_send.clone(),
            first_heartbeat: tally.first_heartbeat.clone(),
            begin_late: tally.begin_late.clone(),
            gap: tally.gap.clone(),
            silence: tally.silence.clone(),
            between_heartbeats: tally.beats.between.clone(),
            since_last_byte: tally.beats.since.clone(),
            lag: tally.lag.clone(),
        }
    }

    /// Adds those of another part of the same plan, count by count.
    pub(super) fn merge(&mut self, other: &Self) {
        self.connect.merge(&other.connect);
        self.headers.merge(&other.headers);
        self.first_byte.merge(&other.first_byte);
        self.ttft.merge(&other.ttft);
        self.ttft_from_send.merge(&other.ttft_from_send);
        self.first_heartbeat.merge(&other.first_heartbeat);
        self.begin_late.merge(&other.begin_late);
        self.gap.merge(&other.gap);
        self.silence.merge(&other.silence);
        self.between_heartbeats.merge(&other.between_heartbeats);
        self.since_last_byte.merge(&other.since_last_byte);
        self.lag.merge(&other.lag);
    }

    /// Returns the distribution that a rule calls by this name.
    pub(super) fn named(&self, name: &str) -> Option<&Spread> {
        Some(match name {
            "connect" => &self.connect,
            "headers" => &self.headers,
            "first-byte" => &self.first_byte,
            "ttft" => &self.ttft,
            "ttft-from-send" => &self.ttft_from_send,
            "first-heartbeat" => &self.first_heartbeat,
            "begin-late" => &self.begin_late,
            "gap" => &self.gap,
            "silence" => &self.silence,
            "lag" => &self.lag,
            _ => return None,
        })
    }
}

/// The names that [`Histograms::named`] knows, those asked for most in front.
pub(super) const NAMES: [&str; 10] = [
    "silence",
    "ttft",
    "gap",
    "connect",
    "headers",
    "first-byte",
    "ttft-from-send",
    "first-heartbeat",
    "begin-late",
    "lag",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_known() {
        let histograms = Histograms::of(&Tally::new());
        assert!(NAMES.iter().all(|name| histograms.named(name).is_some()));
        assert!(histograms.named("silense").is_none());
    }
}
