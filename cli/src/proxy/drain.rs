//! The end of a proxy: streams go on up to the deadline, end at an event boundary, and what is left is cut. Run by
//! [`Proxy::run`](super::Proxy::run) once it is told to drain or to stop.

use std::time::Duration;

use futures::future::join_all;
use tokio::time::timeout;

use super::shared::Shared;
use super::signal::Order;
use super::state::Phase;

/// Drains; returns how many exchanges had to be cut.
pub(super) async fn run(shared: &Shared) -> usize {
    tokio::select! {
        () = gently(shared) => {}
        () = shared.reached(Phase::Stopped) => {}
    }
    let left = shared.table.len();
    if left > 0 {
        tracing::warn!(left, "exchanges were cut at the end");
    }
    shared.order_all(Order::Abort);
    shared.advance(Phase::Stopped);
    let _ = timeout(CUT_WAIT, shared.table.emptied()).await; // their connections are dropped by tasks of their own
    left
}

async fn gently(shared: &Shared) {
    let limit = shared.running.load().config.drain_timeout;
    // Finishing is ordered after the phase is set: a request that comes in between is refused.
    shared.order_all(Order::Finish);
    tracing::info!(exchanges = shared.table.len(), ?limit, "draining");
    if timeout(limit, shared.table.emptied()).await.is_ok() {
        return flushed(shared).await;
    }
    // Not before: a broadcaster that drains ends each new stream at once, and a request that waits for its engine may
    // become one.
    shared.advance(Phase::Ending);
    let hearts = shared.hearts.all();
    join_all(hearts.iter().map(|heart| heart.drain(Duration::ZERO))).await;
    // What carries no heartbeats has had its time; what was just answered is still being written.
    let _ = timeout(END_WAIT, shared.table.emptied()).await;
    flushed(shared).await;
}

/// Gives connections a moment to write their last bytes and close.
async fn flushed(shared: &Shared) {
    let _ = timeout(FLUSH_WAIT, shared.disconnected()).await;
}

/// What an exchange may still take after its end was ordered.
const END_WAIT: Duration = Duration::from_millis(500);
/// What a connection may take to write what is left and close.
const FLUSH_WAIT: Duration = Duration::from_millis(500);
/// Aborted connections are dropped as soon as their tasks run.
const CUT_WAIT: Duration = Duration::from_secs(1);
