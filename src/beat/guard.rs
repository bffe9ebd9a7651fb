//! [`Registration`]: a stream is in the registry exactly as long as this guard lives (I3, I9). Owned by `body`.

use super::cell::{End, Firmness, Receiver, channel};
use super::core::Core;
use super::lease::Seen;
use super::registry::{Entry, Key};
use crate::config::Shared;
use crate::ending::Ended;
use crate::telemetry::{self, Outcome};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// One registered stream. Dropping it removes the stream, on completion, error, cancellation and panic alike.
pub(crate) struct Registration {
    core: Arc<Core>,
    receiver: Receiver<Shared>,
    /// `None` when the stream has been removed.
    key: Option<Key>,
}

impl Registration {
    /// Registers a stream; [`Seen`] says whether a task must be started for it.
    pub(crate) fn new(core: &Arc<Core>, config: Shared) -> (Self, Seen) {
        let tick = core.tick();
        let (due, first_delay) = (config.due(&core.settings), config.first_delay(&core.settings));
        let (sender, receiver) = channel(config, tick);
        if core.is_draining() {
            sender.order_end(End { reason: Ended::Drained.number(), firmness: Firmness::Soft }); // obeyed at the first poll
        }
        let seen = core.lease.enrol();
        let key = core.registry.insert(Entry::new(sender, tick, first_delay, due));
        telemetry::stream_began();
        (Self { core: Arc::clone(core), receiver, key: Some(key) }, seen)
    }

    #[inline]
    pub(crate) fn core(&self) -> &Core {
        &self.core
    }

    #[inline]
    pub(crate) fn receiver(&self) -> &Receiver<Shared> {
        &self.receiver
    }

    pub(crate) fn id(&self) -> Option<u32> {
        self.key.map(Key::id)
    }

    /// Removes the stream and says how it ended; once, however often it is called.
    pub(crate) fn finish(&mut self, outcome: Outcome) {
        let Some(key) = self.key.take() else { return };
        let entry = self.core.registry.remove(key);
        if let Some(entry) = &entry {
            let bridged = self.core.visits_long(entry.sender.bridged(self.core.tick()));
            self.core.ledger.close(entry.sender.beats(), bridged);
        }
        let left = self.core.lease.leave();
        // A waker's drop, a drain's waker and the recorder are foreign and come after unlocking (I2); one that panics
        // must not turn an unwinding thread into an abort.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            drop(entry);
            if left == 0 {
                self.core.emptied.notify_waiters();
            }
            telemetry::stream_ended(outcome);
        }));
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.finish(Outcome::Cancelled);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Builder;

    #[test]
    fn a_stream_is_registered_as_long_as_its_guard_lives() {
        let core = Arc::new(Core::new(Builder::default()));
        let (mut first, seen) = Registration::new(&core, core.stream.clone());
        let (second, _) = Registration::new(&core, core.stream.clone());
        assert!(!seen.running);
        assert_eq!((core.registry.len(), core.lease.count()), (2, 2));
        first.finish(Outcome::Completed);
        first.finish(Outcome::Completed);
        assert_eq!((core.registry.len(), core.lease.count()), (1, 1));
        drop(second);
        assert_eq!((core.registry.len(), core.lease.count()), (0, 0));
    }

    #[test]
    fn a_panicking_handler_leaves_no_entry() {
        let core = Arc::new(Core::new(Builder::default()));
        let held = Registration::new(&core, core.stream.clone()).0;
        let result = catch_unwind(AssertUnwindSafe(|| {
            let _held = held;
            panic!("the handler's");
        }));
        assert!(result.is_err());
        assert_eq!((core.registry.len(), core.lease.count()), (0, 0));
    }
}
