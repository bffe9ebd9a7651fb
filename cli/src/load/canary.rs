//! A timer that does nothing but notice when it fires late. One a worker: what it feels, every stream's times have felt.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::sleep_until;

use super::phases::Phases;
use super::tally::Tally;
use super::worker::Worker;

/// When the canary of one worker is due next; written and read by that worker's thread only, so the order is `Relaxed`.
#[derive(Debug, Default)]
pub(super) struct Canary {
    due_ns: AtomicU64,
}

impl Canary {
    /// Notes how late the timer is, if any of that lies in the hold phase, and sets the next one.
    ///
    /// Called when the timer fires, and once when the worker notices the run's end: a thread that stood still until then
    /// has a timer that never fired.
    pub(super) fn note(&self, phases: &Phases, tally: &mut Tally) {
        let now_ns = phases.now_ns();
        let due_ns = self.due_ns.load(Ordering::Relaxed);
        if due_ns <= now_ns && phases.window().silence(due_ns, now_ns.saturating_add(1)).is_some() {
            tally.lag.add_expected(now_ns - due_ns, PERIOD_NS);
        }
        // A stall is noted once, with the ticks it swallowed filled in; the next tick starts afresh.
        self.due_ns.store(now_ns + PERIOD_NS, Ordering::Relaxed);
    }
}

/// Fires every [`PERIOD_NS`] for ever.
pub(super) async fn sing(worker: Arc<Worker>) {
    worker.canary.due_ns.store(worker.phases.now_ns() + PERIOD_NS, Ordering::Relaxed);
    loop {
        let due = Duration::from_nanos(worker.canary.due_ns.load(Ordering::Relaxed));
        sleep_until(worker.phases.started() + due).await;
        worker.canary.note(&worker.phases, &mut worker.tally());
    }
}

/// Ten milliseconds: often enough to catch a stall of a few hundredths of a second, seldom enough to cost nothing.
const PERIOD_NS: u64 = 10_000_000;
