//! [`Heartline::drain`]: the graceful end of every stream, for a server that shuts down.

use crate::beat::cell::Firmness;
use crate::beat::core::Core;
use crate::beat::registry::Cursor;
use crate::beat::sweep::{self, Batch, Due};
use crate::broadcaster::Heartline;
use crate::ending::Ended;
use std::pin::pin;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

impl Heartline {
    /// Ends every stream gracefully; returns how many are left.
    ///
    /// 1. From now on a stream that is wrapped ends at its first poll, with an error event.
    /// 2. For `grace`, live streams go on and get their heartbeats.
    /// 3. Then each is ended at its next event boundary: an error event in the API's shape, then a clean end.
    /// 4. After [`drain_abort_after`](crate::Builder::drain_abort_after), those still inside an event are aborted.
    ///
    /// Returns as soon as no stream is left. A stream is only ended when its connection polls the body: one whose client
    /// reads nothing stays, is counted in the result, and is the connection owner's to close. A drained broadcaster stays
    /// drained.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future stops the waiting and the steps that have not begun; new streams are refused all the same.
    /// Calling it again starts the steps anew.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime with a timer, as every `tokio::time` function does.
    pub async fn drain(&self, grace: Duration) -> usize {
        self.core.set_draining();
        self.wait_empty(grace).await;
        let firm_after = self.core.settings.drain_abort_after;
        for (firmness, wait) in [(Firmness::Soft, firm_after), (Firmness::Firm, ABORT_WAIT)] {
            if self.active() == 0 {
                break;
            }
            end_all(&self.core, firmness).await;
            self.wait_empty(wait).await;
        }
        self.active()
    }

    /// Waits until no stream is left, for at most `limit`.
    async fn wait_empty(&self, limit: Duration) {
        let deadline = Instant::now() + limit.min(FOREVER);
        loop {
            // Listens before it counts: a last stream that leaves in between is heard.
            let mut emptied = pin!(self.core.emptied.notified());
            emptied.as_mut().enable();
            if self.active() == 0 || timeout_at(deadline, emptied).await.is_err() {
                return;
            }
        }
    }
}

/// Orders every stream's end, slice by slice.
async fn end_all(core: &Core, firmness: Firmness) {
    let (mut cursor, mut batch, tick) = (Cursor::default(), Batch::default(), core.tick());
    while sweep::slice(core, &mut cursor, tick, &mut batch, |_| Due::end(Ended::Drained, firmness)) {
        tokio::task::yield_now().await;
    }
}

/// How long aborted streams get to be polled and dropped by their connections.
const ABORT_WAIT: Duration = Duration::from_secs(1);
/// A grace longer than a year is no deadline; it keeps the sum below what a clock can hold.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 60 * 60);
