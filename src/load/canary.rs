//! A timer that does nothing but notice when it fires late. One a worker: what it feels, every stream's times have felt.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::worker::Worker;

/// Fires every [`PERIOD`] for ever and notes by how much too late, while the hold phase lasts.
pub(super) async fn sing(worker: Arc<Worker>) {
    let mut due = Instant::now() + PERIOD;
    loop {
        sleep_until(due).await;
        let now = Instant::now();
        let lag_ns = u64::try_from((now - due).as_nanos()).unwrap_or(u64::MAX);
        if worker.phases.window().contains(worker.phases.now_ns()) {
            worker.tally().lag.add_expected(lag_ns, PERIOD_NS);
        }
        // A stall is noted once, with the ticks it swallowed filled in; the next tick starts afresh.
        due = due.max(now) + PERIOD;
    }
}

/// Often enough to catch a stall of a few hundredths of a second, seldom enough to cost nothing.
const PERIOD: Duration = Duration::from_millis(10);

const PERIOD_NS: u64 = 10_000_000;
