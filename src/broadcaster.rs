//! [`Heartline`]: the handle of one broadcaster, and the process-wide one. What it offers for bodies, streams and channels
//! stands beside those.

use crate::beat::core::Core;
use crate::beat::registry::Cursor;
use crate::beat::totals::Totals;
use crate::config::Builder;
use crate::error::Error;
use std::borrow::Cow;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// A heartbeat broadcaster: one registry of live streams and one interval task that writes a heartbeat into each.
///
/// Cheap to clone; all clones are one broadcaster. Make one for a process ([`global`](Self::global)), or one for each
/// distinct interval. The task runs on the tokio runtime that the first stream is wrapped in, as long as streams live.
///
/// # When not to use it
///
/// If no hop on the way cuts silent responses, or the engine already writes something often enough, a heartbeat is
/// only traffic. Nothing here helps against a *total* limit on a response.
#[derive(Clone)]
pub struct Heartline {
    pub(crate) core: Arc<Core>,
}

impl Heartline {
    /// Starts a set of settings: an interval of 30 s, a newline every tick, no caps.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// The process-wide broadcaster, with default settings.
    ///
    /// Not for tests with paused time: runtimes have clocks of their own. Build one for each such test.
    pub fn global() -> &'static Self {
        static GLOBAL: LazyLock<Heartline> =
            LazyLock::new(|| Heartline { core: Arc::new(Core::new(Builder::default())) });
        &GLOBAL
    }

    /// How many streams are registered now.
    pub fn active(&self) -> usize {
        self.core.lease.count() as usize
    }

    /// The interval it was built with.
    pub fn interval(&self) -> Duration {
        self.core.settings.interval
    }

    /// The number of this broadcaster: unlike an address, no other of this process ever has it. Clones share it.
    pub fn id(&self) -> u64 {
        self.core.id
    }

    /// Whether anyone else holds this broadcaster: a clone, a live stream or its task. Who keeps broadcasters in a table may
    /// forget one that nobody else holds; nothing can come from it any more.
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.core) > 1
    }

    /// Whether [`drain`](Self::drain) has begun: a server should refuse new streams with a 503.
    pub fn is_draining(&self) -> bool {
        self.core.is_draining()
    }

    /// What the streams that have ended came to; [`streams`](Self::streams) tells of those that live.
    pub fn totals(&self) -> Totals {
        self.core.ledger.totals()
    }

    /// A snapshot of the live streams, in no order. Locks one lane at a time; meant for people and dashboards.
    pub fn streams(&self) -> Vec<StreamSnapshot> {
        let (core, tick) = (&self.core, self.core.tick());
        let (mut snapshots, mut cursor, mut senders) =
            (Vec::with_capacity(self.active()), Cursor::default(), Vec::new());
        loop {
            let more = core.registry.walk(&mut cursor, SNAPSHOT_SLOTS, |entry| {
                senders.push((entry.sender.clone(), entry.id(), entry.registered));
                ControlFlow::Continue(())
            });
            // Labels are cloned, and senders dropped, when no lane is locked (I2).
            snapshots.extend(senders.drain(..).map(|(sender, id, registered)| {
                let last = sender.last();
                let since =
                    |then: u32| core.visits_long(u32::try_from(tick.wrapping_sub(then).cast_signed()).unwrap_or(0));
                StreamSnapshot {
                    id,
                    age: since(registered),
                    silence: since(last.content).min(since(last.wire)),
                    content_silence: since(last.content),
                    bridged: core.visits_long(sender.bridged(tick)),
                    heartbeats: sender.beats(),
                    label: sender.meta().label.clone(),
                }
            }));
            if !more {
                return snapshots;
            }
        }
    }
}

impl Builder {
    /// Checks the settings and makes a broadcaster. Needs no runtime: the task starts with the first stream.
    ///
    /// # Errors
    ///
    /// Refuses an interval of 0, below 100 ms or above 24 h, a cap below one interval or above 30 days, and a lifetime
    /// jitter that is set alone or leaves less than one interval of the lifetime.
    pub fn build(self) -> Result<Heartline, Error> {
        self.check()?;
        Ok(Heartline { core: Arc::new(Core::new(self)) })
    }
}

impl fmt::Debug for Heartline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Heartline")
            .field("settings", &self.core.settings)
            .field("active", &self.active())
            .finish_non_exhaustive()
    }
}

/// The process-wide broadcaster; the same as [`Heartline::global`].
pub fn global() -> &'static Heartline {
    Heartline::global()
}

/// One live stream, as [`Heartline::streams`] saw it. Times have a resolution of an eighth of the interval.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamSnapshot {
    /// The stream's number, as [`KeepAlive::id`](crate::KeepAlive::id) gives it; unique among those that live.
    pub id: u32,
    /// How long ago the stream was wrapped.
    pub age: Duration,
    /// How long ago a byte last went out, heartbeats included.
    pub silence: Duration,
    /// How long ago content last went out: what `max_silence` limits. Told apart from comments and pings only where a
    /// `max_silence` is set.
    pub content_silence: Duration,
    /// The longest silence of the engine, until now, in which heartbeats went out: without them the stream would not have
    /// lived through a hop that allows less. Zero when none was needed yet.
    pub bridged: Duration,
    /// How many heartbeats went out, modulo 2^24.
    pub heartbeats: u32,
    /// The label its builder gave it.
    pub label: Option<Cow<'static, str>>,
}

/// Slots looked at under one lock.
const SNAPSHOT_SLOTS: usize = 512;
