//! What changed between two runs: signed differences, and the settings that differ. Asked by `heartline load compare`.

use std::fmt;

use serde::Serialize;

use super::asked::Asked;
use super::report::Report;
use super::spread::Distribution;
use super::verdict::share;

/// Two runs side by side.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Comparison {
    /// Settings that differ: the name, before, after.
    pub settings: Vec<(String, String, String)>,
    /// Every figure that one of the two has.
    pub changes: Vec<Change>,
    /// Why one of the runs cannot be believed; then the differences say nothing.
    pub invalid: Vec<String>,
}

/// One figure before and after.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Change {
    /// Its name.
    pub name: String,
    /// Its unit: `ms`, `%`, or nothing for a number.
    pub unit: &'static str,
    /// Before, `None` without a sample.
    pub before: Option<f64>,
    /// After, `None` without a sample.
    pub after: Option<f64>,
    /// It got worse by more than was tolerated.
    pub regressed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Better {
    Lower,
    Higher,
    /// Says how the client fared, not the server.
    Neither,
}

impl Comparison {
    /// Compares two runs; a figure that is worse by more than `tolerance`, a share of what it was, has regressed.
    ///
    /// Where the first run had samples and the second has none, the figure has regressed too. Differences too small to
    /// measure, below a millisecond or a tenth of a percent of streams, never have.
    pub fn new(before: &Report, after: &Report, tolerance: f64) -> Self {
        let mut changes = Vec::new();
        let mut add = |name: String, unit: &'static str, better: Better, pair: (Option<f64>, Option<f64>)| {
            if pair != (None, None) {
                let regressed = regressed(better, unit, pair, tolerance);
                changes.push(Change { name, unit, before: pair.0, after: pair.1, regressed });
            }
        };
        let times: [(&str, TimesOf); 8] = [
            ("silence", |report| report.silence_ms),
            ("ttft", |report| report.ttft_ms),
            ("gap", |report| report.gap_ms),
            ("connect", |report| report.connect_ms),
            ("headers", |report| report.headers_ms),
            ("first-byte", |report| report.first_byte_ms),
            ("first-heartbeat", |report| report.first_heartbeat_ms),
            ("heartbeat-jitter", |report| report.heartbeats.regularity.jitter_ms),
        ];
        let points: [(&str, PointOf); 4] =
            [("p50", |d| d.p50), ("p99", |d| d.p99), ("p99.9", |d| d.p99_9), ("max", |d| d.max)];
        for (name, of) in times {
            for (point, at) in points {
                add(format!("{name}.{point}"), "ms", Better::Lower, (of(before).map(at), of(after).map(at)));
            }
        }
        let both = |of: fn(&Report) -> f64| (Some(of(before)), Some(of(after)));
        let percent = |part: u64, whole: u64| share(part, whole) * 100.0;
        let error_rate = |report: &Report| percent(report.streams.failed.values().sum(), report.streams.requested);
        let cut_rate = |report: &Report| percent(report.cut(), report.streams.opened);
        let held_rate = |report: &Report| percent(report.streams.held_min, report.streams.requested);
        add("error-rate".to_owned(), "%", Better::Lower, (Some(error_rate(before)), Some(error_rate(after))));
        add("cut-rate".to_owned(), "%", Better::Lower, (Some(cut_rate(before)), Some(cut_rate(after))));
        if before.settings.shape == "hold" && after.settings.shape == "hold" {
            add("held-rate".to_owned(), "%", Better::Higher, (Some(held_rate(before)), Some(held_rate(after))));
        }
        add("events-per-second".to_owned(), "", Better::Higher, both(|report| report.events.per_second));
        add("heartbeats-a-stream".to_owned(), "", Better::Neither, both(|report| report.heartbeats.per_stream));
        add("heartbeats-missed".to_owned(), "", Better::Lower, both(|r| r.heartbeats.regularity.missed as f64));
        add("client-cpu".to_owned(), "%", Better::Neither, both(|report| report.client.cpu_percent));

