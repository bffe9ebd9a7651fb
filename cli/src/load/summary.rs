//! The report as a person reads it: what lived, how long things took, what failed, whether to believe it.

use std::fmt::{Display, Formatter, Result};

use super::Report;
use super::spread::Distribution;
use super::words::{counted, percent, sized, timed};

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        self.success(f)?;
        self.distributions(f)?;
        self.silences(f)?;
        self.cuts(f)?;
        self.errors(f)?;
        self.verdict(f)
    }
}

impl Report {
    fn success(&self, f: &mut Formatter<'_>) -> Result {
        let streams = &self.streams;
        writeln!(
            f,
            "Success     {} of {} streams opened ({})",
            counted(streams.opened),
            counted(streams.requested),
            percent(streams.opened, streams.requested)
        )?;
        writeln!(
            f,
            "Held        at least {} at once, {} completed, {} failed; held for {}",
            counted(streams.held_min),
            counted(streams.completed),
            counted(streams.failed.values().sum()),
            timed(self.hold.length_ms as f64)
        )?;
        let events = &self.events;
        writeln!(f, "Events      {}, {:.1} a second", counted(events.total), events.per_second)?;
        if events.ids_repeated + events.ids_missing > 0 {
            let (repeated, missing) = (counted(events.ids_repeated), counted(events.ids_missing));
            writeln!(f, "            {repeated} repeated the id before, {missing} ids are missing")?;
        }
        let heartbeats = &self.heartbeats;
        write!(f, "Heartbeats  {}, {:.2} a stream", counted(heartbeats.total), heartbeats.per_stream)?;
        if let Some(period_ms) = heartbeats.regularity.period_ms {
            write!(f, "; one every {}, {} missed", timed(period_ms), counted(heartbeats.regularity.missed))?;
        }
        writeln!(f)?;
        for (kind, count) in &heartbeats.kinds {
            writeln!(f, "            {} were {kind}", counted(*count))?;
        }
        writeln!(f, "Bytes       {}", sized(self.bytes))
    }

    fn distributions(&self, f: &mut Formatter<'_>) -> Result {
        writeln!(f, "\n{:<18}{:>11}{:>11}{:>11}{:>11}{:>11}", "", "p50", "p90", "p99", "p99.9", "max")?;
        for (name, distribution, is_rare) in [
            ("Silence", self.silence_ms, false),
            ("Connect", self.connect_ms, false),
            ("Headers", self.headers_ms, false),
            ("First byte", self.first_byte_ms, false),
            ("First heartbeat", self.first_heartbeat_ms, true),
            ("First event", self.ttft_ms, false),
            ("  from its send", self.ttft_from_send_ms, true),
            ("Between events", self.gap_ms, false),
            ("Heartbeat jitter", self.heartbeats.regularity.jitter_ms, true),
        ] {
            match distribution {
                Some(distribution) => row(f, name, distribution)?,
                None if is_rare => {}
                None => writeln!(f, "{name:<18}{:>11}", "none")?,
            }
        }
        Ok(())
    }

    /// A bar for each range of silences, as wide as the streams in it are many.
    fn silences(&self, f: &mut Formatter<'_>) -> Result {
        let bars = self.histograms.silence.bars(BARS);
        let Some(most) = bars.iter().map(|bar| bar.count).max().filter(|most| *most > 0) else {
            return Ok(());
        };
        writeln!(f, "\nLargest silence of each stream")?;
        for bar in bars {
            let width = (bar.count as f64 / most as f64 * BAR_WIDTH as f64).ceil() as usize;
            let line = format!("  up to {:>9}  {:>9}  {}", timed(bar.to_ms), counted(bar.count), "■".repeat(width));
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }

    fn cuts(&self, f: &mut Formatter<'_>) -> Result {
        writeln!(f, "\nWould be cut by a hop that allows this silence")?;
        let mut unknown = false;
        for (limit, cut) in self.would_be_cut.by_limit() {
            let seconds = limit.seconds();
            // A limit the hold phase never reached, and no stream either, says nothing.
            let is_known = cut > 0 || self.hold.length_ms >= seconds * 1_000;
            let told = if is_known { counted(cut) } else { "?".to_owned() };
            unknown |= !is_known;
            writeln!(f, "  {seconds:>3} s  {:<45}{told:>11}", limit.names())?;
        }
        if unknown {
            writeln!(f, "         ?: held for {}, too short a time to tell", timed(self.hold.length_ms as f64))?;
        }
        Ok(())
    }

    fn errors(&self, f: &mut Formatter<'_>) -> Result {
        let failed = &self.streams.failed;
        if failed.is_empty() {
            return writeln!(f, "\nErrors      none");
        }
        writeln!(
            f,
            "\nErrors      {} of {} streams failed",
            counted(failed.values().sum()),
            counted(self.streams.requested)
        )?;
        let mut kinds: Vec<_> = failed.iter().collect();
        kinds.sort_by_key(|(_, streams)| std::cmp::Reverse(**streams));
        for (kind, streams) in kinds {
            writeln!(f, "  {:>10}  {kind}", counted(*streams))?;
        }
        Ok(())
    }

    fn verdict(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "\nClient      {:.1} % of a core", self.client.cpu_percent)?;
        if let Some(lag_ms) = self.client.lag_ms {
            write!(f, ", timers late by {} at p99, {} at most", timed(lag_ms.p99), timed(lag_ms.max))?;
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

fn row(f: &mut Formatter<'_>, name: &str, d: Distribution) -> Result {
    let [p50, p90, p99, p99_9, max] = [d.p50, d.p90, d.p99, d.p99_9, d.max].map(timed);
    writeln!(f, "{name:<18}{p50:>11}{p90:>11}{p99:>11}{p99_9:>11}{max:>11}")
}

/// Bars of the histogram: few, so that the whole report fits a screen.
const BARS: usize = 8;

/// Characters of the widest bar, so that a line fits 80 columns.
const BAR_WIDTH: usize = 48;

#[cfg(test)]
mod tests {
    use super::super::test_report::sample;

    #[test]
    fn success_comes_first_then_distributions_then_errors_then_the_verdict() {
        let text = sample().to_string();
        let places: Vec<_> = ["Success ", "\nSilence ", "\nErrors ", "\nVerdict "].map(|word| text.find(word)).into();
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}\n{text}");
        let figures = text.split("Verdict").next().unwrap();
        assert!(figures.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("         1  cut_reset"), "{text}");
    }

    #[test]
    fn columns_stand_under_their_names() {
        let text = sample().to_string();
        let end = |line: &str| text.lines().find(|found| found.starts_with(line)).map(|found| found.chars().count());
        assert_eq!(end("Silence"), end("First event"), "{text}");
        assert_eq!(end("Silence"), end("                          p50"), "{text}");
    }
}
