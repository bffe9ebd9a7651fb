//! What a run found, as it is serialised: the fields of this file are the report's format.

mod csv;
mod cuts;
mod hdr;
mod page;

use std::collections::BTreeMap;

pub use cuts::WouldBeCut;
use serde::{Deserialize, Serialize};

use super::asked::Asked;
use super::beats::{self, Regularity};
use super::digest::Digests;
use super::histograms::Histograms;
use super::merge::Merged;
use super::plan::Plan;
use super::settings::Shard;
use super::slices::Slices;
use super::spread::Distribution;
use super::tally::Tally;
use super::threshold::Outcome;
use super::timeline::Timeline;
use super::verdict::{self, Evidence};

/// The report of one run.
///
/// Times are in milliseconds. Latencies count from the time a stream was meant to begin, and hold successes only.
/// `silence_ms`, `gap_ms`, `would_be_cut`, `heartbeats`, `events`, `bytes` and `client` are those of the hold phase; the
/// latencies and the counts under `streams` are those of the whole run. A distribution without samples is `null`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Report {
    /// How many streams there were, and what became of them.
    pub streams: Streams,
    /// From the intended beginning until the connection stood.
    pub connect_ms: Option<Distribution>,
    /// Until the headers of a 2xx response had come.
    pub headers_ms: Option<Distribution>,
    /// Until the first byte of the body, heartbeats included.
    pub first_byte_ms: Option<Distribution>,
    /// Until the first event.
    pub ttft_ms: Option<Distribution>,
    /// Until the first event, from when the request was really sent: what a client that never falls behind, or does not
    /// look, would have seen. Larger than `ttft_ms` by nothing, smaller by what the client was late.
    pub ttft_from_send_ms: Option<Distribution>,
    /// Until the first heartbeat.
    pub first_heartbeat_ms: Option<Distribution>,
    /// How late this client began its streams.
    pub begin_late_ms: Option<Distribution>,
    /// Between two events of one stream.
    pub gap_ms: Option<Distribution>,
    /// The largest silence of each stream, across the streams that opened or waited for headers until the end.
    ///
    /// A silence counts from the last byte before it, also where that was before the hold phase; one that was still
    /// going on at the end counts up to the end.
    pub silence_ms: Option<Distribution>,
    /// Arrivals of nothing but neutral bytes.
    pub heartbeats: Heartbeats,
    /// Decoded events.
    pub events: Events,
    /// Bytes of response bodies.
    pub bytes: u64,
    /// How many streams were silent for so long that a hop with this limit would have cut them.
    ///
    /// A hold phase shorter than a limit cannot tell: its count is then 0.
    pub would_be_cut: WouldBeCut,
    /// Whether the client itself could keep up, and whether the run can be believed.
    pub client: Client,
    /// What the run was asked to do.
    pub settings: Asked,
    /// Which part of the plan this was.
    pub shard: Shard,
    /// What the streams that completed had decoded; not serialised.
    #[serde(skip)]
    pub digests: Digests,
    /// The run was stopped before its end, which is a reason under `client` too.
    pub interrupted: bool,
    /// When the hold phase was.
    pub hold: Hold,
    /// The distributions whole, from which the percentiles above were read.
    pub histograms: Histograms,
    /// The run over time.
    #[serde(default)]
    pub timeline: Timeline,
    /// The hold phase in slices, of a run that was one part of a plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slices: Option<Slices>,
    /// Which parts were added up, where this is the report of several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged: Option<Merged>,
    /// How the rules for this run came out.
    #[serde(default)]
    pub thresholds: Vec<Outcome>,
}

/// The judged phase of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Hold {
    /// When it began, in milliseconds since 1970 by the clock of the machine that ran it.
    pub from_unix_ms: u64,
    /// How long it lasted.
    pub length_ms: u64,
}

/// Counts of streams.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Streams {
    /// How many were asked for.
    pub requested: u64,
    /// How many got the headers of a 2xx response.
    pub opened: u64,
    /// The smallest number open at once in the hold phase.
    pub held_min: u64,
    /// How many ended as HTTP says they should.
    pub completed: u64,
    /// How many failed, by [`Failure::kind`](super::Failure::kind).
    pub failed: BTreeMap<String, u64>,
}

/// Counts of heartbeats.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Heartbeats {
    /// All that came.
    pub total: u64,
    /// The mean over the streams that opened.
    pub per_stream: f64,
    /// How regularly they came.
    #[serde(flatten)]
    pub regularity: Regularity,
    /// By the bytes they were made of, with escapes; a run of digits is one `#`.
    pub kinds: BTreeMap<String, u64>,
}

