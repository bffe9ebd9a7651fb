//! `/events`: one snapshot a second to everyone who watches the live page, through heartline's own channel. Fed by `mod`,
//! subscribed to by `answer`.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};

use super::super::Handle;
use super::snapshot::Snapshot;
use heartline::{Cadence, Error, Event, EventBody, EventSender, Heartline, KeepAlive};

/// Who watches, and what keeps their streams alive.
#[derive(Debug)]
pub(super) struct Feed {
    proxy: Handle,
    heart: Heartline,
    began: Instant,
    subscribers: Mutex<Vec<EventSender>>,
    /// Told when somebody subscribes.
    subscribed: Notify,
}

impl Feed {
    /// Nobody watches yet.
    pub(super) fn new(proxy: Handle) -> Result<Self, Error> {
        // A stream of snapshots is never idle, unless the proxy cannot keep up: only then are heartbeats due.
        let heart = Heartline::builder().interval(INTERVAL).cadence(Cadence::IdleOnly).build()?;
        let (subscribers, subscribed) = (Mutex::default(), Notify::new());
        Ok(Self { proxy, heart, began: Instant::now(), subscribers, subscribed })
    }

    /// A stream of snapshots; `None` when enough people watch.
    pub(super) fn subscribe(&self) -> Option<KeepAlive<EventBody>> {
        let mut subscribers = self.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
        subscribers.retain(|sender| !sender.is_closed());
        if subscribers.len() >= SUBSCRIBERS {
            return None;
        }
        let (sender, body) = self.heart.channel(QUEUE);
        subscribers.push(sender);
        self.subscribed.notify_one();
        Some(body)
    }

    /// Sends snapshots for as long as it is polled; takes none while nobody watches.
    pub(super) async fn run(&self) {
        loop {
            if !self.is_watched() {
                self.subscribed.notified().await;
            }
            if let Some(event) = self.snapshot().await {
                // A full queue is a slow reader: it gets the next one. The lock is held for a few moves of memory.
                let mut subscribers = self.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
                subscribers.retain(|sender| !sender.try_send(event.clone()).is_err_and(|error| error.is_closed()));
            }
            // A new one need not wait for its first.
            tokio::select! {
                () = sleep(PERIOD) => {}
                () = self.subscribed.notified() => {}
            }
        }
    }

    fn is_watched(&self) -> bool {
        let mut subscribers = self.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
        subscribers.retain(|sender| !sender.is_closed());
        !subscribers.is_empty()
    }

    /// Looks at every stream, so it does not run where requests are served.
    async fn snapshot(&self) -> Option<Event> {
        let (proxy, uptime) = (self.proxy.clone(), self.began.elapsed());
        let json = spawn_blocking(move || {
            let (all, ended) = (proxy.streams(), proxy.totals());
            serde_json::to_string(&Snapshot::new(&proxy.state(), &all, &ended, uptime)).ok()
        });
        Some(Event::data(json.await.ok()??).retry(RETRY))
    }
}

/// People see a second; more snapshots would only cost.
const PERIOD: Duration = Duration::from_secs(1);
/// Oftener than any hop of `hops` cuts.
const INTERVAL: Duration = Duration::from_secs(8);
/// Watchers at once: each costs some 4 kB a second, and the page is for a few people.
const SUBSCRIBERS: usize = 32;
/// Snapshots that wait for one watcher; older ones are of no use.
const QUEUE: usize = 2;
/// How long a browser waits before it connects again.
const RETRY: Duration = Duration::from_secs(1);
