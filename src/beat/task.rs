//! The one interval task of a broadcaster (I4): started with the first stream, gone after the last, moved when its runtime
//! goes away. [`enrol`] is how `broadcaster` registers a stream.

use super::core::Core;
use super::guard::Registration;
use super::registry::Cursor;
use super::sweep::{self, Batch, Rules};
use crate::config::Shared;
use crate::telemetry;
use std::cell::Cell;
use std::panic::catch_unwind;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::runtime::{Handle, Id};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

/// Registers a stream and sees to it that a task sweeps; `None` where no timer can serve it.
pub(crate) fn enrol(core: &Arc<Core>, config: Shared) -> Option<Registration> {
    let Ok(runtime) = Handle::try_current() else {
        telemetry::no_timer();
        return None;
    };
    if !is_known(core, &runtime) {
        telemetry::no_timer();
        return None;
    }
    let (registration, seen) = Registration::new(core, config);
    let limit_ms = core.settings.interval.as_millis() as u64 * LEASE_INTERVALS;
    let now_ms = core.now_ms();
    if !seen.running || core.lease.idle_ms(now_ms) > limit_ms {
        core.lease.renew(now_ms); // before taking: nobody may find the new lease stale
        if let Some(generation) = core.lease.take(seen) {
            start(core, &runtime, generation);
        }
    }
    Some(registration)
}

/// Whether `runtime` has a timer; remembers it as one that a task can move to.
fn is_known(core: &Arc<Core>, runtime: &Handle) -> bool {
    let here = (core.id, Some(runtime.id()));
    if KNOWN.get() == here {
        return true;
    }
    let mut runtimes = core.runtimes.lock().unwrap_or_else(PoisonError::into_inner);
    if !runtimes.iter().any(|known| known.id() == runtime.id()) {
        // tokio has no question for this; making a timer panics where there is none (and prints that once).
        if catch_unwind(|| drop(tokio::time::sleep(Duration::ZERO))).is_err() {
            return false;
        }
        let forgotten = (runtimes.len() == RUNTIMES_MAX).then(|| runtimes.remove(0));
        runtimes.push(runtime.clone());
        drop(runtimes);
        drop(forgotten); // may be a runtime's last handle, whose drop runs foreign code (I2)
    }
    KNOWN.set(here);
    true
}

fn start(core: &Arc<Core>, runtime: &Handle, generation: u32) {
    let tenure = Tenure { core: Arc::clone(core), runtime: runtime.id(), generation };
    // Moved in here, the tenure is dropped also when the runtime never polls the task.
    runtime.spawn(async move { tenure.run().await });
}

/// A task's hold on the lease. Dropping it early, as a runtime that shuts down does, starts a successor on another runtime.
struct Tenure {
    core: Arc<Core>,
    runtime: Id,
    generation: u32,
}

impl Tenure {
    async fn run(self) {
        let core = &*self.core;
        let (period, began, first) = (core.settings.visit_period(), Instant::now(), core.tick());
        let rules = Rules::new(&core.settings);
        let mut timer = interval_at(began + period, period);
        timer.set_missed_tick_behavior(MissedTickBehavior::Skip); // a stall is one visit, never a burst (I6)
        let mut batch = Batch::default();
        loop {
            let planned = timer.tick().await;
            if !core.lease.is_held_by(self.generation) {
                return;
            }
            let now = Instant::now();
            let elapsed = now.saturating_duration_since(began).as_nanos() / period.as_nanos();
            let tick = first.wrapping_add(elapsed as u32); // ticks follow the clock and may wrap
            core.set_tick(tick);
            let mut cursor = Cursor::default();
            loop {
                core.lease.renew(core.now_ms());
                let more = sweep::slice(core, &mut cursor, tick, &mut batch, |entry| {
                    sweep::decide(entry, || entry.sender.last(), tick, &rules)
                });
                if !more {
                    break;
                }
                tokio::task::yield_now().await;
                if !core.lease.is_held_by(self.generation) {
                    return;
                }
            }
            let lag = now.saturating_duration_since(planned);
            telemetry::swept(now.elapsed(), lag, core.settings.interval);
            core.tally.flush();
            if core.lease.stop_if_idle(self.generation) {
                return;
            }
        }
    }
}

impl Drop for Tenure {
    fn drop(&mut self) {
        if !self.core.lease.release(self.generation) {
            return; // stopped, or taken over
        }
        let seen = self.core.lease.seen();
        // The handle that is taken out is dropped after unlocking: it may be a runtime's last (I2).
        let (_gone, next) = {
            let mut runtimes = self.core.runtimes.lock().unwrap_or_else(PoisonError::into_inner);
            let gone = runtimes.iter().position(|known| known.id() == self.runtime).map(|at| runtimes.remove(at));
            (gone, runtimes.last().cloned())
        };
        // With streams left but no runtime known, the next registration starts a task.
        if let Some(runtime) = next
            && self.core.lease.count() > 0
            && let Some(generation) = self.core.lease.take(seen)
        {
            start(&self.core, &runtime, generation);
        }
    }
}

thread_local! {
    /// The broadcaster and runtime that this thread last registered a stream with: saves the lock of `runtimes`.
    static KNOWN: Cell<(u64, Option<Id>)> = const { Cell::new((0, None)) };
}

/// After so many intervals without a sign of life the lease is free: its runtime may be one that nobody drives any more.
const LEASE_INTERVALS: u64 = 2;
/// Runtimes remembered. Each keeps its scheduler's memory; a process that uses more forgets the oldest.
const RUNTIMES_MAX: usize = 16;
