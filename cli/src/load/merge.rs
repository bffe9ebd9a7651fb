//! One report of the parts of one plan. Histograms are added count by count, never percentiles averaged; asked by
//! `heartline load merge` and by a run in several processes.
//!
//! What the hold phase judges is judged where all parts held: slices of a part that lie outside the overlap are left out.
//! A closed loop and streams that run to their own end are judged whole, since each part ends when its streams do.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::LoadError;
use super::compare::differences;
use super::report::{Hold, Report};
use super::settings::Shard;
use super::slices::LeftOut;

/// What is refused unless the caller allows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Allowed {
    /// Parts of the plan that are not there.
    Missing,
    /// The same part twice.
    Duplicate,
    /// Parts of different plans.
    Mixed,
    /// Hold phases that hardly overlap: each is then judged whole.
    Apart,
}

/// Which parts a report was made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Merged {
    /// Each part, in the order of the plan.
    pub parts: Vec<Part>,
    /// What was allowed and happened; empty when all parts of one plan were there.
    pub notes: Vec<String>,
}

/// One part of a merged report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Part {
    /// What the caller calls it, such as its file.
    pub name: String,
    /// Which part it is.
    pub shard: Shard,
    /// When it held.
    pub hold: Hold,
    /// How much of that is in the merged figures.
    pub judged_ms: u64,
}

/// Makes one report of several, each with a name for messages.
///
/// # Errors
///
/// When there is none, or something is wrong with them that `allowed` does not name: the message says what, and where.
pub fn merge(mut reports: Vec<(String, Report)>, allowed: &[Allowed]) -> Result<Report, LoadError> {
    reports.sort_by_key(|(_, report)| report.shard.index);
    let mut notes = Vec::new();
    let mut refuse_unless = |allowance: Allowed, what: String| {
        if allowed.contains(&allowance) {
            notes.push(what);
            return Ok(());
        }
        Err(LoadError::config(format!("{what}; --allow {allowance} merges them all the same")))
    };
    let Some((first_name, first)) = reports.first() else {
        return Err(LoadError::config("there is nothing to merge; name the result files of all shards"));
    };
    for (name, report) in &reports[1..] {
        let differ = differences(&first.settings, &report.settings);
        if let Some((setting, one, other)) = differ.first() {
            let more = if differ.len() > 1 { format!(", and {} more", differ.len() - 1) } else { String::new() };
            let what = format!("{first_name} and {name} are of different plans: {setting} {one} and {other}{more}");
            refuse_unless(Allowed::Mixed, what)?;
        }
    }
    for pair in reports.windows(2) {
        let [(one_name, one), (other_name, other)] = pair else { continue };
        if one.shard.index == other.shard.index {
            let what = format!("{one_name} and {other_name} are both shard {} of {}", one.shard.index, one.shard.of);
            refuse_unless(Allowed::Duplicate, what)?;
        }
    }
    let of = first.shard.of;
    let missing: Vec<_> =
        (0..of).filter(|index| reports.iter().all(|(_, report)| report.shard.index != *index)).collect();
    if !missing.is_empty() {
        let list = missing.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        refuse_unless(Allowed::Missing, format!("of {of} shards these are missing: {list}"))?;
    }
    let overlap = Overlap::of(&reports);
    let mut left_out = Vec::with_capacity(reports.len());
    for (name, report) in &reports {
        let slices = overlap.left_out(report);
        if slices.is_none() {
            let what = format!(
                "{name} cannot be clipped: the hold phases began up to {:.1} s apart and have {:.1} s in common; give all \
                 shards the same --start-at",
                overlap.from_ms.saturating_sub(overlap.first_ms) as f64 / 1e3,
                overlap.length_ms() as f64 / 1e3
            );
            refuse_unless(Allowed::Apart, what)?;
        }
        left_out.push(slices.unwrap_or_default());
    }
    Ok(add(reports, &left_out, overlap, notes))
}

/// Adds up reports that may be added.
fn add(reports: Vec<(String, Report)>, left_out: &[LeftOut], overlap: Overlap, notes: Vec<String>) -> Report {
    let mut parts = Vec::with_capacity(reports.len());
    let mut sum: Option<Report> = None;
    for ((name, mut report), left_out) in reports.into_iter().zip(left_out) {
        let planned = Duration::from_millis(report.settings.length_ms);
        let mut judged_ms = report.hold.length_ms;
        if *left_out != LeftOut::default() {
            clip(&mut report, *left_out);
            judged_ms = left_out.length_ms(planned, judged_ms);
        }
        parts.push(Part { name, shard: report.shard, hold: report.hold, judged_ms });
        let which = report.shard;
        for reason in &mut report.client.reasons {
            *reason = format!("shard {} of {}: {reason}", which.index, which.of);
        }
        match &mut sum {
            None => sum = Some(report),
            Some(sum) => sum.add(&report),
        }
    }
    // `merge` refuses an empty list.
    let mut sum = sum.unwrap_or_else(|| unreachable!("there is a first report"));
    let judged_ms = parts.iter().map(|part| part.judged_ms).max().unwrap_or(0);
    sum.hold = Hold { from_unix_ms: overlap.from_ms, length_ms: judged_ms };
    sum.shard = Shard::default();
    sum.slices = None;
    sum.thresholds.clear();
    sum.client.valid = sum.client.reasons.is_empty();
    sum.merged = Some(Merged { parts, notes });
    sum.work_out(judged_ms as f64 / 1e3);
    sum
}

