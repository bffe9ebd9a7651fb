//! Waits for somebody who wants the command to stop: Ctrl-C, or SIGTERM from a service manager.

use tokio::signal::unix::{SignalKind, signal};

/// Is ready at the first SIGINT or SIGTERM; never, where signals cannot be watched.
///
/// Cancel safe: a signal that comes while nobody waits is kept only if another future of this kind is alive.
pub(crate) async fn interrupted() {
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        interrupt = tokio::signal::ctrl_c() => {
            if interrupt.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}
