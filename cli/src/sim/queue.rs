//! The prefill queue of the cliff: one request at a time, in the order of arrival.
//!
//! One queue for each engine; joined by [`ScriptBody`](super::body::ScriptBody) when its script says so.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep_until};

/// The line in front of an engine that prefills one request at a time.
#[derive(Debug)]
pub(crate) struct Queue {
    /// Fair: permits go out in the order in which they were asked for.
    turns: Semaphore,
    /// When the engine last became free.
    free_since: Mutex<Option<Instant>>,
}

impl Queue {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { turns: Semaphore::new(1), free_since: Mutex::new(None) })
    }

    /// Waits for all earlier requests, then for `takes`; the place is taken with the first poll.
    ///
    /// Cancel safe: dropped while waiting it leaves the line, dropped while prefilling it frees the engine at once.
    pub(crate) async fn prefill(self: Arc<Self>, takes: Duration) {
        let arrived = Instant::now();
        // The semaphore is never closed; if it were, nobody would have to wait.
        let _turn = self.turns.acquire().await;
        // From when the engine was free, not from when this task was woken: lateness does not add up along the line.
        let begins = self.free().map_or(arrived, |free| free.max(arrived));
        // Declared after the turn, so that the time is written before the next one begins.
        let _work = Work { queue: &self, ends: begins + takes };
        sleep_until(_work.ends).await;
    }

    fn free(&self) -> Option<Instant> {
        *self.free_since.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One prefill under way; writes down when the engine became free.
struct Work<'a> {
    queue: &'a Queue,
    ends: Instant,
}

impl Drop for Work<'_> {
    fn drop(&mut self) {
        let free = Instant::now().min(self.ends);
        *self.queue.free_since.lock().unwrap_or_else(PoisonError::into_inner) = Some(free);
    }
}

#[cfg(test)]
mod tests {
    use futures::future::join_all;
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_request_waits_for_those_before_it() {
        let queue = Queue::new();
        let begun = Instant::now();
        let ends = join_all((0..20).map(|_| {
            let queue = Arc::clone(&queue);
            async move {
                queue.prefill(Duration::from_millis(40)).await;
                begun.elapsed().as_millis()
            }
        }))
        .await;
        let expected: Vec<u128> = (1..=20).map(|place| place * 40).collect();
        assert_eq!(ends, expected);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_goes_away_frees_the_engine_at_once() {
        let queue = Queue::new();
        let begun = Instant::now();
        let spawn = |takes| tokio::spawn(Arc::clone(&queue).prefill(Duration::from_secs(takes)));
        let (first, second, third) = (spawn(100), spawn(100), spawn(1));
        advance(Duration::from_secs(10)).await;
        second.abort();
        first.abort();
        third.await.unwrap();
        assert_eq!(begun.elapsed().as_secs(), 11);
        Arc::clone(&queue).prefill(Duration::from_secs(2)).await;
        assert_eq!(begun.elapsed().as_secs(), 13);
    }
}
