//! `cell` and `lease` under loom: every interleaving of their atomics, with the library's own source files.
//!
//! `--cfg loom` would take `tokio::net` away from the rest of the tests, so the two files are included by path and given
//! loom's primitives in place of `src/beat/sync.rs`.

#![allow(dead_code)] // the included files have more than the models use

mod sync {
    pub(crate) use loom::sync::Arc;
    pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};

    /// Explores the interleavings of `test` with up to three preemptions, which finds nearly all that more would.
    pub(crate) fn check(test: impl Fn() + Send + Sync + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(test);
    }

    /// loom's waker slot with the signature of the one in `futures`.
    pub(crate) struct AtomicWaker(loom::future::AtomicWaker);

    impl AtomicWaker {
        pub(crate) fn new() -> Self {
            Self(loom::future::AtomicWaker::new())
        }

        pub(crate) fn register(&self, waker: &std::task::Waker) {
            self.0.register_by_ref(waker);
        }

        pub(crate) fn wake(&self) {
            self.0.wake();
        }
    }
}

#[path = "../src/beat/cell.rs"]
mod cell;
#[path = "../src/beat/lease.rs"]
mod lease;

use cell::{End, Firmness, Ordered, channel};
use lease::Lease;
use loom::future::block_on;
use loom::thread;
use std::future::poll_fn;
use std::task::Poll;
use sync::{Arc, check};

/// A heartbeat that is ordered is always seen: the body never sleeps on it (`poll_orders` registers before it reads).
#[test]
fn an_order_is_never_missed() {
    check(|| {
        let (sender, receiver) = channel((), 0);
        let sweep = thread::spawn(move || {
            assert_eq!(sender.order_beat(), Ordered::Fresh);
            sender.wake();
        });
        block_on(poll_fn(|cx| match receiver.poll_orders(cx.waker()).is_beat() {
            true => {
                receiver.take_beat();
                Poll::Ready(())
            }
            false => Poll::Pending,
        }));
        assert!(receiver.orders().is_empty());
        sweep.join().expect("no panic");
    });
}

/// Two sweeps (a takeover under way) and a body: as many heartbeats are sent as were freshly ordered, one pending at most.
#[test]
fn heartbeats_sent_equal_heartbeats_ordered_afresh() {
    check(|| {
        let (sender, receiver) = channel((), 0);
        let sweeps: Vec<_> = (0..2)
            .map(|_| {
                let sender = sender.clone();
                thread::spawn(move || {
                    let fresh = sender.order_beat() == Ordered::Fresh;
                    sender.wake();
                    u32::from(fresh)
                })
            })
            .collect();
        let mut sent = 0;
        let mut look = || {
            if receiver.orders().is_beat() {
                receiver.take_beat();
                sent += 1;
            }
        };
        look();
        let ordered: u32 = sweeps.into_iter().map(|sweep| sweep.join().expect("no panic")).sum();
        look();
        assert_eq!(sent, ordered);
    });
}

/// An end that is ordered while the body clears a heartbeat is not lost, and keeps the first reason.
#[test]
fn an_end_survives_the_body_s_own_marks() {
    check(|| {
        let (sender, receiver) = channel((), 0);
        sender.order_beat();
        let other = sender.clone();
        let drain = thread::spawn(move || {
            other.order_end(End { reason: 3, firmness: Firmness::Soft });
            other.wake();
        });
        let cap = thread::spawn(move || {
            sender.order_end(End { reason: 1, firmness: Firmness::Firm });
            sender.wake();
        });
        receiver.hold();
        receiver.take_beat();
        drain.join().expect("no panic");
        cap.join().expect("no panic");
        let end = receiver.orders().end().expect("ordered");
        assert!(end.firmness == Firmness::Firm && (end.reason == 3 || end.reason == 1));
        assert!(!receiver.orders().is_beat());
    });
}

/// "Stop if nobody is left" against "start if nobody runs": a stream is never left without a task.
#[test]
fn a_stream_that_enrols_while_the_task_stops_has_a_task() {
    check(|| {
        let lease = Arc::new(Lease::new());
        let generation = lease.take(lease.seen()).expect("free");
        let task = {
            let lease = Arc::clone(&lease);
            thread::spawn(move || lease.stop_if_idle(generation))
        };
        let seen = lease.enrol();
        let started = !seen.running && lease.take(seen).is_some();
        let stopped = task.join().expect("no panic");
        assert_eq!(started, stopped, "exactly one task runs");
        assert!(lease.seen().running);
        assert_eq!(lease.count(), 1);
    });
}

/// Two streams, one leaving: the task stops only if both have gone, and one that comes back starts exactly one.
#[test]
fn two_tasks_never_run() {
    check(|| {
        let lease = Arc::new(Lease::new());
        let streams: Vec<_> = (0..2)
            .map(|_| {
                let lease = Arc::clone(&lease);
                thread::spawn(move || {
                    let seen = lease.enrol();
                    let task = if seen.running { None } else { lease.take(seen) };
                    lease.leave();
                    task
                })
            })
            .collect();
        let tasks: Vec<_> = streams.into_iter().filter_map(|stream| stream.join().expect("no panic")).collect();
        let holders = tasks.iter().filter(|task| lease.is_held_by(**task)).count();
        assert_eq!(holders, 1, "of {tasks:?}");
    });
}

/// A holder that lost its lease to a takeover neither stops nor releases the new one.
#[test]
fn a_takeover_is_final() {
    check(|| {
        let lease = Arc::new(Lease::new());
        let old = lease.take(lease.enrol()).expect("free");
        let holder = {
            let lease = Arc::clone(&lease);
            thread::spawn(move || lease.release(old))
        };
        let new = lease.take(lease.seen()).expect("nobody else takes it");
        holder.join().expect("no panic");
        assert!(lease.is_held_by(new) && !lease.is_held_by(old));
    });
}
