//! The report as a person reads it: what lived, how long it was silent, what failed, whether to believe it.

use std::fmt;

use super::Report;
use super::spread::Distribution;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let streams = &self.streams;
        writeln!(
            f,
            "Streams     {} requested, {} opened, at least {} held, {} completed, {} failed",
            streams.requested,
            streams.opened,
            streams.held_min,
            streams.completed,
            streams.failed.values().sum::<u64>()
        )?;
        writeln!(
            f,
            "Heartbeats  {} ({:.2} a stream)   Events  {} ({:.1}/s)   Bytes  {}",
            self.heartbeats.total, self.heartbeats.per_stream, self.events.total, self.events.per_second, self.bytes
        )?;
        writeln!(f)?;
        writeln!(f, "{:<12}{:>11}{:>11}{:>11}{:>11}{:>11}", "ms", "p50", "p90", "p99", "p99.9", "max")?;
        for (name, distribution) in [
            ("silence", self.silence_ms),
            ("gap", self.gap_ms),
            ("connect", self.connect_ms),
            ("headers", self.headers_ms),
            ("first byte", self.first_byte_ms),
            ("first event", self.ttft_ms),
        ] {
            row(f, name, distribution)?;
        }
        writeln!(f)?;
        write!(f, "Would be cut")?;
        let mut too_short = false;
        for (seconds, cut) in self.would_be_cut.by_seconds() {
            // A limit the hold phase never reached, and no stream either, says nothing.
            if cut == 0 && self.hold.length_ms < seconds * 1_000 {
                write!(f, "  {seconds}s: ?")?;
                too_short = true;
            } else {
                write!(f, "  {seconds}s: {cut}")?;
            }
        }
        writeln!(f, "{}", if too_short { "  (?: held for too short a time to tell)" } else { "" })?;
        for (kind, count) in &streams.failed {
            writeln!(f, "Failed      {kind}: {count}")?;
        }
        write!(f, "Client      {:.1} % of a core", self.client.cpu_percent)?;
        if let Some(lag_ms) = self.client.lag_ms {
            write!(f, ", timers late by {:.1} ms at p99, {:.1} ms at most", lag_ms.p99, lag_ms.max)?;
        }
        writeln!(f)?;
        if self.client.valid {
            return write!(f, "Verdict     valid");
        }
        write!(f, "Verdict     INVALID")?;
        for reason in &self.client.reasons {
            write!(f, "\n            {reason}")?;
        }
        Ok(())
    }
}

fn row(f: &mut fmt::Formatter<'_>, name: &str, distribution: Option<Distribution>) -> fmt::Result {
    let Some(d) = distribution else {
        return writeln!(f, "{name:<12}{:>11}", "none");
    };
    writeln!(f, "{name:<12}{:>11.1}{:>11.1}{:>11.1}{:>11.1}{:>11.1}", d.p50, d.p90, d.p99, d.p99_9, d.max)
}
