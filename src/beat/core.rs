//! What all parts of one broadcaster share: settings, registry, lease, tick, phase and tallies. No behaviour of its own.

use super::lease::Lease;
use super::registry::Registry;
use super::totals::Ledger;
use crate::config::{Builder, Shared};
use crate::telemetry;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The state of one broadcaster.
pub(crate) struct Core {
    /// Unlike an address, never used again.
    pub(crate) id: u64,
    pub(crate) settings: Builder,
    /// The settings of a stream that asks for nothing of its own.
    pub(crate) stream: Shared,
    pub(crate) registry: Registry,
    pub(crate) lease: Lease,
    /// The runtimes that streams were registered from and that have a timer (I4).
    pub(crate) runtimes: Mutex<Vec<Handle>>,
    /// Told when the last stream has gone.
    pub(crate) emptied: Notify,
    pub(crate) tally: Tally,
    pub(crate) ledger: Ledger,
    /// The number of the last visit. Written by the interval task; a body reads it when bytes go out.
    tick: AtomicU32,
    phase: AtomicU8,
    began: Instant,
}

impl Core {
    pub(crate) fn new(settings: Builder) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self {
            id: NEXT.fetch_add(1, Ordering::Relaxed), // only has to be unique; pairs with nothing
            stream: Arc::new(settings.stream()),
            settings,
            registry: Registry::new(),
            lease: Lease::new(),
            runtimes: Mutex::new(Vec::new()),
            emptied: Notify::new(),
            tally: Tally::default(),
            ledger: Ledger::default(),
            tick: AtomicU32::new(0),
            phase: AtomicU8::new(SERVING),
            began: Instant::now(),
        }
    }

    #[inline]
    pub(crate) fn tick(&self) -> u32 {
        self.tick.load(Ordering::Relaxed) // a clock; pairs with `set_tick`
    }

    pub(crate) fn set_tick(&self, tick: u32) {
        self.tick.store(tick, Ordering::Relaxed); // pairs with `tick`
    }

    /// The broadcaster's clock in milliseconds.
    pub(crate) fn now_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// So many visits as a time.
    pub(crate) fn visits_long(&self, visits: u32) -> Duration {
        self.settings.visit_period().saturating_mul(visits)
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.phase.load(Ordering::Acquire) != SERVING // pairs with `set_draining`
    }

    /// From now on new streams end at once.
    pub(crate) fn set_draining(&self) {
        self.phase.store(DRAINING, Ordering::Release); // pairs with `is_draining`
    }
}

/// Heartbeats by what became of them, gathered here so that a token's path records no metric (I10).
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) sent: AtomicU64,
    pub(crate) skipped_active: AtomicU64,
    pub(crate) skipped_backpressure: AtomicU64,
    pub(crate) held: AtomicU64,
    pub(crate) bypassed: AtomicU64,
}

impl Tally {
    /// Tells the recorder what was gathered since the last call.
    pub(crate) fn flush(&self) {
        for (result, count) in [
            ("sent", &self.sent),
            ("skipped_active", &self.skipped_active),
            ("skipped_backpressure", &self.skipped_backpressure),
            ("held", &self.held),
            ("bypassed", &self.bypassed),
        ] {
            telemetry::heartbeats(result, count.swap(0, Ordering::Relaxed)); // a counter; pairs with `count`
        }
    }
}

/// Counts one.
#[inline]
pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed); // pairs with `Tally::flush`
}

const SERVING: u8 = 0;
const DRAINING: u8 = 1;