impl Report {
    /// Adds the counts and histograms of another part; what follows from them is worked out afterwards.
    fn add(&mut self, other: &Self) {
        let (streams, more) = (&mut self.streams, &other.streams);
        streams.requested += more.requested;
        streams.opened += more.opened;
        // Not at the same moment, perhaps: at least so many were held.
        streams.held_min += more.held_min;
        streams.completed += more.completed;
        for (kind, failed) in &more.failed {
            *streams.failed.entry(kind.clone()).or_default() += failed;
        }
        self.histograms.merge(&other.histograms);
        self.heartbeats.total += other.heartbeats.total;
        for (kind, count) in &other.heartbeats.kinds {
            *self.heartbeats.kinds.entry(kind.clone()).or_default() += count;
        }
        self.events.total += other.events.total;
        self.events.ids_repeated += other.events.ids_repeated;
        self.events.ids_missing += other.events.ids_missing;
        self.events.ends_seen += other.events.ends_seen;
        self.bytes += other.bytes;
        self.would_be_cut.add(&other.would_be_cut);
        self.client.cpu_percent += other.client.cpu_percent;
        self.client.reasons.extend(other.client.reasons.iter().cloned());
        self.digests.merge(&other.digests);
        let start = |report: &Self| report.hold.from_unix_ms.saturating_sub(report.timeline.hold_from_ms.unwrap_or(0));
        self.timeline.add(&other.timeline, start(other) as i64 - start(self) as i64);
        self.interrupted |= other.interrupted;
    }
}

/// Leaves slices of the hold phase out of what it judges.
fn clip(report: &mut Report, left_out: LeftOut) {
    // `Overlap::left_out` leaves something out only where there are slices.
    let Some(slices) = &report.slices else { return };
    let kept = slices.without(left_out);
    report.events.total = kept.events;
    report.heartbeats.total = kept.heartbeats;
    report.bytes = kept.bytes;
    report.would_be_cut.count_again(|seconds| kept.silence.count_at_least(seconds * 1_000_000_000));
    let histograms = &mut report.histograms;
    histograms.gap = kept.gap;
    histograms.between_heartbeats = kept.between_heartbeats;
    histograms.silence = kept.silence;
    if left_out.back > 0 {
        // Counted to an end that is no longer the end.
        histograms.since_last_byte = super::spread::Spread::new();
    }
}

/// The time in which all parts held.
#[derive(Clone, Copy, Debug)]
struct Overlap {
    first_ms: u64,
    from_ms: u64,
    to_ms: u64,
}

impl Overlap {
    fn of(reports: &[(String, Report)]) -> Self {
        let from = reports.iter().map(|(_, report)| report.hold.from_unix_ms);
        let to = reports.iter().map(|(_, report)| report.hold.from_unix_ms + report.hold.length_ms);
        Self {
            first_ms: from.clone().min().unwrap_or(0),
            from_ms: from.max().unwrap_or(0),
            to_ms: to.min().unwrap_or(0),
        }
    }

    fn length_ms(self) -> u64 {
        self.to_ms.saturating_sub(self.from_ms)
    }

    /// Returns the slices of one part that lie outside; `None` when it cannot be clipped.
    fn left_out(self, report: &Report) -> Option<LeftOut> {
        if !matches!(report.settings.shape.as_str(), "hold" | "open") {
            return Some(LeftOut::default());
        }
        let lasted_ms = report.hold.length_ms;
        let mut from_ms = self.from_ms.saturating_sub(report.hold.from_unix_ms);
        let mut to_ms = self.to_ms.saturating_sub(report.hold.from_unix_ms);
        if from_ms <= TOGETHER_MS {
            from_ms = 0;
        }
        if lasted_ms.saturating_sub(to_ms) <= TOGETHER_MS {
            to_ms = lasted_ms;
        }
        if (from_ms, to_ms) == (0, lasted_ms) {
            return Some(LeftOut::default());
        }
        let planned = Duration::from_millis(report.settings.length_ms);
        report.slices.as_ref().filter(|slices| slices.is_whole())?;
        LeftOut::outside(from_ms, to_ms, planned, lasted_ms)
    }
}

impl fmt::Display for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "missing",
            Self::Duplicate => "duplicate",
            Self::Mixed => "mixed",
            Self::Apart => "apart",
        })
    }
}

/// Clocks of machines agree to some hundredths of a second, and a run looks at its own so often.
const TOGETHER_MS: u64 = 100;

#[cfg(test)]
mod tests;
