//! What the streams of a run are doing right now, for whoever looks on. Kept only where somebody asked for it: it costs an
//! allocation a stream.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The open streams of a run, to be looked at while it goes on.
///
/// Put one into [`Settings::live`](super::Settings::live), keep the other handle, and call [`Live::look`] from the
/// progress callback.
#[derive(Debug, Default)]
pub struct Live {
    open: Mutex<BTreeMap<usize, Arc<Line>>>,
}

/// One open stream. Each word is written by the stream's task and read alone, so the order is `Relaxed`.
#[derive(Debug)]
pub(super) struct Line {
    number: usize,
    last_byte_ns: AtomicU64,
    silence_ns_max: AtomicU64,
}

/// What one look saw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Seen {
    /// How many streams have been silent for how long: each entry counts those below its bound of [`SEEN_BELOW`] and not
    /// below the one before; the last entry counts the rest.
    pub silent: [u64; SEEN_BELOW.len() + 1],
    /// The streams that have been silent longest, worst first.
    pub worst: Vec<Silent>,
}

/// One stream that is silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Silent {
    /// The stream's number in the plan.
    pub number: usize,
    /// How long it has been silent.
    pub silence: Duration,
    /// Its longest silence that has ended.
    pub longest: Duration,
}

impl Live {
    /// Looks at all open streams; `elapsed` is that of the [`Progress`](super::Progress) that was just told.
    pub fn look(&self, elapsed: Duration, worst: usize) -> Seen {
        let now_ns = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        let mut seen = Seen::default();
        let mut all: Vec<_> = self
            .open
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .map(|(number, line)| Silent {
                number: *number,
                silence: Duration::from_nanos(now_ns.saturating_sub(line.last_byte_ns.load(Ordering::Relaxed))),
                longest: Duration::from_nanos(line.silence_ns_max.load(Ordering::Relaxed)),
            })
            .collect();
        for stream in &all {
            let bin = SEEN_BELOW.partition_point(|bound| *bound <= stream.silence);
            seen.silent[bin] += 1;
        }
        all.sort_by_key(|stream| std::cmp::Reverse((stream.silence, stream.longest)));
        all.truncate(worst);
        seen.worst = all;
        seen
    }

    /// Shows a stream from now on.
    pub(super) fn open(&self, line: &Arc<Line>) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).insert(line.number, Arc::clone(line));
    }

    /// Shows a stream no longer.
    pub(super) fn close(&self, line: &Line) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&line.number);
    }
}

impl Line {
    /// Creates the line of a stream that is not open yet.
    pub(super) fn new(number: usize) -> Arc<Self> {
        Arc::new(Self { number, last_byte_ns: AtomicU64::new(0), silence_ns_max: AtomicU64::new(0) })
    }

    /// Notes that a byte came at `now_ns`, after a silence that began at `from_ns`.
    pub(super) fn spoke(&self, from_ns: u64, now_ns: u64) {
        self.last_byte_ns.store(now_ns, Ordering::Relaxed);
        self.silence_ns_max.fetch_max(now_ns.saturating_sub(from_ns), Ordering::Relaxed);
    }
}

/// The bounds that a look counts between.
pub const SEEN_BELOW: [Duration; 9] = [
    Duration::from_millis(100),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(5),
    Duration::from_secs(10),
    Duration::from_secs(30),
    Duration::from_secs(60),
    Duration::from_secs(100),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_counts_silences_and_names_the_worst() {
        let live = Live::default();
        let lines: Vec<_> = (0..4).map(Line::new).collect();
        lines.iter().for_each(|line| live.open(line));
        lines[1].spoke(0, 2_500_000_000);
        lines[2].spoke(0, 2_950_000_000);
        live.close(&lines[3]);
        let seen = live.look(Duration::from_secs(3), 2);
        assert_eq!(seen.silent, [1, 0, 1, 0, 1, 0, 0, 0, 0, 0]);
        assert_eq!(seen.worst.iter().map(|stream| stream.number).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(seen.worst[1].longest, Duration::from_millis(2_500));
    }
}
