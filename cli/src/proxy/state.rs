//! What the proxy tells about itself: its phase, its counts, its live streams. Read by `admin` and by tests.

use std::sync::Arc;
use std::time::Duration;

use heartline::{Format, Totals};

/// Where a proxy is in its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// Takes requests. Goes to `Draining` or `Stopped`.
    #[default]
    Serving,
    /// Takes no new requests; live streams go on. Goes to `Ending` at the deadline, or to `Stopped` when none is left.
    Draining,
    /// The deadline has passed: streams are being ended. Goes to `Stopped`.
    Ending,
    /// Everything has ended.
    Stopped,
}

/// The counts of one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct State {
    /// Where the proxy is in its life.
    pub phase: Phase,
    /// Open client connections.
    pub connections: usize,
    /// Requests whose answer is not complete, streams and tunnels among them.
    pub exchanges: usize,
    /// Responses that are registered for heartbeats.
    pub streams: usize,
    /// Open WebSocket tunnels.
    pub tunnels: usize,
    /// How often the settings were reloaded.
    pub reloads: u64,
}

/// One live response.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LiveStream {
    /// Its number in this process.
    pub id: u64,
    /// The path of its request, without the query.
    pub path: String,
    /// The name of its engine.
    pub upstream: Arc<str>,
    /// Its format; `None` for a response that carries no heartbeats.
    pub format: Option<Format>,
    /// The form of its heartbeats, as [`Form`](heartline::Form) prints it.
    pub form: String,
    /// Bytes passed on from the engine.
    pub bytes: u64,
    /// How long ago its request came.
    pub age: Duration,
    /// How long ago a byte last went out, heartbeats included.
    pub silence: Duration,
    /// How long ago its engine last sent content; the age, where that is not watched.
    pub content_silence: Duration,
    /// The longest silence of its engine, until now, in which heartbeats went out.
    pub bridged: Duration,
    /// Heartbeats that went out.
    pub heartbeats: u32,
    /// The interval of its broadcaster; zero for a response that carries no heartbeats.
    pub interval: Duration,
}

/// What the ended streams of all broadcasters with one interval came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IntervalTotals {
    /// The interval.
    pub interval: Duration,
    /// Whether a broadcaster with it is there; if not, the settings no longer name it and its last stream has ended.
    pub is_in_use: bool,
    /// The sums.
    pub totals: Totals,
}
