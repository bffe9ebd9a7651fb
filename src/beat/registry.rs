//! The shared map of live streams: a `DashMap` of lanes, each lane a `Slab` of entries that hold a stream's mpsc sender.
//!
//! Registering and removing lock one lane for a few instructions; the sweep locks one lane for at most a slice of it. No
//! reference into the map leaves this file, and nothing foreign runs while one is held (I2): entries are handed out to be
//! dropped after unlocking. Used by `core`, `guard` and `sweep`.

use super::cell::Sender;
use crate::config::Shared;
use dashmap::DashMap;
use slab::Slab;
use std::hash::{BuildHasher, Hasher};
use std::num::NonZeroU32;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU32, Ordering};

/// Every live stream of one broadcaster.
pub(crate) struct Registry {
    lanes: DashMap<u32, Slab<Entry>, LaneHash>,
    /// How many streams were ever registered, modulo 2^32: the next generation, and by its low bits the next lane.
    registered: AtomicU32,
}

/// One live stream as the sweep sees it.
pub(crate) struct Entry {
    pub(crate) sender: Sender<Shared>,
    generation: u32,
    /// The visit in which the stream was registered.
    pub(crate) registered: u32,
    /// The visit in which its last heartbeat was ordered or given up; a JSON stream starts with a later one.
    pub(crate) ordered: u32,
    /// Visits between heartbeats, 0 for never.
    pub(crate) due: u16,
}

impl Entry {
    pub(crate) fn new(sender: Sender<Shared>, registered: u32, first_delay: u32, due: u16) -> Self {
        Self { sender, generation: 0, registered, ordered: registered.wrapping_add(first_delay), due }
    }

    /// The stream's number, the same as [`Key::id`].
    pub(crate) fn id(&self) -> u32 {
        self.generation
    }

    /// A number that differs from stream to stream, for spreading lifetimes.
    pub(crate) fn spread(&self) -> u32 {
        self.generation.wrapping_mul(0x9E37_79B9) // Fibonacci hashing: neighbours land far apart
    }
}

/// Where a registered stream's entry is; the generation makes it good for that stream only (I3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    /// One above the slot, so that an `Option<Key>` takes no more room than a key.
    above: NonZeroU32,
    generation: u32,
}

impl Key {
    /// The stream's number: unique among 2^32 streams registered one after another.
    pub(crate) fn id(self) -> u32 {
        self.generation
    }
}

/// Where a walk goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cursor {
    lane: u32,
    slot: usize,
}

impl Registry {
    pub(crate) fn new() -> Self {
        let lanes = DashMap::with_capacity_and_hasher_and_shard_amount(0, LaneHash, LANES as usize);
        Self { lanes, registered: AtomicU32::new(0) }
    }

    /// Adds an entry.
    pub(crate) fn insert(&self, mut entry: Entry) -> Key {
        let generation = self.registered.fetch_add(1, Ordering::Relaxed); // only has to be unique; pairs with nothing
        entry.generation = generation;
        let mut lane = self.lanes.entry(generation % LANES).or_default();
        if lane.len() == lane.capacity() {
            let more = (lane.len() / 4).max(GROWTH_MIN);
            lane.reserve_exact(more);
        }
        let slot = lane.insert(entry) as u32; // a lane of 2^32 entries is beyond any memory
        Key { above: NonZeroU32::MIN.saturating_add(slot), generation }
    }

    /// Takes the entry out, if it is still the one that `key` was given for. Drop it only when no lock is held (I2).
    pub(crate) fn remove(&self, key: Key) -> Option<Entry> {
        let mut lane = self.lanes.get_mut(&(key.generation % LANES))?;
        let slot = key.above.get() as usize - 1;
        if lane.get(slot)?.generation != key.generation {
            return None;
        }
        let entry = lane.try_remove(slot);
        if lane.is_empty() && lane.capacity() > KEPT {
            *lane = Slab::new();
        }
        entry
    }

    /// Visits entries from `cursor` on until `visit` breaks or `slots` slots (vacant ones included) are seen; says whether
    /// the walk is to go on, for which `cursor` is moved. `visit` runs under a lane's lock: nothing foreign in it (I2).
    pub(crate) fn walk(
        &self,
        cursor: &mut Cursor,
        slots: usize,
        mut visit: impl FnMut(&mut Entry) -> ControlFlow<()>,
    ) -> bool {
        let mut left = slots;
        while cursor.lane < LANES {
            if left == 0 {
                return true;
            }
            left = left.saturating_sub(LANE_COST);
            if let Some(mut lane) = self.lanes.get_mut(&cursor.lane) {
                while cursor.slot < lane.capacity() {
                    if left == 0 {
                        return true;
                    }
                    left -= 1;
                    let slot = cursor.slot;
                    cursor.slot += 1;
                    if let Some(entry) = lane.get_mut(slot)
                        && visit(entry).is_break()
                    {
                        return true;
                    }
                }
            }
            *cursor = Cursor { lane: cursor.lane + 1, slot: 0 };
        }
        false
    }

    /// How many entries there are, by looking at each lane.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        (0..LANES).filter_map(|lane| self.lanes.get(&lane).map(|lane| lane.len())).sum()
    }
}

