//! The hold phase in slices, kept by a run that is one part of a plan: `merge` leaves out the slices at either end in
//! which not every part held. Filled by `record`, written by `report`.
//!
//! Each end of the planned phase has four slices of a twentieth, and the rest is one. What adds up is counted by slice.
//! The largest silence of a stream does not add up: it is kept for every choice of how many slices to leave out at either
//! end, 25 in all, so that the merged figure is the one a shorter phase would have measured, and no estimate.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::phases::Window;
use super::spread::Spread;

/// What came in each slice, and the silences of every choice of slices.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Slices {
    events: [u64; SLICES],
    heartbeats: [u64; SLICES],
    bytes: [u64; SLICES],
    gap: Vec<Spread>,
    between_heartbeats: Vec<Spread>,
    /// By the slices left out in front, times `CHOICES`, plus those left out at the back.
    silence: Vec<Spread>,
}

/// Bytes that came at one time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Came {
    pub(super) events: u32,
    pub(super) heartbeats: u32,
    pub(super) bytes: u64,
    pub(super) gap_ns: Option<u64>,
    pub(super) between_heartbeats_ns: Option<u64>,
}

/// The figures of some slices.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    pub(super) events: u64,
    pub(super) heartbeats: u64,
    pub(super) bytes: u64,
    pub(super) gap: Spread,
    pub(super) between_heartbeats: Spread,
    pub(super) silence: Spread,
}

/// The slices that are left out at either end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LeftOut {
    pub(super) front: usize,
    pub(super) back: usize,
}

/// The longest silence of one stream in each slice, in nanoseconds.
pub(super) type Longest = [u64; SLICES];

impl Slices {
    /// Creates slices in which nothing came.
    pub(super) fn new() -> Self {
        Self {
            events: [0; SLICES],
            heartbeats: [0; SLICES],
            bytes: [0; SLICES],
            gap: vec![Spread::new(); SLICES],
            between_heartbeats: vec![Spread::new(); SLICES],
            silence: vec![Spread::new(); CHOICES * CHOICES],
        }
    }

    /// Counts what came so long after the phase began.
    pub(super) fn add(&mut self, offset_ns: u64, planned: Duration, came: Came) {
        let slice = slice_at(offset_ns, planned);
        self.events[slice] += u64::from(came.events);
        self.heartbeats[slice] += u64::from(came.heartbeats);
        self.bytes[slice] += came.bytes;
        if let Some(gap_ns) = came.gap_ns {
            self.gap[slice].add(gap_ns);
        }
        if came.events > 1 {
            self.gap[slice].add_times(0, u64::from(came.events) - 1);
        }
        if let Some(between_ns) = came.between_heartbeats_ns {
            self.between_heartbeats[slice].add(between_ns);
        }
    }

    /// Adds the silences of one stream.
    pub(super) fn add_silences(&mut self, longest: &Longest) {
        for left_out in LeftOut::all() {
            let longest_ns = longest[left_out.slices()].iter().copied().max().unwrap_or(0);
            if longest_ns > 0 {
                self.silence[left_out.place()].add(longest_ns);
            }
        }
    }

    /// Adds what another worker counted.
    pub(super) fn merge(&mut self, other: &Self) {
        let add = |into: &mut [u64; SLICES], more: &[u64; SLICES]| {
            into.iter_mut().zip(more).for_each(|(into, more)| *into += more);
        };
        add(&mut self.events, &other.events);
        add(&mut self.heartbeats, &other.heartbeats);
        add(&mut self.bytes, &other.bytes);
        let merge = |into: &mut [Spread], more: &[Spread]| {
            into.iter_mut().zip(more).for_each(|(into, more)| into.merge(more));
        };
        merge(&mut self.gap, &other.gap);
        merge(&mut self.between_heartbeats, &other.between_heartbeats);
        merge(&mut self.silence, &other.silence);
    }

    /// Returns the figures without the slices left out.
    pub(super) fn without(&self, left_out: LeftOut) -> Kept {
        let slices = left_out.slices();
        let added = |spreads: &[Spread]| {
            let mut all = Spread::new();
            spreads.iter().for_each(|spread| all.merge(spread));
            all
        };
        Kept {
            events: self.events[slices.clone()].iter().sum(),
            heartbeats: self.heartbeats[slices.clone()].iter().sum(),
            bytes: self.bytes[slices.clone()].iter().sum(),
            gap: added(&self.gap[slices.clone()]),
            between_heartbeats: added(&self.between_heartbeats[slices]),
            silence: self.silence[left_out.place()].clone(),
        }
    }

    /// Tells whether a result file held as many of everything as this build counts.
    pub(super) fn is_whole(&self) -> bool {
        self.gap.len() == SLICES && self.between_heartbeats.len() == SLICES && self.silence.len() == CHOICES * CHOICES
    }
}

impl LeftOut {
    fn all() -> impl Iterator<Item = Self> {
        (0..CHOICES).flat_map(|front| (0..CHOICES).map(move |back| Self { front, back }))
    }

    fn slices(self) -> std::ops::Range<usize> {
        self.front..SLICES - self.back
    }

    fn place(self) -> usize {
        self.front * CHOICES + self.back
    }

    /// Finds the fewest slices to leave out so that nothing counts before `from_ms` or after `to_ms`, both from the
    /// beginning of a phase that was to last `planned` and ended after `lasted_ms`; `None` when four are not enough.
    pub(super) fn outside(from_ms: u64, to_ms: u64, planned: Duration, lasted_ms: u64) -> Option<Self> {
        let starts = starts(planned).map(|ns| ns.div_ceil(1_000_000));
        let front = (0..CHOICES).find(|front| starts[*front] >= from_ms)?;
        let back = (0..CHOICES).find(|back| starts[SLICES - back].min(lasted_ms) <= to_ms)?;
        Some(Self { front, back })
    }

