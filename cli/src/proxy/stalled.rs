//! Ends exchanges whose client takes nothing more: on HTTP/2 the one stream whose window stays closed, since its connection
//! may be well and hyper does not poll its body. Started by `server`.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::shared::Shared;

/// Looks at every exchange again and again, until it is dropped.
pub(super) async fn watch(shared: Arc<Shared>) {
    loop {
        let limit = shared.running.load().config.limits.stalled_after;
        sleep((limit / VISITS).max(VISIT_MIN)).await;
        let now = shared.table.tick();
        for live in shared.table.all() {
            if live.untaken_for(now) > VISITS
                && let Some(kill) = &live.kill
            {
                tracing::warn!(id = live.id, path = %live.path, "a client takes nothing more; its response is ended");
                kill.now();
            }
        }
    }
}

/// Visits within the limit: it is overshot by at most a quarter.
const VISITS: u32 = 4;
/// No limit is looked after more closely than this.
const VISIT_MIN: Duration = Duration::from_millis(10);