/// Puts lane n into shard n, so that each lane has a lock of its own. If `dashmap` chose shards otherwise, lanes would
/// share locks and nothing else would change.
#[derive(Clone, Copy, Default)]
struct LaneHash;

impl BuildHasher for LaneHash {
    type Hasher = LaneHasher;

    fn build_hasher(&self) -> LaneHasher {
        LaneHasher(0)
    }
}

struct LaneHasher(u64);

impl Hasher for LaneHasher {
    fn finish(&self) -> u64 {
        // The seven highest bits are hashbrown's tag, the ones below them choose the shard.
        self.0 << (usize::BITS - 7 - LANES.trailing_zeros())
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0 << 8 | u64::from(*byte);
        }
    }

    fn write_u32(&mut self, lane: u32) {
        self.0 = u64::from(lane);
    }
}

/// Lanes, and shards of the map. With a million streams a lane holds four thousand, so that neither a slice of a walk over
/// it nor the growth of its slab keeps a registration waiting for 100 µs (`cargo bench --bench registry`); more lanes
/// would cost each broadcaster more memory (about 340 B a lane) and gain nothing measurable.
const LANES: u32 = 256;
/// A lane's slab grows by a quarter, at least by this much: growing twofold would waste half of it.
const GROWTH_MIN: usize = 4;
/// An emptied lane keeps a slab up to this size, so that a quiet server does not allocate for each stream.
const KEPT: usize = 8;
/// What locking a lane costs in slots, so that a walk over empty lanes is bounded too.
const LANE_COST: usize = 4;

#[cfg(test)]
mod tests {
    use super::super::cell::{Receiver, channel};
    use super::*;
    use crate::config::Builder;
    use std::collections::HashMap;
    use std::sync::Arc;

    fn entry(registered: u32) -> (Entry, Receiver<Shared>) {
        let (sender, receiver) = channel(Arc::new(Builder::default().stream()), 0);
        (Entry::new(sender, registered, 0, 8), receiver)
    }

    fn marks(registry: &Registry, slots: usize) -> Vec<u32> {
        let (mut cursor, mut seen, mut more) = (Cursor::default(), Vec::new(), true);
        while more {
            more = registry.walk(&mut cursor, slots, |entry| {
                seen.push(entry.registered);
                ControlFlow::Continue(())
            });
        }
        seen.sort_unstable();
        seen
    }

    #[test]
    fn every_lane_has_a_shard_of_its_own() {
        let registry = Registry::new();
        let shift = usize::BITS - LANES.trailing_zeros();
        let shards: std::collections::HashSet<_> =
            (0..LANES).map(|lane| (registry.lanes.hasher().hash_one(lane) as usize) << 7 >> shift).collect();
        assert_eq!(shards.len(), LANES as usize);
    }

    /// Case 8: a late cleanup removes the stream that took its place.
    #[test]
    fn a_late_key_never_removes_a_newer_stream() {
        let registry = Registry::new();
        let old = registry.insert(entry(1).0);
        assert!(registry.remove(old).is_some());
        for mark in 0..LANES {
            registry.insert(entry(mark).0); // one of them takes the freed slot
        }
        assert!(registry.remove(old).is_none());
        assert_eq!(registry.len(), LANES as usize);
    }

    #[test]
    fn an_emptied_lane_gives_its_slab_back() {
        let registry = Registry::new();
        let keys: Vec<_> = (0..LANES * 40).map(|mark| registry.insert(entry(mark).0)).collect();
        for key in keys {
            drop(registry.remove(key));
        }
        assert!(registry.lanes.iter().all(|lane| lane.capacity() == 0));
    }

    #[test]
    fn a_walk_stops_after_its_slots_and_goes_on_where_it_stopped() {
        let registry = Registry::new();
        let keys: Vec<_> = (0..10_000).map(|mark| registry.insert(entry(mark).0)).collect();
        assert_eq!(marks(&registry, 64), (0..10_000).collect::<Vec<_>>());
        for key in &keys[..9_999] {
            drop(registry.remove(*key));
        }
        let (mut cursor, mut slices) = (Cursor::default(), 1);
        while registry.walk(&mut cursor, 512, |_| ControlFlow::Continue(())) {
            slices += 1;
        }
        assert!(slices >= LANES as usize * LANE_COST / 512, "vacant lanes count too: {slices}");
    }

    /// Random operations against a plain map.
    #[test]
    fn behaves_like_a_plain_map() {
        let registry = Registry::new();
        let mut model: HashMap<u32, Key> = HashMap::new();
        let mut seed = 7u64;
        for mark in 0..40_000u32 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            if seed >> 33 & 0b11 != 0 || model.is_empty() {
                assert!(model.insert(mark, registry.insert(entry(mark).0)).is_none());
            } else {
                let victim = *model.keys().nth((seed >> 40) as usize % model.len().min(16)).expect("not empty");
                let key = model.remove(&victim).expect("known");
                assert_eq!(registry.remove(key).expect("live").registered, victim);
                assert!(registry.remove(key).is_none(), "removed once");
            }
        }
        let mut expected: Vec<_> = model.into_keys().collect();
        expected.sort_unstable();
        assert_eq!(marks(&registry, 33), expected);
        assert_eq!(registry.len(), expected.len());
    }
}
