//! Rules that a run's figures must keep, such as `silence.max<30s`. Asked by the `load` command and by `merge`, once for a
//! whole plan.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::LoadError;
use super::histograms::NAMES;
use super::report::Report;
use super::verdict::share;
use crate::values;
use heartline::hops::LIMITS;

/// One rule: a figure, a comparison and a limit.
///
/// `silence.max<30s`, `ttft.p99<=5s`, `error-rate<1%`, `would-be-cut.60s<0.1%`, `streams.held>=9000`. A distribution is
/// asked for `max` or any percentile (`p50`, `p99.9`). A rule about something of which there is no sample fails: nothing
/// was shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    rule: String,
    figure: Figure,
    comparison: Comparison,
    limit: f64,
}

/// How one rule came out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Outcome {
    /// The rule, as it was written.
    pub rule: String,
    /// What was found: milliseconds, a share of 1, or a number; `None` without a sample.
    pub found: Option<f64>,
    /// The rule was kept.
    pub passed: bool,
    /// What was found, as a person reads it.
    pub shown: String,
}

#[derive(Clone, Debug, PartialEq)]
enum Figure {
    /// A quantile of the distribution of this name; 1 is its exact largest.
    Time(&'static str, f64),
    Share(Shared),
    Number(Counted),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shared {
    Errors,
    Cuts,
    WouldBeCut(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counted {
    Opened,
    Held,
    Completed,
    Failed,
    Events,
    EventsPerSecond,
    Heartbeats,
    HeartbeatsMissed,
    Bytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Below,
    AtMost,
    Above,
    AtLeast,
}

impl Threshold {
    /// Holds the rule against a report.
    pub fn judge(&self, report: &Report) -> Outcome {
        let found = self.figure.of(report);
        let shown = match (&self.figure, found) {
            (_, None) => "no sample".to_owned(),
            (Figure::Time(..), Some(ms)) => format!("{ms:.1} ms"),
            (Figure::Share(_), Some(part)) => format!("{:.3} %", part * 100.0),
            (Figure::Number(_), Some(number)) => format!("{number}"),
        };
        let passed = found.is_some_and(|found| self.comparison.holds(found, self.limit));
        Outcome { rule: self.rule.clone(), found, passed, shown }
    }
}

impl Report {
    /// Judges the rules and keeps how they came out; tells whether all were kept.
    pub fn judge(&mut self, rules: &[Threshold]) -> bool {
        self.thresholds = rules.iter().map(|rule| rule.judge(self)).collect();
        self.thresholds.iter().all(|outcome| outcome.passed)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.passed { "kept" } else { "BROKEN" };
        write!(f, "Threshold   {word:<7} {}: {}", self.rule, self.shown)
    }
}

impl FromStr for Threshold {
    type Err = LoadError;

    fn from_str(text: &str) -> Result<Self, LoadError> {
        parse(text).map_err(|why| LoadError::config(format!("the rule '{text}' cannot be used: {why}")))
    }
}

fn parse(text: &str) -> Result<Threshold, String> {
    let place = text.find(['<', '>']).ok_or("it compares nothing; write for example silence.max<30s")?;
    let (name, rest) = (text[..place].trim(), &text[place..]);
    let (comparison, limit) =
        [("<=", Comparison::AtMost), (">=", Comparison::AtLeast), ("<", Comparison::Below), (">", Comparison::Above)]
            .into_iter()
            .find_map(|(sign, comparison)| Some((comparison, rest.strip_prefix(sign)?)))
            .ok_or("it compares nothing")?;
    let figure = Figure::named(name)?;
    let limit = figure.limit(limit.trim())?;
    Ok(Threshold { rule: text.to_owned(), figure, comparison, limit })
}

impl Figure {
    fn named(name: &str) -> Result<Self, String> {
        if let Some((_, shared)) = SHARES.into_iter().find(|(known, _)| *known == name) {
            return Ok(Self::Share(shared));
        }
        if let Some((_, counted)) = COUNTS.into_iter().find(|(known, _)| *known == name) {
            return Ok(Self::Number(counted));
        }
        let (of, which) = name.split_once('.').unwrap_or((name, ""));
        if of == "would-be-cut" {
            let seconds = which.strip_suffix('s').and_then(|seconds| seconds.parse().ok());
            let known = LIMITS.map(|limit| limit.as_secs());
            return match seconds {
                Some(seconds) if known.contains(&seconds) => Ok(Self::Share(Shared::WouldBeCut(seconds))),
                _ => Err(format!("would-be-cut is known at {}", known.map(|s| format!("{s}s")).join(", "))),
            };
        }
        let Some(known) = NAMES.into_iter().find(|known| *known == of) else {
            let shares = SHARES.map(|(name, _)| name);
            let counts = COUNTS.map(|(name, _)| name);
            return Err(format!(
                "there is no '{name}'; there are {} (each with .p50, .p99.9, .max and the like), would-be-cut.60s, {}, {}",
                NAMES.join(", "),
                shares.join(", "),
                counts.join(", ")
            ));
        };
        if which == "max" {
            return Ok(Self::Time(known, 1.0));
        }
        let percent =
            which.strip_prefix('p').and_then(values::decimal).filter(|percent| (0.0..=100.0).contains(percent));
        percent
            .map(|percent| Self::Time(known, percent / 100.0))
            .ok_or_else(|| format!("{known} is a distribution; write {known}.max, {known}.p99 or {known}.p99.9"))
    }

    /// Reads the limit in the figure's unit: milliseconds, a share of 1, or a number.
    fn limit(&self, text: &str) -> Result<f64, String> {
        match self {
            Self::Time(..) => values::duration(text).map(|limit| limit.as_secs_f64() * 1e3),
            Self::Share(_) => values::share(text),
            Self::Number(_) => values::number(text).map(f64::from),
        }
    }

    fn of(&self, report: &Report) -> Option<f64> {
        match self {
            Self::Time(name, quantile) => report.histograms.named(name)?.quantile_ms(*quantile),
            Self::Share(shared) => shared.of(report),
            Self::Number(counted) => counted.of(report),
        }
    }
}

impl Shared {
    fn of(self, report: &Report) -> Option<f64> {
        let streams = &report.streams;
        let (part, whole) = match self {
            Self::Errors => (streams.failed.values().sum(), streams.requested),
            Self::Cuts => (report.cut(), streams.opened),
            Self::WouldBeCut(seconds) => {
                let cut = report.would_be_cut.after(seconds)?;
                if cut == 0 && report.hold.length_ms < seconds * 1_000 {
                    // Held for too short a time to tell.
                    return None;
                }
                (cut, report.histograms.silence.count())
            }
        };
        (whole > 0).then(|| share(part, whole))
    }
}

impl Counted {
    fn of(self, report: &Report) -> Option<f64> {
        let streams = &report.streams;
        let number = match self {
            Self::Opened => streams.opened,
            Self::Held => streams.held_min,
            Self::Completed => streams.completed,
            Self::Failed => streams.failed.values().sum(),
            Self::Events => report.events.total,
            Self::EventsPerSecond => return (report.hold.length_ms > 0).then_some(report.events.per_second),
            Self::Heartbeats => report.heartbeats.total,
            Self::HeartbeatsMissed => {
                report.heartbeats.regularity.period_ms?;
                report.heartbeats.regularity.missed
            }
            Self::Bytes => report.bytes,
        };
        Some(number as f64)
    }
}

impl Comparison {
    fn holds(self, found: f64, limit: f64) -> bool {
        match self {
            Self::Below => found < limit,
            Self::AtMost => found <= limit,
            Self::Above => found > limit,
            Self::AtLeast => found >= limit,
        }
    }
}

const SHARES: [(&str, Shared); 2] = [("error-rate", Shared::Errors), ("cut-rate", Shared::Cuts)];

const COUNTS: [(&str, Counted); 9] = [
    ("streams.opened", Counted::Opened),
    ("streams.held", Counted::Held),
    ("streams.completed", Counted::Completed),
    ("streams.failed", Counted::Failed),
    ("events", Counted::Events),
    ("events-per-second", Counted::EventsPerSecond),
    ("heartbeats", Counted::Heartbeats),
    ("heartbeats-missed", Counted::HeartbeatsMissed),
    ("bytes", Counted::Bytes),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::test_report;

    fn outcome(rule: &str) -> Outcome {
        rule.parse::<Threshold>().unwrap().judge(&test_report::of_part(0, 1))
    }

    #[test]
    fn a_rule_is_kept_or_broken_by_what_was_measured() {
        // Of one hundred streams number `i` was silent for `100 + i` ms; one failed.
        for kept in [
            "silence.max<200ms",
            "silence.max<=0.199s",
            "silence.p50 < 155ms",
            "silence.max<1min",
            "silence.p99.9>190ms",
            "error-rate<=1%",
            "error-rate<0.02",
            "streams.opened>=99",
            "heartbeats>0.1k",
            "events>=1k",
        ] {
            assert!(outcome(kept).passed, "{kept}: {:?}", outcome(kept));
        }
        for broken in ["silence.max<199ms", "error-rate<1%", "streams.failed<1", "events>1m", "silence.p99>5m"] {
            assert!(!outcome(broken).passed, "{broken}: {:?}", outcome(broken));
        }
    }

    #[test]
    fn a_rule_without_samples_fails() {
        for rule in ["ttft.p99<5s", "ttft.p99>0s", "heartbeats-missed<1000", "would-be-cut.60s<100%"] {
            let outcome = outcome(rule);
            assert_eq!((outcome.found, outcome.passed, outcome.shown.as_str()), (None, false, "no sample"), "{rule}");
        }
    }

    #[test]
    fn what_is_no_rule_says_what_to_write() {
        for (rule, told) in [
            ("silence.max", "write for example silence.max<30s"),
            ("silense.max<3s", "there is no 'silense.max'; there are silence, ttft"),
            ("silence<3s", "silence.max, silence.p99"),
            ("silence.p101<3s", "silence.p99"),
            ("silence.max<30", "the unit of \"30\" is missing"),
            ("silence.max<-3s", "\"-3s\" is negative: write 3s"),
            ("silence.max=3s", "write for example"),
            ("error-rate<1s", "\"1s\" is not a share"),
            ("error-rate<101%", "write for example 1%"),
            ("streams.held>=many", "write for example 200 or 10k"),
            ("would-be-cut.61s<1%", "5s, 10s, 20s, 30s, 50s, 55s, 60s, 100s, 120s, 240s, 300s, 350s, 600s"),
        ] {
            let error = rule.parse::<Threshold>().unwrap_err();
            assert!(error.is_config() && error.to_string().contains(told), "{error}");
            assert!(error.to_string().contains(rule), "{error}");
        }
    }
}
