//! A run over time: how many streams were open, what came. Filled by `run` as it looks, kept small by forgetting every
//! second point.

use serde::{Deserialize, Serialize};

use super::{Phase, Progress};

/// What was seen at evenly spaced times, from the run's start to the end of the hold phase.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Timeline {
    /// The least time between two points, in milliseconds.
    pub step_ms: u64,
    /// When the hold phase began, in milliseconds of the run; `null` when it never did.
    pub hold_from_ms: Option<u64>,
    /// The points, oldest first; at most 240.
    pub points: Vec<Point>,
}

/// What was seen at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Point {
    /// Milliseconds since the run's start.
    pub at_ms: u64,
    /// Streams open.
    pub open: u64,
    /// Streams that are over.
    pub ended: u64,
    /// Events in the hold phase so far.
    pub events: u64,
    /// Heartbeats in the hold phase so far.
    pub heartbeats: u64,
}

impl Timeline {
    /// Adds what is seen now, unless the last point is too young.
    pub(super) fn note(&mut self, progress: &Progress) {
        let at_ms = u64::try_from(progress.elapsed.as_millis()).unwrap_or(u64::MAX);
        if progress.phase == Phase::Hold && self.hold_from_ms.is_none() {
            let held_ms = u64::try_from(progress.held.as_millis()).unwrap_or(u64::MAX);
            self.hold_from_ms = Some(at_ms.saturating_sub(held_ms));
        }
        let is_last = progress.phase == Phase::Drain;
        if !is_last && self.points.last().is_some_and(|last| at_ms < last.at_ms + self.step_ms) {
            return;
        }
        if self.points.len() >= POINTS_MAX {
            let mut number = 0_usize;
            self.points.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.step_ms = (self.step_ms * 2).max(STEP_MS_MIN);
        }
        self.points.push(Point {
            at_ms,
            open: progress.open as u64,
            ended: progress.ended as u64,
            events: progress.events,
            heartbeats: progress.heartbeats,
        });
    }

    /// Adds what another process saw, which began so many milliseconds later.
    pub(super) fn add(&mut self, other: &Self, later_ms: i64) {
        for point in &mut self.points {
            let at_ms = point.at_ms as i64 - later_ms;
            let seen = other.points.partition_point(|seen| seen.at_ms as i64 <= at_ms);
            // Looks are not taken at the same moments: the other's last one counts.
            if let Some(seen) = seen.checked_sub(1).and_then(|seen| other.points.get(seen)) {
                point.open += seen.open;
                point.ended += seen.ended;
                point.events += seen.events;
                point.heartbeats += seen.heartbeats;
            }
        }
    }
}

/// The most points kept: enough for a line a thousand pixels wide, in some 20 KB of JSON.
pub(super) const POINTS_MAX: usize = 240;

/// The step once every second point has been forgotten: twice how often a run looks.
const STEP_MS_MIN: u64 = 400;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn seen(elapsed_ms: u64, phase: Phase) -> Progress {
        Progress {
            phase,
            elapsed: Duration::from_millis(elapsed_ms),
            held: Duration::from_millis(elapsed_ms.saturating_sub(1_000)),
            requested: 9,
            open: 9,
            settled: 9,
            ended: 0,
            heartbeats: elapsed_ms,
            events: 0,
        }
    }

    #[test]
    fn two_processes_are_added_where_their_clocks_agree() {
        let (mut one, mut other) = (Timeline::default(), Timeline::default());
        for elapsed_ms in [0, 1_000, 2_000] {
            one.note(&seen(elapsed_ms, Phase::Hold));
            other.note(&seen(elapsed_ms, Phase::Hold));
        }
        one.add(&other, 900);
        assert_eq!(one.points.iter().map(|point| point.open).collect::<Vec<_>>(), [9, 18, 18]);
        assert_eq!(one.points.last().map(|point| point.heartbeats), Some(2_000 + 1_000));
    }

    #[test]
    fn a_long_run_keeps_few_points_and_its_last_one() {
        let mut timeline = Timeline::default();
        for elapsed_ms in (0..3_600_000).step_by(200) {
            timeline.note(&seen(elapsed_ms, if elapsed_ms < 1_000 { Phase::Ramp } else { Phase::Hold }));
        }
        timeline.note(&seen(3_600_001, Phase::Drain));
        assert!((POINTS_MAX / 3..=POINTS_MAX).contains(&timeline.points.len()), "{}", timeline.points.len());
        assert_eq!(timeline.points.first().map(|point| point.at_ms), Some(0));
        assert_eq!(timeline.points.last().map(|point| point.at_ms), Some(3_600_001));
        assert_eq!(timeline.hold_from_ms, Some(1_000));
        let even = timeline.points.windows(2).all(|pair| pair[0].at_ms < pair[1].at_ms);
        assert!(even, "in order");
    }
}
