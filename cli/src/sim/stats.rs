//! What an engine counted: requests, live streams, and how streams ended.
//!
//! Written by the server and by each body's [`Ticket`]; read by whoever holds a [`Stats`].

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// A handle to an engine's counters; clones see the same ones, also while and after the engine runs.
#[derive(Clone, Debug, Default)]
pub struct Stats(Arc<Counters>);

#[derive(Debug, Default)]
struct Counters {
    requests: AtomicU64,
    refused: AtomicU64,
    live: AtomicUsize,
    completed: AtomicU64,
    broken: AtomicU64,
    dropped: AtomicU64,
}

// Every access is relaxed: each counter stands alone and orders nothing else.
impl Stats {
    /// Returns how many requests have come, refused ones included.
    pub fn requests(&self) -> u64 {
        self.0.requests.load(Ordering::Relaxed)
    }

    /// Returns how many requests were answered with an error status instead of an answer.
    pub fn refused(&self) -> u64 {
        self.0.refused.load(Ordering::Relaxed)
    }

    /// Returns how many answers are under way, queued ones included.
    pub fn live(&self) -> usize {
        self.0.live.load(Ordering::Relaxed)
    }

    /// Returns how many answers were handed over to their end.
    pub fn completed(&self) -> u64 {
        self.0.completed.load(Ordering::Relaxed)
    }

    /// Returns how many connections the script itself broke.
    pub fn broken(&self) -> u64 {
        self.0.broken.load(Ordering::Relaxed)
    }

    /// Returns how many answers were dropped before their end: their client went away, or the engine shut down.
    pub fn dropped(&self) -> u64 {
        self.0.dropped.load(Ordering::Relaxed)
    }

    pub(crate) fn request(&self) -> u64 {
        self.0.requests.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn refuse(&self) {
        self.0.refused.fetch_add(1, Ordering::Relaxed);
    }
}

/// One answer under way; leaves the count of live ones when it is dropped.
#[derive(Debug)]
pub(crate) struct Ticket {
    stats: Stats,
    end: End,
}

/// How an answer ended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    Completed,
    Broken,
    Dropped,
}

impl Ticket {
    pub(crate) fn new(stats: &Stats) -> Self {
        stats.0.live.fetch_add(1, Ordering::Relaxed);
        Self { stats: stats.clone(), end: End::Dropped }
    }

    /// Says how the answer ended; without it, it counts as dropped.
    pub(crate) fn ended(&mut self, end: End) {
        self.end = end;
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let counters = &self.stats.0;
        counters.live.fetch_sub(1, Ordering::Relaxed);
        match self.end {
            End::Completed => &counters.completed,
            End::Broken => &counters.broken,
            End::Dropped => &counters.dropped,
        }
        .fetch_add(1, Ordering::Relaxed);
    }
}
