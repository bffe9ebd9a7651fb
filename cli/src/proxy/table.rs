//! The live exchanges: each is listed from its request's head to the last byte of its answer. Owned by `shared`; `relay`
//! keeps an entry's figures, `stalled` and `admin` read them.

use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use dashmap::DashMap;
use http::Method;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::signal::Kill;
use heartline::{Form, Format, Heartline};

/// Every live exchange of one proxy.
#[derive(Debug, Default)]
pub(super) struct Table {
    lives: DashMap<u64, Arc<Live>>,
    next: AtomicU64,
    /// Told when the last exchange has gone.
    emptied: Notify,
    /// Coarse time, so that a passing event reads no clock: visits of `stalled` since the proxy began, from 1 on.
    visits: AtomicU32,
}

/// One live exchange.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) id: u64,
    pub(super) method: Method,
    /// Without the query, which may hold keys.
    pub(super) path: Box<str>,
    pub(super) began: Instant,
    /// Set when the engine is chosen.
    pub(super) upstream: OnceLock<Arc<str>>,
    /// Set when the response is kept alive.
    pub(super) kept: OnceLock<Kept>,
    pub(super) kill: Option<Kill>,
    /// Bytes that came from the engine. One task writes it.
    bytes: AtomicU64,
    /// The visit since which the client has been given a frame without asking for the next; 0 while it waits for one.
    untaken: AtomicU32,
}

/// How an exchange's response is kept alive.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) heart: Heartline,
    /// Its number in that broadcaster.
    pub(super) stream: u32,
    pub(super) format: Format,
    pub(super) form: Form,
}

/// An exchange's place in the table; dropping it removes the exchange.
pub(super) struct Seat {
    table: Arc<Table>,
    pub(super) live: Arc<Live>,
}

impl Table {
    /// Lists a new exchange.
    pub(super) fn enter(self: &Arc<Self>, method: Method, path: &str, kill: Option<Kill>) -> Seat {
        let id = self.next.fetch_add(1, Ordering::Relaxed); // only has to be unique
        let live = Arc::new(Live {
            id,
            method,
            path: path.into(),
            began: Instant::now(),
            upstream: OnceLock::new(),
            kept: OnceLock::new(),
            kill,
            bytes: AtomicU64::new(0),
            untaken: AtomicU32::new(0),
        });
        self.lives.insert(id, Arc::clone(&live));
        Seat { table: Arc::clone(self), live }
    }

    /// How many exchanges there are.
    pub(super) fn len(&self) -> usize {
        self.lives.len()
    }

    /// Every exchange, in no order.
    pub(super) fn all(&self) -> Vec<Arc<Live>> {
        self.lives.iter().map(|entry| Arc::clone(entry.value())).collect()
    }

    /// Waits until no exchange is left.
    pub(super) async fn emptied(&self) {
        loop {
            let mut emptied = std::pin::pin!(self.emptied.notified());
            emptied.as_mut().enable(); // listens before it counts: a last one that leaves in between is heard
            if self.lives.is_empty() {
                return;
            }
            emptied.await;
        }
    }

    /// Moves the coarse time on; returns it.
    pub(super) fn tick(&self) -> u32 {
        self.visits.fetch_add(1, Ordering::Relaxed).wrapping_add(1).max(1) // a clock; pairs with `now`
    }

    fn now(&self) -> u32 {
        self.visits.load(Ordering::Relaxed).max(1) // pairs with `tick`
    }
}

impl Live {
    /// Bytes that came from the engine so far.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed) // a count; pairs with `count`
    }

    /// Counts bytes from the engine; one task at a time does.
    pub(super) fn count(&self, bytes: usize) {
        self.bytes.store(self.bytes().wrapping_add(bytes as u64), Ordering::Relaxed);
    }

    /// For how many visits before `now` the client has left a frame untaken.
    pub(super) fn untaken_for(&self, now: u32) -> u32 {
        match self.untaken.load(Ordering::Relaxed) {
            0 => 0,
            since => now.wrapping_sub(since),
        }
    }
}

impl Seat {
    /// The client was given a frame and has not asked for the next yet.
    pub(super) fn given(&self) {
        self.live.untaken.store(self.table.now(), Ordering::Relaxed); // pairs with `untaken_for`
    }

    /// The client waits for the next frame.
    pub(super) fn waits(&self) {
        self.live.untaken.store(0, Ordering::Relaxed); // pairs with `untaken_for`
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.table.lives.remove(&self.live.id);
        if self.table.lives.is_empty() {
            self.table.emptied.notify_waiters();
        }
    }
}

impl fmt::Debug for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Seat").field(&self.live).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_exchange_is_listed_as_long_as_its_seat_lives() {
        let table = Arc::new(Table::default());
        let first = table.enter(Method::GET, "/a", None);
        let second = table.enter(Method::GET, "/b", None);
        assert_eq!(table.len(), 2);
        drop(first);
        assert_eq!(table.all()[0].path.as_ref(), "/b");
        drop(second);
        table.emptied().await;
        assert_eq!(table.len(), 0);
    }

    #[test]
    fn a_frame_is_untaken_until_the_next_is_asked_for() {
        let table = Arc::new(Table::default());
        let seat = table.enter(Method::GET, "/", None);
        table.tick();
        seat.given();
        table.tick();
        let now = table.tick();
        assert_eq!(seat.live.untaken_for(now), 2);
        seat.waits();
        assert_eq!(seat.live.untaken_for(now), 0);
    }
}