    /// Returns how long the phase is without the slices left out.
    pub(super) fn length_ms(self, planned: Duration, lasted_ms: u64) -> u64 {
        let starts = starts(planned).map(|ns| ns.div_ceil(1_000_000));
        starts[SLICES - self.back].min(lasted_ms).saturating_sub(starts[self.front])
    }
}

/// Notes a silence in every slice it lies in: whole from its beginning, up to the slice's end.
pub(super) fn note_silence(longest: &mut Longest, window: Window, planned: Duration, from_ns: u64, to_ns: u64) {
    if window.silence(from_ns, to_ns).is_none() {
        return;
    }
    let offset = |at_ns: u64| at_ns.clamp(window.from_ns, window.to_ns) - window.from_ns;
    let starts = starts(planned);
    for slice in slice_at(offset(from_ns), planned)..=slice_at(offset(to_ns.saturating_sub(1)), planned) {
        let slice_to_ns = match starts[slice + 1] {
            u64::MAX => u64::MAX,
            start_ns => window.from_ns.saturating_add(start_ns),
        };
        let part =
            Window { from_ns: window.from_ns.saturating_add(starts[slice]), to_ns: slice_to_ns.min(window.to_ns) };
        longest[slice] = longest[slice].max(part.silence(from_ns, to_ns).unwrap_or(0));
    }
}

/// Returns the slice of a time after the phase's beginning; what comes later than planned belongs to the last.
fn slice_at(offset_ns: u64, planned: Duration) -> usize {
    starts(planned)[1..SLICES].iter().filter(|start_ns| offset_ns >= **start_ns).count()
}

/// Returns when each slice begins, and when the last one ends, in nanoseconds after the phase's beginning.
fn starts(planned: Duration) -> [u64; SLICES + 1] {
    let planned_ns = u64::try_from(planned.as_nanos()).unwrap_or(u64::MAX);
    let width_ns = planned_ns / WIDTHS;
    std::array::from_fn(|slice| {
        if slice <= EDGE {
            width_ns * slice as u64
        } else if slice < SLICES {
            planned_ns - width_ns * (SLICES - slice) as u64
        } else {
            u64::MAX
        }
    })
}

/// Slices kept apart at either end.
const EDGE: usize = 4;

/// All slices: those of both ends and the one between.
const SLICES: usize = 2 * EDGE + 1;

/// How many slices can be left out at one end: none to all four.
const CHOICES: usize = EDGE + 1;

/// A slice at an end is one of so many of the phase: parts that begin further apart than a fifth of it were not together.
const WIDTHS: u64 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    const PLANNED: Duration = Duration::from_secs(20);
    const S: u64 = 1_000_000_000;

    #[test]
    fn the_ends_have_four_slices_each() {
        let slices: Vec<_> = [0, 1, 3, 4, 10, 15, 16, 17, 19, 25].map(|s| slice_at(s * S, PLANNED)).into();
        assert_eq!(slices, [0, 1, 3, 4, 4, 4, 5, 6, 8, 8]);
    }

    #[test]
    fn a_silence_of_fewer_slices_is_that_of_a_shorter_phase() {
        let whole = Window { from_ns: 5 * S, to_ns: 25 * S };
        let silences = [(2, 6), (7, 12), (12, 13), (20, 24), (24, 40)];
        let mut longest = Longest::default();
        for (from, to) in silences {
            note_silence(&mut longest, whole, PLANNED, from * S, to * S);
        }
        let mut slices = Slices::new();
        slices.add_silences(&longest);
        for left_out in LeftOut::all() {
            let shorter = Window { from_ns: (5 + left_out.front as u64) * S, to_ns: (25 - left_out.back as u64) * S };
            let expected = silences.iter().filter_map(|(from, to)| shorter.silence(from * S, to * S)).max().unwrap();
            let kept = slices.without(left_out).silence;
            assert_eq!((kept.count(), kept.ns_max()), (1, expected), "{left_out:?}");
        }
    }

    #[test]
    fn what_adds_up_is_counted_in_its_slice() {
        let mut slices = Slices::new();
        let came = Came { events: 3, heartbeats: 1, bytes: 7, gap_ns: Some(5), between_heartbeats_ns: Some(9) };
        for s in 0..20 {
            slices.add(s * S, PLANNED, came);
        }
        let kept = slices.without(LeftOut { front: 2, back: 1 });
        assert_eq!((kept.events, kept.heartbeats, kept.bytes), (51, 17, 119));
        assert_eq!((kept.gap.count(), kept.between_heartbeats.count()), (51, 17));
    }

    #[test]
    fn slices_are_left_out_until_nothing_lies_outside() {
        let outside = |from, to| LeftOut::outside(from, to, PLANNED, 20_000);
        assert_eq!(outside(0, 20_000), Some(LeftOut { front: 0, back: 0 }));
        assert_eq!(outside(1, 19_000), Some(LeftOut { front: 1, back: 1 }));
        assert_eq!(outside(1_001, 18_999), Some(LeftOut { front: 2, back: 2 }));
        assert_eq!(outside(4_001, 20_000), None);
        assert_eq!(LeftOut { front: 2, back: 2 }.length_ms(PLANNED, 20_000), 16_000);
    }
}
