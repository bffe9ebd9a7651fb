//! The targets of a run: what was wanted, what was reached with how much certainty, and what follows. Made by `report`.
//!
//! A figure is the median over rounds of a ratio of two windows of the same round, with an interval of 95 % that assumes
//! nothing about how windows scatter: the two order statistics between which the true median lies with that probability. A
//! target is met or missed when all of the interval is on one side of it, and undecided otherwise.

use std::fmt;

use crate::lane::Window;
use crate::rounds::{Figures, Measured};
use crate::under_test::Variant;

/// One target.
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) most: f64,
    pub(crate) reached: Reached,
}

/// What was reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Reached {
    pub(crate) median: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// What follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Met,
    Missed,
    Undecided,
    NotRun,
}

impl Target {
    pub(crate) fn verdict(&self) -> Verdict {
        let Reached { median, low, high } = self.reached;
        match () {
            () if median.is_nan() => Verdict::NotRun,
            () if high <= self.most => Verdict::Met,
            () if low > self.most => Verdict::Missed,
            () => Verdict::Undecided,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Met => "met",
            Self::Missed => "missed",
            Self::Undecided => "undecided: more rounds, or a quieter machine",
            Self::NotRun => "not run",
        })
    }
}

impl Reached {
    /// A figure that was read once and does not scatter.
    pub(crate) fn once(value: f64) -> Self {
        Self { median: value, low: value, high: value }
    }

    /// The median of one ratio a round. Fewer than six rounds have no interval.
    pub(crate) fn median_of(mut ratios: Vec<f64>) -> Self {
        ratios.retain(|ratio| !ratio.is_nan());
        ratios.sort_by(f64::total_cmp);
        let count = ratios.len();
        let median = match count {
            0 => f64::NAN,
            _ if count % 2 == 1 => ratios[count / 2],
            _ => f64::midpoint(ratios[count / 2 - 1], ratios[count / 2]),
        };
        let (low, high) = match outside(count) {
            None => (f64::NEG_INFINITY, f64::INFINITY),
            Some(outside) => (ratios[outside], ratios[count - 1 - outside]),
        };
        Self { median, low, high }
    }
}

/// How many of `count` sorted values can be left out at either end, so that the median of what they were drawn from is
/// between the rest with 95 %: each value is above it by a fair coin.
fn outside(count: usize) -> Option<usize> {
    let mut chance = 0.5_f64.powi(i32::try_from(count).unwrap_or(i32::MAX)); // that none is below
    let (mut below, mut found) = (0.0, None);
    for left_out in 0..count / 2 {
        below += chance;
        if 2.0 * below > 0.05 {
            break;
        }
        found = Some(left_out);
        chance *= (count - left_out) as f64 / (left_out + 1) as f64;
    }
    found
}

/// Every target of a run.
pub(crate) fn all(figures: &Figures) -> Vec<Target> {
    let mut targets = Vec::new();
    let mut add = |name: String, most, reached| targets.push(Target { name, most, reached });
    for (streams, compared) in &figures.compared {
        let of = |variant| compared.get(&variant);
        let (own, nginx, direct) = (of(Variant::Heartline), of(Variant::Nginx), of(Variant::Direct));
        let cpu = ratios([own, nginx], |[own, nginx]| own.cpu_us / nginx.cpu_us);
        add(format!("{streams} streams: CPU per event, of nginx's"), 1.0, Reached::median_of(cpu));
        let added = ratios([own, nginx, direct], |[own, nginx, direct]| {
            (own.p50_us - direct.p50_us) / (nginx.p50_us - direct.p50_us)
        });
        add(format!("{streams} streams: added median latency, of nginx's"), 1.0, Reached::median_of(added));
        if *streams < MEMORY_STREAMS_MIN {
            continue;
        }
        let memory = |measured: Option<&Measured>| measured.map_or(f64::NAN, |measured| measured.memory_bytes);
        let reached = Reached::once(memory(own) / memory(nginx));
        add(format!("{streams} streams: resident bytes a stream, of nginx's"), 1.0, reached);
        let reached = Reached::once(memory(own) / 1e3);
        add(format!("{streams} streams: resident kB a stream"), MEMORY_KB, reached);
    }
    for (streams, sweeps) in &figures.sweeps {
        let of = |variant| sweeps.get(&variant);
        let late =
            ratios([of(Variant::Beating), of(Variant::Unbeating)], |[with, without]| with.p99_us / without.p99_us);
        add(format!("{streams} streams: live tokens' p99, of no heartbeats"), 1.1, Reached::median_of(late));
    }
    if let Some(soak) = &figures.soak {
        let left = soak.exchanges + soak.connections + soak.files.max(0) as u64 + soak.failed;
        let left = Reached::once(left as f64);
        add("soak: exchanges, connections, descriptors left; failed".into(), 0.0, left);
        let grown = (soak.resident_bytes[2] - soak.resident_bytes[1]) as f64 / 1e6;
        add("soak: MB grown since half of it".into(), SOAK_GROWTH_MB, Reached::once(grown));
    }
    targets
}

/// One ratio for each round in which all of these were measured.
fn ratios<const N: usize>(measured: [Option<&Measured>; N], ratio: impl Fn([Window; N]) -> f64) -> Vec<f64> {
    let windows = measured.map(|measured| measured.map_or(&[][..], |measured| &measured.windows));
    let rounds = windows.iter().map(|windows| windows.len()).min().unwrap_or(0);
    (0..rounds).map(|round| ratio(windows.map(|windows| windows[round]))).collect()
}

/// With fewer streams the figure is what a process has once.
const MEMORY_STREAMS_MIN: usize = 2_000;
/// nginx's own figure on the machine that the target was set on.
const MEMORY_KB: f64 = 14.0;
/// Memory that may come and go with the allocator over a soak, in MB.
const SOAK_GROWTH_MB: f64 = 4.0;
