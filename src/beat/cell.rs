//! One stream's mpsc channel, folded into one word: what is ordered (a heartbeat, an end), and who is to be woken.
//!
//! Many producers (the sweep, a drain) order; one consumer, the stream's body, obeys. A stream never needs more than one
//! pending heartbeat and one pending end, so an order is a mark and not a queued message: the channel is bounded by its
//! shape (I5), allocates once and needs no draining. `docs/design.md` compares it with `futures::channel::mpsc`.
//!
//! This file uses nothing of the crate but `sync`, so that `tests/model.rs` can include it and run it under loom.

use super::sync::{Arc, AtomicU32, AtomicWaker, Ordering};

/// Makes the channel of one stream, which both ends can read `meta` from; `tick` is the visit it begins in.
pub(crate) fn channel<T>(meta: T, tick: u32) -> (Sender<T>, Receiver<T>) {
    let cell = Arc::new(Cell {
        word: AtomicU32::new(0),
        content: AtomicU32::new(tick),
        wire: AtomicU32::new(tick),
        sequence: AtomicU32::new(0),
        quiet: AtomicU32::new(tick),
        bridged: AtomicU32::new(0),
        waker: AtomicWaker::new(),
        meta,
    });
    (Sender(Arc::clone(&cell)), Receiver(cell))
}

/// What both ends share.
struct Cell<T> {
    /// The marks below, and above them the number of heartbeats sent. Written by both ends.
    word: AtomicU32,
    /// The visit in which content last went out. Written by the body, read by the sweep.
    content: AtomicU32,
    /// The visit in which other bytes (heartbeats, the engine's comments) last went out. Written by the body.
    wire: AtomicU32,
    /// The `sequence_number` of the stream's next event, where its error shape has one. Written and read by the body;
    /// here because the cell has room for it and the body has not.
    sequence: AtomicU32,
    /// While a silence is bridged: the visit in which the engine's last byte went out. Written by the body.
    quiet: AtomicU32,
    /// The longest silence of the engine that was bridged and is over, in visits. Written by the body.
    bridged: AtomicU32,
    waker: AtomicWaker,
    meta: T,
}

/// The ordering end: cheap to clone, so that the sweep can copy it out of a lane and wake the stream after unlocking (I2).
pub(crate) struct Sender<T>(Arc<Cell<T>>);

impl<T> Sender<T> {
    /// Orders a heartbeat unless one is pending. Runs nothing foreign: call [`wake`](Self::wake) when no lock is held.
    pub(crate) fn order_beat(&self) -> Ordered {
        let cell = &self.0;
        // Pairs with `take_beat` and `hold`: what the body wrote before clearing the mark is seen by who sets it again.
        let before = cell.word.fetch_or(BEAT, Ordering::AcqRel);
        if before & MUTED != 0 {
            Ordered::Muted
        } else if before & HELD != 0 {
            Ordered::Held
        } else if before & BEAT != 0 {
            Ordered::Pending
        } else {
            Ordered::Fresh
        }
    }

    /// Orders the stream's end; says whether that is news. A later reason never replaces an earlier one, but it may be firmer.
    pub(crate) fn order_end(&self, end: End) -> bool {
        let word = &self.0.word;
        let mut before = word.load(Ordering::Acquire);
        // Bounded: each turn follows a change of the word by the other end, which makes a few a poll.
        loop {
            let reason =
                if before & REASON == 0 { u32::from(end.reason) << REASON_SHIFT & REASON } else { before & REASON };
            let wanted = before | reason | if end.firmness == Firmness::Firm { FIRM } else { 0 };
            if wanted == before {
                return false;
            }
            // Pairs with `orders`: a body that sees the end sees what was written before it.
            match word.compare_exchange_weak(before, wanted, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return true,
                Err(now) => before = now,
            }
        }
    }

    /// Wakes the body. Runs the waker, which is foreign code: no lock may be held (I2), and it may panic.
    pub(crate) fn wake(&self) {
        self.0.waker.wake();
    }

