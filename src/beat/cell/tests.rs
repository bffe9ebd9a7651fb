//! The cell, one rule at a time; `tests/model.rs` includes these with the cell and runs them under loom as well.

use super::super::sync::check;
use super::*;
use std::task::Waker;

#[test]
fn one_heartbeat_is_pending_at_most() {
    check(|| {
        let (sender, receiver) = channel((), 0);
        let clones: Vec<_> = (0..100).map(|_| sender.clone()).collect();
        let fresh = clones.iter().filter(|clone| clone.order_beat() == Ordered::Fresh).count();
        assert_eq!(fresh, 1, "a clone has no slot of its own");
        receiver.take_beat();
        for _ in 0..3 {
            receiver.count_beat();
        }
        assert_eq!((sender.order_beat(), sender.beats()), (Ordered::Fresh, 3), "the count leaves the marks alone");
    });
}

#[test]
fn held_and_muted_are_told_apart_from_a_slow_reader() {
    check(|| {
        let (sender, receiver) = channel((), 0);
        assert_eq!(sender.order_beat(), Ordered::Fresh);
        assert_eq!(sender.order_beat(), Ordered::Pending);
        receiver.hold();
        assert_eq!(sender.order_beat(), Ordered::Held);
        receiver.take_beat();
        receiver.mute();
        assert_eq!(sender.order_beat(), Ordered::Muted);
    });
}

#[test]
fn a_bridged_silence_counts_from_the_engines_last_byte_to_its_next() {
    check(|| {
        let (sender, receiver) = channel((), u32::MAX - 1);
        receiver.touch_wire(1); // the engine's own comment
        assert_eq!(sender.bridged(8), 0, "no heartbeat, no bridge");
        for tick in [9, 17] {
            receiver.bridge();
            receiver.touch_wire(tick);
        }
        assert_eq!(sender.bridged(20), 19, "still silent");
        receiver.end_bridge(21);
        receiver.bridge();
        receiver.end_bridge(30);
        assert_eq!(sender.bridged(90), 20, "the longest stays");
    });
}

#[test]
fn the_first_reason_to_end_stays_and_may_become_firm() {
    check(|| {
        let (sender, receiver) = channel((), 0);
        assert!(sender.order_end(End { reason: 2, firmness: Firmness::Soft }));
        assert!(!sender.order_end(End { reason: 1, firmness: Firmness::Soft }), "no news");
        assert!(sender.order_end(End { reason: 3, firmness: Firmness::Firm }));
        assert_eq!(receiver.orders().end(), Some(End { reason: 2, firmness: Firmness::Firm }));
        assert!(receiver.poll_orders(Waker::noop()).end().is_some());
    });
}
