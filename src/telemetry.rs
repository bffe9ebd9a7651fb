//! What heartline tells `metrics` and `tracing`: the names, and one function for each thing that happens.
//!
//! Handles are looked up when used, so that a recorder that is installed late works; without one each call ends at a
//! no-op. Nothing here may be called while a lane is locked (I2). `docs/metrics.md` explains each name.

use metrics::{Unit, counter, gauge, histogram};
use std::time::Duration;

/// Streams that are registered now (gauge).
pub(crate) const STREAMS_ACTIVE: &str = "heartline_streams_active";
/// Streams that ended, by `outcome` (counter).
pub(crate) const STREAMS_TOTAL: &str = "heartline_streams_total";
/// Heartbeats by `result` (counter).
pub(crate) const HEARTBEATS_TOTAL: &str = "heartline_heartbeats_total";
/// How long a sweep over all streams took (histogram).
pub(crate) const SWEEP_DURATION_SECONDS: &str = "heartline_sweep_duration_seconds";
/// How much later than planned a sweep began (histogram).
pub(crate) const SWEEP_LAG_SECONDS: &str = "heartline_sweep_lag_seconds";
/// How long a stream had been silent when its heartbeat was ordered (histogram).
pub(crate) const SILENCE_SECONDS: &str = "heartline_silence_seconds";

/// Gives the installed `metrics` recorder a unit and a description of each metric; call it once after installing one.
pub fn describe_metrics() {
    metrics::describe_gauge!(STREAMS_ACTIVE, Unit::Count, "Live streams that are registered for heartbeats");
    metrics::describe_counter!(STREAMS_TOTAL, Unit::Count, "Streams that ended, by outcome");
    metrics::describe_counter!(HEARTBEATS_TOTAL, Unit::Count, "Heartbeats, by what became of them");
    metrics::describe_histogram!(SWEEP_DURATION_SECONDS, Unit::Seconds, "Duration of one sweep over all streams");
    metrics::describe_histogram!(SWEEP_LAG_SECONDS, Unit::Seconds, "Delay of a sweep's beginning against its schedule");
    metrics::describe_histogram!(SILENCE_SECONDS, Unit::Seconds, "Silence of a stream when its heartbeat was ordered");
}

/// How a stream ended, as `heartline_streams_total{outcome}` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Dropped before its end: the client or the handler went away, or something panicked.
    Cancelled,
    /// The inner body came to its end.
    Completed,
    /// The inner body failed.
    Failed,
    /// heartline ended it.
    Ended(crate::ending::Ended),
}

impl Outcome {
    fn label(self) -> &'static str {
        match self {
            Self::Cancelled => "cancelled",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Ended(ended) => ended.code(),
        }
    }
}

/// A stream was registered.
pub(crate) fn stream_began() {
    gauge!(STREAMS_ACTIVE).increment(1.0);
}

/// A registered stream ended.
pub(crate) fn stream_ended(outcome: Outcome) {
    gauge!(STREAMS_ACTIVE).decrement(1.0);
    counter!(STREAMS_TOTAL, "outcome" => outcome.label()).increment(1);
    if let Outcome::Ended(ended) = outcome {
        tracing::info!(reason = ended.code(), "heartline ended a stream");
    }
}

/// A response was passed through without heartbeats.
pub(crate) fn bypassed() {
    counter!(HEARTBEATS_TOTAL, "result" => "bypassed").increment(1);
}

/// A stream could not be registered: no runtime, or one without a timer.
pub(crate) fn no_timer() {
    bypassed();
    tracing::warn!("a stream has no heartbeats: it was made outside a tokio runtime, or in one without `enable_time`");
}

/// So many heartbeats came to this since the last call.
pub(crate) fn heartbeats(result: &'static str, count: u64) {
    if count > 0 {
        counter!(HEARTBEATS_TOTAL, "result" => result).increment(count);
    }
}

/// A heartbeat was ordered for a stream that had been silent for so long.
pub(crate) fn silence(silence: Duration) {
    histogram!(SILENCE_SECONDS).record(silence);
}

/// A sweep over all streams is done.
pub(crate) fn swept(duration: Duration, lag: Duration, interval: Duration) {
    histogram!(SWEEP_DURATION_SECONDS).record(duration);
    histogram!(SWEEP_LAG_SECONDS).record(lag);
    if duration > interval {
        tracing::warn!(?duration, ?interval, "a sweep outlasted the interval: heartbeats are late");
    }
}

/// Waking a stream panicked; only its own heartbeat is lost.
pub(crate) fn waker_panicked() {
    tracing::error!("a stream's waker panicked during the sweep; the sweep goes on");
}