        let mut invalid = Vec::new();
        for (which, report) in [("the first run", before), ("the second run", after)] {
            if !report.client.valid {
                invalid.push(format!("{which} is invalid: {}", report.client.reasons.join("; ")));
            }
        }
        Self { settings: differences(&before.settings, &after.settings), changes, invalid }
    }

    /// Returns the figures that got worse by more than was tolerated.
    pub fn regressions(&self) -> impl Iterator<Item = &Change> {
        self.changes.iter().filter(|change| change.regressed)
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, before, after) in &self.settings {
            writeln!(f, "Setting     {name}: {before} -> {after}")?;
        }
        writeln!(f, "{:<22}{:>12}{:>12}{:>12}{:>10}", "", "before", "after", "change", "")?;
        for change in &self.changes {
            writeln!(f, "{change}")?;
        }
        for reason in &self.invalid {
            writeln!(f, "Verdict     {reason}")?;
        }
        match self.regressions().count() {
            0 => write!(f, "Verdict     nothing got worse by more than was tolerated"),
            worse => write!(f, "Verdict     {worse} figures REGRESSED"),
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |value: Option<f64>| value.map_or("none".to_owned(), |value| format!("{value:.1}"));
        let name = format!("{} {}", self.name, self.unit);
        write!(f, "{:<22}{:>12}{:>12}", name.trim(), number(self.before), number(self.after))?;
        if let (Some(before), Some(after)) = (self.before, self.after) {
            write!(f, "{:>+12.1}", after - before)?;
            if before > 0.0 {
                write!(f, "{:>+8.1} %", (after - before) / before * 100.0)?;
            } else {
                write!(f, "{:>10}", "")?;
            }
        } else {
            write!(f, "{:>22}", "")?;
        }
        if self.regressed { write!(f, "  worse") } else { Ok(()) }
    }
}

/// Returns the settings that differ: the name and both values, as the result files write them.
pub(super) fn differences(before: &Asked, after: &Asked) -> Vec<(String, String, String)> {
    let plain = |asked: &Asked| match serde_json::to_value(asked) {
        Ok(serde_json::Value::Object(fields)) => fields,
        _ => serde_json::Map::new(),
    };
    let (before, after) = (plain(before), plain(after));
    let shown = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    before
        .iter()
        .filter_map(|(name, was)| {
            let is = after.get(name)?;
            (was != is).then(|| (name.clone(), shown(was), shown(is)))
        })
        .collect()
}

fn regressed(better: Better, unit: &str, (before, after): (Option<f64>, Option<f64>), tolerance: f64) -> bool {
    let (Some(before), Some(after)) = (before, after) else {
        // Samples that are gone are not better; samples that are new are not worse.
        return before.is_some() && better != Better::Neither;
    };
    let worse = match better {
        Better::Lower => after - before,
        Better::Higher => before - after,
        Better::Neither => return false,
    };
    let least = match unit {
        "ms" => LEAST_MS,
        "%" => LEAST_PERCENT,
        _ => 0.0,
    };
    worse > least && worse > before * tolerance
}

/// What the clock and the scheduler add to a time without anyone's fault.
const LEAST_MS: f64 = 1.0;

/// One stream in a thousand.
const LEAST_PERCENT: f64 = 0.1;

/// Finds one distribution of a report.
type TimesOf = fn(&Report) -> Option<Distribution>;

/// Finds one percentile of a distribution.
type PointOf = fn(Distribution) -> f64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::test_report;

    #[test]
    fn a_run_compared_with_itself_has_not_changed() {
        let report = test_report::of_part(0, 1);
        let comparison = Comparison::new(&report, &report, 0.0);
        assert!(comparison.settings.is_empty());
        assert!(comparison.invalid[0].starts_with("the first run is invalid: 1 of 100 streams did not open"));
        assert_eq!(comparison.regressions().count(), 0);
        assert!(comparison.to_string().contains("nothing got worse"));
    }

    #[test]
    fn what_got_worse_is_signed_and_named() {
        let before = test_report::of_part(0, 1);
        let mut after = before.clone();
        after.silence_ms.as_mut().unwrap().p99 += 100.0;
        after.settings.rate_per_second = 7;
        let comparison = Comparison::new(&before, &after, 0.1);
        let names: Vec<_> = comparison.regressions().map(|change| change.name.as_str()).collect();
        assert_eq!(names, ["silence.p99"]);
        let shown = comparison.to_string();
        assert!(shown.contains("rate_per_second: 2000 -> 7") && shown.contains("+100.0"), "{shown}");
        assert_eq!(Comparison::new(&before, &after, 1.0).regressions().count(), 0, "tolerated");
        assert_eq!(Comparison::new(&after, &before, 0.0).regressions().count(), 0, "better");
    }

    #[test]
    fn samples_that_are_gone_are_a_regression() {
        let before = test_report::of_part(0, 1);
        let mut after = before.clone();
        after.gap_ms = None;
        assert_eq!(Comparison::new(&before, &after, 0.5).regressions().count(), 4);
        assert_eq!(Comparison::new(&after, &before, 0.5).regressions().count(), 0);
    }
}