    /// The visits in which content, and in which any other bytes, last went out.
    pub(crate) fn last(&self) -> Last {
        // Relaxed: the body stores one tick at a time and the sweep tolerates a value that is one visit old.
        Last { content: self.0.content.load(Ordering::Relaxed), wire: self.0.wire.load(Ordering::Relaxed) }
    }

    /// How many heartbeats have gone out, modulo 2^24 (at one each 100 ms, 19 days).
    pub(crate) fn beats(&self) -> u32 {
        self.0.word.load(Ordering::Relaxed) >> COUNT_SHIFT // a figure for people; pairs with nothing
    }

    /// The longest silence of the engine that heartbeats have bridged until visit `tick`, in visits.
    pub(crate) fn bridged(&self, tick: u32) -> u32 {
        self.0.bridged(tick)
    }

    pub(crate) fn meta(&self) -> &T {
        &self.0.meta
    }
}

impl<T> Cell<T> {
    fn bridged(&self, tick: u32) -> u32 {
        // Acquire pairs with `Receiver::bridge`: who sees the mark sees where the silence began. The rest are figures.
        let is_bridging = self.word.load(Ordering::Acquire) & BRIDGING != 0;
        let now = if is_bridging { visits_since(self.quiet.load(Ordering::Relaxed), tick) } else { 0 };
        now.max(self.bridged.load(Ordering::Relaxed))
    }
}

/// Visits from `then` to `tick`; none when `then` is the later one, since a body may have read a newer tick.
fn visits_since(then: u32, tick: u32) -> u32 {
    u32::try_from(tick.wrapping_sub(then).cast_signed()).unwrap_or(0)
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// The obeying end, owned by the stream's body.
pub(crate) struct Receiver<T>(Arc<Cell<T>>);

impl<T> Receiver<T> {
    /// What is ordered now.
    pub(crate) fn orders(&self) -> Orders {
        Orders(self.0.word.load(Ordering::Acquire)) // pairs with `order_beat` and `order_end`
    }

    /// What is ordered now; a later order wakes `waker`.
    ///
    /// Registering comes before reading: an order that this read misses finds the waker.
    pub(crate) fn poll_orders(&self, waker: &std::task::Waker) -> Orders {
        self.0.waker.register(waker);
        self.orders()
    }

    /// Clears the pending heartbeat: it was sent, or something else went out in its place.
    pub(crate) fn take_beat(&self) {
        self.0.word.fetch_and(!(BEAT | HELD), Ordering::AcqRel); // pairs with `order_beat`
    }

    /// Marks the pending heartbeat as held back by the stream's own bytes, not by a slow reader.
    pub(crate) fn hold(&self) {
        self.0.word.fetch_or(HELD, Ordering::AcqRel); // pairs with `order_beat`
    }

    /// Says that no heartbeat can go out any more, so that the sweep need not wake this stream.
    pub(crate) fn mute(&self) {
        self.0.word.fetch_or(MUTED, Ordering::AcqRel); // pairs with `order_beat`
    }

    /// Content went out in visit `tick`.
    pub(crate) fn touch_content(&self, tick: u32) {
        self.0.content.store(tick, Ordering::Relaxed); // pairs with `last`
    }

    /// Bytes that are no content went out in visit `tick`.
    pub(crate) fn touch_wire(&self, tick: u32) {
        self.0.wire.store(tick, Ordering::Relaxed); // pairs with `last`
    }

    /// Counts one heartbeat sent.
    pub(crate) fn count_beat(&self) {
        self.0.word.fetch_add(1 << COUNT_SHIFT, Ordering::AcqRel); // pairs with `beats`; a carry falls off the top
    }

    /// The `sequence_number` of the stream's next event, as last set.
    pub(crate) fn sequence(&self) -> u32 {
        self.0.sequence.load(Ordering::Relaxed) // this end alone writes and reads it
    }

    pub(crate) fn set_sequence(&self, sequence: u32) {
        self.0.sequence.store(sequence, Ordering::Relaxed); // this end alone writes and reads it
    }

    /// A heartbeat is about to go out in a silence of the engine; call it before `touch_wire` hides where that began.
    pub(crate) fn bridge(&self) {
        let cell = &self.0;
        // Relaxed: only this end writes the mark and the visits.
        if cell.word.load(Ordering::Relaxed) & BRIDGING != 0 {
            return;
        }
        let (content, wire) = (cell.content.load(Ordering::Relaxed), cell.wire.load(Ordering::Relaxed));
        let quiet = if visits_since(content, wire) > 0 { wire } else { content };
        cell.quiet.store(quiet, Ordering::Relaxed);
        cell.word.fetch_or(BRIDGING, Ordering::AcqRel); // pairs with `Cell::bridged`
    }

    /// The engine has sent a byte in visit `tick`: the silence that was bridged is over.
    pub(crate) fn end_bridge(&self, tick: u32) {
        self.0.bridged.store(self.0.bridged(tick), Ordering::Relaxed); // pairs with `Cell::bridged`
        self.0.word.fetch_and(!BRIDGING, Ordering::AcqRel); // pairs with `Cell::bridged`
    }

    pub(crate) fn meta(&self) -> &T {
        &self.0.meta
    }
}

/// What came of ordering a heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ordered {
    /// None was pending: wake the stream.
    Fresh,
    /// The last one is still pending: its reader is slow or its body is not polled.
    Pending,
    /// The last one is held back inside a line.
    Held,
    /// This stream takes no more heartbeats.
    Muted,
}

