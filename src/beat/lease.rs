//! Who may sweep: one word with the lease's generation, whether a task runs under it, and how many streams live (I4).
//!
//! Registrations, removals and the interval task meet here. Because the count and the running mark are one word, "stop if
//! nobody is left" and "start if nobody runs" cannot miss each other: whichever changes the word first is seen by the other.
//! Everything uses this through `core`. Like `cell`, it is model-checked (`tests/model.rs`).

use super::sync::{AtomicU64, Ordering};

/// The lifecycle word.
pub(crate) struct Lease {
    /// Generation in the upper half, [`RUNNING`], and the count of streams below it.
    word: AtomicU64,
    /// When the holder last showed life, in milliseconds of the broadcaster's own clock.
    renewed_ms: AtomicU64,
}

impl Lease {
    pub(crate) fn new() -> Self {
        Self { word: AtomicU64::new(0), renewed_ms: AtomicU64::new(0) }
    }

    /// Counts one more stream and says who sweeps.
    pub(crate) fn enrol(&self) -> Seen {
        // AcqRel, as everywhere on this word: its changes are one order that all parties agree on.
        Seen::of(self.word.fetch_add(1, Ordering::AcqRel))
    }

    /// Counts one stream less; returns how many are left.
    pub(crate) fn leave(&self) -> u64 {
        (self.word.fetch_sub(1, Ordering::AcqRel) & COUNT) - 1 // each registration leaves once (I3), so this cannot wrap
    }

    /// How many streams live.
    pub(crate) fn count(&self) -> u64 {
        self.word.load(Ordering::Acquire) & COUNT
    }

    /// Takes the lease that was `seen`, from nobody or from a holder that went silent. The winner must start a task.
    pub(crate) fn take(&self, seen: Seen) -> Option<u32> {
        let next = seen.generation.wrapping_add(1);
        self.change(|word| {
            let now = Seen::of(word);
            (now.generation == seen.generation).then_some(raised(next) | RUNNING | word & COUNT)
        })
        .then_some(next)
    }

    /// Whether `generation` still holds the lease; asked before each slice.
    pub(crate) fn is_held_by(&self, generation: u32) -> bool {
        let now = Seen::of(self.word.load(Ordering::Acquire));
        now.running && now.generation == generation
    }

    /// Gives the lease up if no stream is left. After `true` the task must end; a stream that enrols later starts another.
    pub(crate) fn stop_if_idle(&self, generation: u32) -> bool {
        self.change(|word| (word == raised(generation) | RUNNING).then_some(raised(generation)))
    }

    /// Gives the lease up whatever is left: its task is gone, or none could be started.
    pub(crate) fn release(&self, generation: u32) -> bool {
        self.change(|word| {
            let now = Seen::of(word);
            (now.running && now.generation == generation).then_some(word & !RUNNING)
        })
    }

    /// The holder shows life.
    pub(crate) fn renew(&self, now_ms: u64) {
        self.renewed_ms.store(now_ms, Ordering::Relaxed); // pairs with `idle_ms`; a hint, the word decides
    }

    /// How long the holder has shown no life, in milliseconds.
    pub(crate) fn idle_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.renewed_ms.load(Ordering::Relaxed))
    }

    /// A reading of the word.
    pub(crate) fn seen(&self) -> Seen {
        Seen::of(self.word.load(Ordering::Acquire))
    }

    fn change(&self, wanted: impl Fn(u64) -> Option<u64>) -> bool {
        let mut word = self.word.load(Ordering::Acquire);
        // Bounded: each turn follows a change of the word by another thread.
        while let Some(next) = wanted(word) {
            match self.word.compare_exchange_weak(word, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        false
    }
}

/// Who swept when the word was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) generation: u32,
    pub(crate) running: bool,
}

impl Seen {
    fn of(word: u64) -> Self {
        Self { generation: (word >> 32) as u32, running: word & RUNNING != 0 }
    }
}

fn raised(generation: u32) -> u64 {
    u64::from(generation) << 32
}

/// A task holds the lease.
const RUNNING: u64 = 1 << 31;
/// The streams: 2^31 is more than any process can hold.
const COUNT: u64 = RUNNING - 1;

#[cfg(test)]
mod tests {
    use super::super::sync::check;
    use super::*;

    #[test]
    fn stops_only_when_no_stream_is_left() {
        check(|| {
            let lease = Lease::new();
            let seen = lease.enrol();
            assert!(!seen.running);
            let generation = lease.take(seen).expect("nobody holds it");
            assert!(!lease.stop_if_idle(generation), "one stream lives");
            assert_eq!(lease.leave(), 0);
            assert!(lease.stop_if_idle(generation));
            assert!(!lease.is_held_by(generation));
            assert!(!lease.enrol().running, "the next stream starts a task");
        });
    }

    #[test]
    fn a_lost_lease_is_never_given_up_by_its_old_holder() {
        check(|| {
            let lease = Lease::new();
            let first = lease.take(lease.enrol()).expect("free");
            let second = lease.take(lease.seen()).expect("taken over");
            assert_ne!(first, second);
            assert!(!lease.is_held_by(first));
            assert!(!lease.release(first));
            lease.leave();
            assert!(!lease.stop_if_idle(first));
            assert!(lease.stop_if_idle(second));
        });
    }

    #[test]
    fn one_of_two_takers_wins() {
        check(|| {
            let lease = Lease::new();
            let seen = lease.enrol();
            assert!(lease.take(seen).is_some());
            assert!(lease.take(seen).is_none());
        });
    }

    #[test]
    fn life_shown_is_measured_without_wrapping() {
        check(|| {
            let lease = Lease::new();
            lease.renew(500);
            assert_eq!(lease.idle_ms(800), 300);
            assert_eq!(lease.idle_ms(100), 0);
        });
    }
}