/// Counts of events.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Events {
    /// All that were decoded.
    pub total: u64,
    /// The mean over the hold phase.
    pub per_second: f64,
    /// Events that repeated the id, or the number, of the one before.
    pub ids_repeated: u64,
    /// Events without an id on streams that had sent one, and numbers left out between two.
    pub ids_missing: u64,
    /// Streams that said they were at their end, as their API does.
    pub ends_seen: u64,
}

/// How the client fared, and the verdict on the run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Client {
    /// CPU time of the threads that read, 100 for one core kept busy.
    pub cpu_percent: f64,
    /// How late timers fired on those threads.
    pub lag_ms: Option<Distribution>,
    /// The run's figures can be believed, and all streams were held.
    pub valid: bool,
    /// Why they cannot, or were not; empty when `valid`.
    pub reasons: Vec<String>,
}

impl Report {
    pub(super) fn new(plan: &Plan, asked: Asked, tally: Tally, evidence: Evidence) -> Self {
        let reasons = verdict::reasons(plan, &tally, &evidence);
        let histograms = Histograms::of(&tally);
        let mut failed = BTreeMap::new();
        for (failure, streams) in &tally.failed {
            *failed.entry(failure.kind().into_owned()).or_default() += streams;
        }
        let mut report = Self {
            streams: Streams {
                requested: plan.streams as u64,
                opened: tally.opened,
                held_min: evidence.held_min as u64,
                completed: tally.completed,
                failed,
            },
            connect_ms: None,
            headers_ms: None,
            first_byte_ms: None,
            ttft_ms: None,
            ttft_from_send_ms: None,
            first_heartbeat_ms: None,
            begin_late_ms: None,
            gap_ms: None,
            silence_ms: None,
            heartbeats: Heartbeats {
                total: tally.beats.total,
                per_stream: 0.0,
                regularity: Regularity::default(),
                kinds: tally.beats.kinds.counts(),
            },
            events: Events {
                total: tally.events,
                per_second: 0.0,
                ids_repeated: tally.ids_repeated,
                ids_missing: tally.ids_missing,
                ends_seen: tally.ends_seen,
            },
            bytes: tally.bytes,
            would_be_cut: WouldBeCut::of(tally.would_be_cut),
            client: Client {
                cpu_percent: rounded(tally.busy * 100.0),
                lag_ms: None,
                valid: reasons.is_empty(),
                reasons,
            },
            settings: asked,
            shard: plan.shard,
            digests: tally.digests,
            interrupted: evidence.interrupted,
            hold: Hold { from_unix_ms: evidence.hold_from_unix_ms, length_ms: evidence.hold_ns / 1_000_000 },
            histograms,
            timeline: evidence.timeline,
            slices: tally.slices.map(|slices| *slices),
            merged: None,
            thresholds: Vec::new(),
        };
        report.work_out(evidence.hold_ns as f64 / 1e9);
        report
    }

    /// Works out what follows from the counts and histograms of a hold phase that lasted so many seconds.
    pub(super) fn work_out(&mut self, seconds: f64) {
        let of = &self.histograms;
        self.connect_ms = of.connect.distribution();
        self.headers_ms = of.headers.distribution();
        self.first_byte_ms = of.first_byte.distribution();
        self.ttft_ms = of.ttft.distribution();
        self.ttft_from_send_ms = of.ttft_from_send.distribution();
        self.first_heartbeat_ms = of.first_heartbeat.distribution();
        self.begin_late_ms = of.begin_late.distribution();
        self.gap_ms = of.gap.distribution();
        self.silence_ms = of.silence.distribution();
        self.client.lag_ms = of.lag.distribution();
        self.heartbeats.regularity = beats::regularity(&of.between_heartbeats, &of.since_last_byte);
        self.heartbeats.per_stream = rounded(verdict::share(self.heartbeats.total, self.streams.opened));
        self.events.per_second = rounded(if seconds > 0.0 { self.events.total as f64 / seconds } else { 0.0 });
    }

    /// Returns how many open streams were ended before their end, by a close or a reset.
    pub fn cut(&self) -> u64 {
        CUT_KINDS.iter().filter_map(|kind| self.streams.failed.get(*kind)).sum()
    }

    /// Returns how many streams failed in another way than being cut.
    pub fn failed_otherwise(&self) -> u64 {
        self.streams.failed.values().sum::<u64>() - self.cut()
    }
}

fn rounded(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// The kinds of [`Failure::is_cut`](super::Failure::is_cut).
const CUT_KINDS: [&str; 3] = ["cut_after", "cut_closed", "cut_reset"];
