//! One bounded pass over a slice of the registry: collect under the lock, unlock, then wake (I2, I5, I6).
//!
//! [`decide`] is pure and says what a stream is due; [`slice`] acts on it. Called by `task` at each visit and by `drain`.

use super::cell::{End, Firmness, Last, Ordered, Sender};
use super::core::{Core, count};
use super::registry::{Cursor, Entry};
use crate::config::{Builder, Cadence, Shared, VISITS};
use crate::ending::Ended;
use crate::telemetry;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What the sweep knows beside a stream's entry, all in visits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    cadence: Cadence,
    max_silence: u32,
    max_lifetime: u32,
    jitter: u32,
}

impl Rules {
    pub(crate) fn new(settings: &Builder) -> Self {
        Self {
            cadence: settings.cadence,
            max_silence: settings.max_silence.map_or(u32::MAX, |limit| settings.visits(limit)),
            max_lifetime: settings.max_lifetime.map_or(u32::MAX, |limit| settings.visits(limit)),
            jitter: settings.visits(settings.lifetime_jitter),
        }
    }
}

/// What one stream is due at one visit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Due {
    pub(crate) end: Option<End>,
    /// A heartbeat, after so many visits of silence.
    pub(crate) beat: Option<u32>,
}

impl Due {
    /// An end because of `ended`, and no heartbeat.
    pub(crate) fn end(ended: Ended, firmness: Firmness) -> Self {
        Self { end: Some(End { reason: ended.number(), firmness }), beat: None }
    }
}

/// What is due to a stream at visit `tick`: a cap it has reached, and a heartbeat.
///
/// `last` reads the stream's cell, which is a cache miss for each of many streams: it is asked only when it matters.
pub(crate) fn decide(entry: &Entry, last: impl Fn() -> Last, tick: u32, rules: &Rules) -> Due {
    // A body may have read a newer tick than this sweep's when a takeover is under way: then nothing has passed.
    let since = |then: u32| tick.wrapping_sub(then).cast_signed();
    let passed = |then: u32, limit: u32| u32::try_from(since(then)).is_ok_and(|visits| visits >= limit);
    if rules.max_silence != u32::MAX && passed(last().content, rules.max_silence) {
        return Due::end(Ended::MaxSilence, Firmness::Firm);
    }
    let mut due = Due::default();
    if rules.max_lifetime != u32::MAX {
        let lifetime = rules.max_lifetime - ((u64::from(entry.spread()) * u64::from(rules.jitter)) >> 32) as u32;
        if passed(entry.registered, lifetime.saturating_add(VISITS)) {
            return Due::end(Ended::MaxLifetime, Firmness::Firm);
        }
        if passed(entry.registered, lifetime) {
            due = Due::end(Ended::MaxLifetime, Firmness::Soft);
        }
    }
    if entry.due == 0 || since(entry.ordered) < i32::from(entry.due) {
        return due;
    }
    let last = last();
    let silence = since(last.content).min(since(last.wire));
    if rules.cadence == Cadence::EveryTick || silence >= i32::from(entry.due) {
        due.beat = Some(u32::try_from(silence).unwrap_or(0));
    }
    due
}

/// What a slice gathers under the lock; kept from slice to slice for its buffers.
#[derive(Default)]
pub(crate) struct Batch {
    senders: Vec<Sender<Shared>>,
    silences: Vec<u32>,
}