/// An order to end the stream. `reason` is 1 to 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) reason: u8,
    pub(crate) firmness: Firmness,
}

/// Whether an end waits for the stream's own pace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Firmness {
    /// At the next event boundary.
    Soft,
    /// Now, by an abort where there is no boundary.
    Firm,
}

/// The visits in which a stream last sent something.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Last {
    pub(crate) content: u32,
    pub(crate) wire: u32,
}

/// A reading of the channel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Orders(u32);

impl Orders {
    /// Nothing is ordered.
    pub(crate) fn is_empty(self) -> bool {
        self.0 & (BEAT | REASON) == 0
    }

    pub(crate) fn is_beat(self) -> bool {
        self.0 & BEAT != 0
    }

    pub(crate) fn is_held(self) -> bool {
        self.0 & HELD != 0
    }

    /// Something is to be cleared when data goes out.
    pub(crate) fn is_marked(self) -> bool {
        self.0 & (BEAT | BRIDGING) != 0
    }

    /// Heartbeats have gone out since the engine's last byte.
    pub(crate) fn is_bridging(self) -> bool {
        self.0 & BRIDGING != 0
    }

    pub(crate) fn end(self) -> Option<End> {
        let reason = ((self.0 & REASON) >> REASON_SHIFT) as u8;
        let firmness = if self.0 & FIRM != 0 { Firmness::Firm } else { Firmness::Soft };
        (reason != 0).then_some(End { reason, firmness })
    }
}

/// A heartbeat is pending.
const BEAT: u32 = 1;
/// The pending heartbeat waits for the end of a line.
const HELD: u32 = 1 << 1;
/// No heartbeat can go out any more.
const MUTED: u32 = 1 << 2;
/// The ordered end does not wait for an event boundary.
const FIRM: u32 = 1 << 3;
/// Why the stream is to end; 0 is no order.
const REASON: u32 = 0b11 << REASON_SHIFT;
const REASON_SHIFT: u32 = 4;
/// Heartbeats have gone out since the engine's last byte.
const BRIDGING: u32 = 1 << 6;
/// The heartbeats sent are counted in the bits above the marks.
const COUNT_SHIFT: u32 = 8;

#[cfg(test)]
#[path = "cell/tests.rs"] // the same from here and from `tests/model.rs`, which includes this file by path
mod tests;
