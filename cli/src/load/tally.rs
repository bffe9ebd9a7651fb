//! What one worker has counted. Filled by its streams' records and its canary, added up by `report`.

use std::collections::BTreeMap;

use super::Failure;
use super::beats::Beats;
use super::digest::Digests;
use super::slices::Slices;
use super::spread::Spread;
use heartline::hops::LIMITS;

/// The counts and distributions of one worker, or of all of them: fixed memory, however many streams and events.
#[derive(Debug)]
pub(super) struct Tally {
    pub(super) opened: u64,
    pub(super) completed: u64,
    /// At most one entry a kind; the kinds are few, statuses included.
    pub(super) failed: BTreeMap<Failure, u64>,
    pub(super) connect: Spread,
    pub(super) headers: Spread,
    pub(super) first_byte: Spread,
    pub(super) ttft: Spread,
    pub(super) gap: Spread,
    pub(super) silence: Spread,
    /// Until the first event, from when the request was really sent.
    pub(super) ttft_from_send: Spread,
    /// Until the first heartbeat.
    pub(super) first_heartbeat: Spread,
    pub(super) beats: Beats,
    pub(super) events: u64,
    /// Events with the id of the one before.
    pub(super) ids_repeated: u64,
    /// Events that should have had an id, and numbers left out between two.
    pub(super) ids_missing: u64,
    /// Streams that said they were at their end, as their API does.
    pub(super) ends_seen: u64,
    pub(super) bytes: u64,
    /// Streams whose largest silence reached the entry of [`LIMITS`] at the same place.
    pub(super) would_be_cut: [u64; LIMITS.len()],
    pub(super) digests: Digests,
    /// How late the canary's timers fired in the hold phase.
    pub(super) lag: Spread,
    /// How late the worker began its streams.
    pub(super) begin_late: Spread,
    /// Which part of the hold phase the worker's thread was busy, 1 for all of it; added up over workers.
    pub(super) busy: f64,
    /// The same of the busiest worker.
    pub(super) busy_max: f64,
    /// The hold phase in slices, where the run is one part of a plan.
    pub(super) slices: Option<Box<Slices>>,
}

impl Tally {
    /// Creates an empty tally.
    pub(super) fn new() -> Self {
        Self {
            opened: 0,
            completed: 0,
            failed: BTreeMap::new(),
            connect: Spread::new(),
            headers: Spread::new(),
            first_byte: Spread::new(),
            ttft: Spread::new(),
            gap: Spread::new(),
            silence: Spread::new(),
            ttft_from_send: Spread::new(),
            first_heartbeat: Spread::new(),
            beats: Beats::new(),
            events: 0,
            ids_repeated: 0,
            ids_missing: 0,
            ends_seen: 0,
            bytes: 0,
            would_be_cut: [0; LIMITS.len()],
            digests: Digests::default(),
            lag: Spread::new(),
            begin_late: Spread::new(),
            busy: 0.0,
            busy_max: 0.0,
            slices: None,
        }
    }

    /// Creates an empty tally that keeps slices too.
    pub(super) fn in_slices() -> Self {
        Self { slices: Some(Box::new(Slices::new())), ..Self::new() }
    }

    /// Adds the largest silence of one stream.
    pub(super) fn add_silence(&mut self, silence_ns: u64) {
        self.silence.add(silence_ns);
        for (streams, limit) in self.would_be_cut.iter_mut().zip(LIMITS) {
            *streams += u64::from(u128::from(silence_ns) >= limit.as_nanos());
        }
    }

    /// Counts failed streams.
    pub(super) fn add_failed(&mut self, failure: Failure, streams: u64) {
        if streams > 0 {
            *self.failed.entry(failure).or_default() += streams;
        }
    }

    /// Adds what another worker counted.
    pub(super) fn merge(&mut self, other: &Self) {
        self.opened += other.opened;
        self.completed += other.completed;
        for (failure, streams) in &other.failed {
            self.add_failed(*failure, *streams);
        }
        self.connect.merge(&other.connect);
        self.headers.merge(&other.headers);
        self.first_byte.merge(&other.first_byte);
        self.ttft.merge(&other.ttft);
        self.gap.merge(&other.gap);
        self.silence.merge(&other.silence);
        self.ttft_from_send.merge(&other.ttft_from_send);
        self.first_heartbeat.merge(&other.first_heartbeat);
        self.beats.merge(&other.beats);
        self.ids_repeated += other.ids_repeated;
        self.ids_missing += other.ids_missing;
        self.ends_seen += other.ends_seen;
        self.events += other.events;
        self.bytes += other.bytes;
        for (streams, more) in self.would_be_cut.iter_mut().zip(other.would_be_cut) {
            *streams += more;
        }
        self.digests.merge(&other.digests);
        self.lag.merge(&other.lag);
        self.begin_late.merge(&other.begin_late);
        self.busy += other.busy;
        self.busy_max = self.busy_max.max(other.busy);
        if let Some(slices) = &other.slices {
            self.slices.get_or_insert_with(|| Box::new(Slices::new())).merge(slices);
        }
    }
}