/// Gives up to [`SENDS`] streams from `cursor` on what `due` says; returns whether the walk is to go on.
///
/// The caller yields between slices, so that live streams are served meanwhile (I6).
pub(crate) fn slice(
    core: &Core,
    cursor: &mut Cursor,
    tick: u32,
    batch: &mut Batch,
    due: impl Fn(&Entry) -> Due,
) -> bool {
    let more = core.registry.walk(cursor, SLOTS, |entry| {
        let Due { end, beat } = due(entry);
        let mut fresh = end.is_some_and(|end| entry.sender.order_end(end));
        if let Some(silence) = beat {
            entry.ordered = tick;
            match entry.sender.order_beat() {
                Ordered::Fresh => {
                    batch.silences.push(silence);
                    fresh = true;
                }
                Ordered::Pending => count(&core.tally.skipped_backpressure),
                Ordered::Held => count(&core.tally.held),
                Ordered::Muted => count(&core.tally.bypassed),
            }
        }
        if fresh {
            batch.senders.push(entry.sender.clone());
        }
        if batch.senders.len() < SENDS { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    for sender in batch.senders.drain(..) {
        // Waking, and dropping what may be the last reference to a waker, run foreign code (I2).
        if catch_unwind(AssertUnwindSafe(move || sender.wake())).is_err() {
            telemetry::waker_panicked();
        }
    }
    for visits in batch.silences.drain(..) {
        telemetry::silence(core.visits_long(visits));
    }
    more
}

/// Heartbeats in one slice (I6). With 16 live tokens are as late as without heartbeats (p99 within 1.05); with 32 they are
/// 1.2 times as late, and a heartbeat costs some 5 % less (`cargo bench --bench streams`).
const SENDS: usize = 16;
/// Slots in one slice, vacant ones included (I6).
const SLOTS: usize = 512;

#[cfg(test)]
mod tests {
    use super::super::cell::{Receiver, channel};
    use super::*;
    use std::sync::Arc;
    use std::time::Duration;

    fn entry(due: u16) -> (Entry, Receiver<Shared>) {
        let (sender, receiver) = channel(Arc::new(Builder::default().stream()), 0);
        (Entry::new(sender, 0, 0, due), receiver)
    }

    fn at(entry: &Entry, content: u32, wire: u32, tick: u32, rules: &Rules) -> Due {
        decide(entry, || Last { content, wire }, tick, rules)
    }

    fn beat(silence: u32) -> Due {
        Due { end: None, beat: Some(silence) }
    }

    #[test]
    fn every_tick_counts_from_the_last_heartbeat_and_idle_from_the_last_byte() {
        let (mut entry, _receiver) = entry(8);
        let rules = Rules::new(&Builder::default());
        assert_eq!(at(&entry, 5, 0, 7, &rules), Due::default());
        assert_eq!(at(&entry, 5, 0, 8, &rules), beat(3));
        entry.due = 7;
        let idle = Rules::new(&Builder::default().cadence(Cadence::IdleOnly));
        assert_eq!(at(&entry, 5, 0, 11, &idle), Due::default());
        assert_eq!(at(&entry, 5, 3, 12, &idle), beat(7));
        assert_eq!(at(&entry, 5, 6, 12, &idle), Due::default(), "another's heartbeat is life");
    }

    #[test]
    fn due_times_survive_the_wrap_of_the_tick() {
        let (mut entry, _receiver) = entry(8);
        let rules = Rules::new(&Builder::default());
        entry.ordered = u32::MAX - 3;
        assert_eq!(at(&entry, u32::MAX - 3, 0, 3, &rules), Due::default());
        assert_eq!(at(&entry, u32::MAX - 3, u32::MAX - 3, 4, &rules), beat(8));
        assert_eq!(at(&entry, 9, 9, 4_000, &rules), beat(3_991), "a stall of any length is one heartbeat");
    }

    #[test]
    fn only_content_puts_max_silence_off() {
        let (entry, _receiver) = entry(8);
        let rules = Rules::new(&Builder::default().max_silence(Duration::from_secs(60)));
        assert_ne!(at(&entry, 1, 16, 16, &rules), Due::end(Ended::MaxSilence, Firmness::Firm));
        assert_eq!(at(&entry, 1, 16, 17, &rules), Due::end(Ended::MaxSilence, Firmness::Firm));
    }

    #[test]
    fn a_lifetime_ends_softly_first_and_firmly_one_interval_later() {
        let (entry, _receiver) = entry(8);
        let rules = Rules::new(&Builder::default().max_lifetime(Duration::from_secs(60)));
        assert_eq!(at(&entry, 15, 15, 15, &rules).end, None);
        assert_eq!(at(&entry, 15, 15, 16, &rules).end, Due::end(Ended::MaxLifetime, Firmness::Soft).end);
        assert!(at(&entry, 15, 15, 17, &rules).beat.is_some(), "heartbeats go on meanwhile");
        assert_eq!(at(&entry, 15, 15, 24, &rules), Due::end(Ended::MaxLifetime, Firmness::Firm));
    }

    #[test]
    fn jitter_only_shortens_lifetimes() {
        let builder =
            Builder::default().max_lifetime(Duration::from_secs(600)).lifetime_jitter(Duration::from_secs(300));
        let rules = Rules::new(&builder);
        let core = Core::new(builder);
        for _ in 0..100 {
            core.registry.insert(entry(0).0);
        }
        let ended_at = |tick| {
            let (mut cursor, mut ended) = (Cursor::default(), 0);
            while core.registry.walk(&mut cursor, SLOTS, |entry| {
                ended += u32::from(
                    at(entry, tick, tick, tick, &rules).end.is_some_and(|end| end.firmness == Firmness::Firm),
                );
                ControlFlow::Continue(())
            }) {}
            ended
        };
        assert_eq!(ended_at(80 + 7), 0);
        assert!((20..80).contains(&ended_at(120 + 8)), "half of them at half of the jitter");
        assert_eq!(ended_at(160 + 8), 100);
    }

    #[test]
    fn a_slice_is_bounded_and_skips_what_is_pending() {
        let core = Core::new(Builder::default());
        let receivers: Vec<_> = (0..100)
            .map(|_| {
                let (entry, receiver) = entry(8);
                core.registry.insert(entry);
                receiver
            })
            .collect();
        let rules = Rules::new(&core.settings);
        let sweep = |tick| {
            let (mut cursor, mut batch, mut slices) = (Cursor::default(), Batch::default(), 0);
            let sent = || receivers.iter().filter(|receiver| receiver.orders().is_beat()).count();
            let mut before = sent();
            loop {
                let more = slice(&core, &mut cursor, tick, &mut batch, |entry| {
                    decide(entry, || entry.sender.last(), tick, &rules)
                });
                assert!(sent() - before <= SENDS);
                before = sent();
                slices += 1;
                if !more {
                    return slices;
                }
            }
        };
        assert!(sweep(8) >= 4);
        assert!(receivers.iter().all(|receiver| receiver.orders().is_beat()));
        sweep(16);
        assert_eq!(core.tally.skipped_backpressure.swap(0, std::sync::atomic::Ordering::Relaxed), 100);
    }
}
