//! What a demo found: the figures of both runs, as a table for people and as JSON for scripts.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::load::{self, Distribution};

/// The figures of one demo; serialised they are the output of `heartline demo --json -`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Streams asked for in each run.
    pub streams: usize,
    /// Silence after which the gateway cut, in milliseconds.
    pub cut_after_ms: u64,
    /// Time between heartbeats of the second run, in milliseconds.
    pub interval_ms: u64,
    /// The run without heartbeats.
    pub without: Figures,
    /// The run with heartbeats.
    pub with: Figures,
    /// Every completed stream of both runs decoded to exactly the engine's events.
    pub events_identical: bool,
}

/// What became of the streams of one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Figures {
    /// Streams that reached the engine's own end.
    pub completed: usize,
    /// Streams the gateway ended because they were silent.
    pub cut: usize,
    /// Streams that ended in any other way.
    pub failed: usize,
    /// Time to the first token of the streams that got one.
    pub ttft_ms: Spread,
    /// Longest silence each stream saw.
    pub silence_ms: Spread,
}

/// Three points of a distribution over streams, in milliseconds; `None` when there was no stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// Half of the streams lie at or below.
    pub p50: Option<f64>,
    /// 99 in 100 streams lie at or below.
    pub p99: Option<f64>,
    /// The largest.
    pub max: Option<f64>,
}

impl From<Option<Distribution>> for Spread {
    fn from(distribution: Option<Distribution>) -> Self {
        let point = |of: fn(&Distribution) -> f64| distribution.as_ref().map(|all| hundredths(of(all)));
        Self { p50: point(|all| all.p50), p99: point(|all| all.p99), max: point(|all| all.max) }
    }
}

impl Figures {
    /// Takes the figures of one run from the load's report and from the gateway's count of cuts.
    ///
    /// The gateway knows which ends were its own; what neither completed nor was cut has failed, seen or unseen.
    pub(super) fn new(streams: usize, cuts: usize, load: &load::Report) -> Self {
        let completed = usize::try_from(load.streams.completed).unwrap_or(usize::MAX);
        let ended_badly = streams.saturating_sub(completed);
        let cut = cuts.min(ended_badly);
        Self {
            completed,
            cut,
            failed: ended_badly - cut,
            ttft_ms: load.ttft_ms.into(),
            silence_ms: load.silence_ms.into(),
        }
    }
}

/// Rounds to hundredths: finer is noise.
fn hundredths(ms: f64) -> f64 {
    (ms * 100.0).round() / 100.0
}

/// Rounds to whole milliseconds.
pub(super) fn milliseconds(duration: Duration) -> u64 {
    let rounded = duration.saturating_add(Duration::from_micros(500));
    u64::try_from(rounded.as_millis()).unwrap_or(u64::MAX)
}

impl fmt::Display for Report {
    /// Writes the table, without a line break at its end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let every = format!("with, every {}", seconds(Some(self.interval_ms as f64)));
        writeln!(
            f,
            "{} streams, and a gateway that cuts after {} of silence",
            self.streams,
            seconds(Some(self.cut_after_ms as f64)),
        )?;
        writeln!(f)?;
        writeln!(
            f,
            "{:<20}{:>10}{:>7}{:>8}   {:>22}   {:>22}",
            "heartbeats", "completed", "cut", "failed", "first token p50 / max", "silence p50 / max"
        )?;
        row(f, "none", &self.without)?;
        writeln!(f)?;
        row(f, &every, &self.with)
    }
}

/// Writes the line of one run.
fn row(f: &mut fmt::Formatter<'_>, name: &str, figures: &Figures) -> fmt::Result {
    let pair = |spread: &Spread| format!("{} / {}", seconds(spread.p50), seconds(spread.max));
    write!(
        f,
        "{name:<20}{:>10}{:>7}{:>8}   {:>22}   {:>22}",
        figures.completed,
        figures.cut,
        figures.failed,
        pair(&figures.ttft_ms),
        pair(&figures.silence_ms),
    )
}

/// Writes milliseconds as a person reads them: `850 ms`, `3 s`, `7.96 s`, or a dash for none.
pub(super) fn seconds(ms: Option<f64>) -> String {
    match ms {
        None => "-".to_owned(),
        Some(ms) if ms < 999.5 => format!("{ms:.0} ms"),
        Some(ms) => {
            let text = format!("{:.2}", ms / 1_000.0);
            format!("{} s", text.trim_end_matches('0').trim_end_matches('.'))
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A report as a good run gives it.
    pub(in crate::demo) fn shown() -> Report {
        let spread = |p50, p99, max| Spread { p50: Some(p50), p99: Some(p99), max: Some(max) };
        Report {
            streams: 200,
            cut_after_ms: 3_000,
            interval_ms: 1_000,
            without: Figures {
                completed: 74,
                cut: 126,
                failed: 0,
                ttft_ms: spread(1_480.0, 2_920.0, 2_960.0),
                silence_ms: spread(3_000.0, 3_001.0, 3_002.25),
            },
            with: Figures {
                completed: 200,
                cut: 0,
                failed: 0,
                ttft_ms: spread(4_000.0, 7_930.0, 8_001.0),
                silence_ms: spread(1_000.0, 1_003.0, 1_004.0),
            },
            events_identical: true,
        }
    }

    #[test]
    fn the_json_has_exactly_the_promised_fields() {
        let mut report = shown();
        report.without.ttft_ms = Spread::default();
        assert_eq!(
            serde_json::to_string(&report).expect("plain data"),
            "{\"streams\":200,\"cut_after_ms\":3000,\"interval_ms\":1000,\
             \"without\":{\"completed\":74,\"cut\":126,\"failed\":0,\
             \"ttft_ms\":{\"p50\":null,\"p99\":null,\"max\":null},\
             \"silence_ms\":{\"p50\":3000.0,\"p99\":3001.0,\"max\":3002.25}},\
             \"with\":{\"completed\":200,\"cut\":0,\"failed\":0,\
             \"ttft_ms\":{\"p50\":4000.0,\"p99\":7930.0,\"max\":8001.0},\
             \"silence_ms\":{\"p50\":1000.0,\"p99\":1003.0,\"max\":1004.0}},\
             \"events_identical\":true}"
        );
    }

    #[test]
    fn the_table_reads_well() {
        let expected = "\
200 streams, and a gateway that cuts after 3 s of silence

heartbeats           completed    cut  failed    first token p50 / max        silence p50 / max
none                        74    126       0          1.48 s / 2.96 s               3 s / 3 s
with, every 1 s            200      0       0               4 s / 8 s               1 s / 1 s";
        let table = shown().to_string();
        let squeeze = |text: &str| {
            let lines = text.lines();
            lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
        };
        assert_eq!(squeeze(&table), squeeze(expected));
    }

    #[test]
    fn milliseconds_are_written_as_a_person_reads_them() {
        for (ms, text) in [
            (0.4, "0 ms"),
            (850.4, "850 ms"),
            (999.6, "1 s"),
            (1_004.0, "1 s"),
            (7_960.0, "7.96 s"),
            (20_100.0, "20.1 s"),
        ] {
            assert_eq!(seconds(Some(ms)), text);
        }
        assert_eq!(seconds(None), "-");
    }
}
