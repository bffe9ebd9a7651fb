//! The run's clock, its hold phase, and how many streams are open. Shared by `run`, the workers and every stream.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

/// The clock of one run and the counts that all its workers share.
///
/// All orderings are `Relaxed`: each word is read on its own, and the exact totals are taken after the workers' threads
/// have been joined, which orders everything they wrote.
#[derive(Debug)]
pub(super) struct Phases {
    start: Instant,
    /// The same instant on the clock that other machines have too.
    start_wall: SystemTime,
    hold_from_ns: AtomicU64,
    hold_to_ns: AtomicU64,
    open: AtomicUsize,
    held_min: AtomicUsize,
    settled: AtomicUsize,
    ended: AtomicUsize,
}

impl Phases {
    /// Starts the clock; no hold phase is set.
    pub(super) fn start() -> Self {
        Self {
            start: Instant::now(),
            start_wall: SystemTime::now(),
            hold_from_ns: AtomicU64::new(u64::MAX),
            hold_to_ns: AtomicU64::new(u64::MAX),
            open: AtomicUsize::new(0),
            held_min: AtomicUsize::new(usize::MAX),
            settled: AtomicUsize::new(0),
            ended: AtomicUsize::new(0),
        }
    }

    /// Returns the nanoseconds since the start.
    pub(super) fn now_ns(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Returns the instant the clock started at.
    pub(super) fn started(&self) -> Instant {
        self.start
    }

    /// Returns the milliseconds since 1970 at a time of the run's clock.
    pub(super) fn unix_ms(&self, at_ns: u64) -> u64 {
        let since = self.start_wall.duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX).saturating_add(at_ns / 1_000_000)
    }

    /// Begins the judged phase.
    pub(super) fn begin_hold(&self, now_ns: u64) {
        self.hold_from_ns.store(now_ns, Ordering::Relaxed);
        // After the store, so that a stream that ends meanwhile is seen by one of the two.
        self.held_min.fetch_min(self.open.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Ends the judged phase; what arrives later is not counted.
    pub(super) fn end_hold(&self, now_ns: u64) {
        self.hold_to_ns.store(now_ns, Ordering::Relaxed);
    }

    /// Returns the judged phase as far as it is known.
    pub(super) fn window(&self) -> Window {
        Window { from_ns: self.hold_from_ns.load(Ordering::Relaxed), to_ns: self.hold_to_ns.load(Ordering::Relaxed) }
    }

    /// Counts a stream whose response has begun.
    pub(super) fn stream_opened(&self) {
        self.open.fetch_add(1, Ordering::Relaxed);
        self.settled.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an open stream that ended.
    pub(super) fn open_stream_ended(&self, now_ns: u64) {
        let left = self.open.fetch_sub(1, Ordering::Relaxed).saturating_sub(1);
        self.ended.fetch_add(1, Ordering::Relaxed);
        if self.window().contains(now_ns) {
            self.held_min.fetch_min(left, Ordering::Relaxed);
        }
    }

    /// Counts a stream that failed before it was open.
    pub(super) fn stream_failed_to_open(&self) {
        self.settled.fetch_add(1, Ordering::Relaxed);
        self.ended.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how many streams are open now.
    pub(super) fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Returns how many streams have opened or failed to.
    pub(super) fn settled(&self) -> usize {
        self.settled.load(Ordering::Relaxed)
    }

    /// Returns how many streams are over.
    pub(super) fn ended(&self) -> usize {
        self.ended.load(Ordering::Relaxed)
    }

    /// Returns the smallest number of streams open at once in the hold phase; 0 when it never began.
    pub(super) fn held_min(&self) -> usize {
        match self.held_min.load(Ordering::Relaxed) {
            usize::MAX => 0,
            held_min => held_min,
        }
    }
}

/// The judged part of the run; an end that is not known yet is `u64::MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) from_ns: u64,
    pub(super) to_ns: u64,
}

impl Window {
    /// Tells whether something at this time is judged.
    pub(super) fn contains(self, at_ns: u64) -> bool {
        (self.from_ns..self.to_ns).contains(&at_ns)
    }

    /// Returns how long a silence counts: whole when any of it lies in the window, cut at the window's end.
    ///
    /// One that began before the window counts from its true beginning, because that is what a hop would count.
    pub(super) fn silence(self, from_ns: u64, to_ns: u64) -> Option<u64> {
        let end_ns = to_ns.min(self.to_ns);
        let overlaps = end_ns > self.from_ns && from_ns < end_ns;
        overlaps.then(|| end_ns - from_ns)
    }

    /// Returns the window's length.
    pub(super) fn length_ns(self) -> u64 {
        self.to_ns.saturating_sub(self.from_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Window = Window { from_ns: 100, to_ns: 200 };

    #[test]
    fn a_silence_counts_from_its_true_beginning_to_the_windows_end() {
        assert_eq!(WINDOW.silence(120, 150), Some(30));
        assert_eq!(WINDOW.silence(40, 150), Some(110));
        assert_eq!(WINDOW.silence(150, 900), Some(50));
        assert_eq!(WINDOW.silence(40, 900), Some(160));
    }

    #[test]
    fn a_silence_outside_the_window_does_not_count() {
        assert_eq!(WINDOW.silence(10, 100), None);
        assert_eq!(WINDOW.silence(200, 300), None);
        assert_eq!(Window { from_ns: u64::MAX, to_ns: u64::MAX }.silence(0, 50), None);
    }

    #[test]
    fn the_least_held_is_taken_in_the_hold_phase_only() {
        let phases = Phases::start();
        for _ in 0..5 {
            phases.stream_opened();
        }
        phases.open_stream_ended(10);
        phases.begin_hold(20);
        assert_eq!(phases.held_min(), 4);
        phases.open_stream_ended(30);
        phases.stream_opened();
        assert_eq!(phases.held_min(), 3);
        phases.end_hold(40);
        phases.open_stream_ended(50);
        phases.open_stream_ended(51);
        assert_eq!((phases.held_min(), phases.settled(), phases.ended()), (3, 6, 4));
    }
}
