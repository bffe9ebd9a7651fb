//! The threads that serve connections when the proxy has a process for itself: each connection stays on one of them for its
//! life, so that an event wakes no other thread. Used by `server` to place what it accepts.

use std::future::Future;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio::sync::watch;

/// Threads with a runtime each, or none: then everything runs where the proxy does.
#[derive(Debug, Default)]
pub(super) struct Workers {
    handles: Vec<Handle>,
    next: AtomicUsize,
    /// Its drop ends the threads, and with them whatever they still serve.
    _stop: Option<watch::Sender<()>>,
}

impl Workers {
    /// Starts `count` threads.
    ///
    /// # Errors
    ///
    /// The host's, which gives no more threads or files.
    pub(super) fn start(count: usize) -> io::Result<Self> {
        let (stop, stopped) = watch::channel(());
        let mut handles = Vec::with_capacity(count);
        for number in 0..count {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            handles.push(runtime.handle().clone());
            let mut stopped = stopped.clone();
            thread::Builder::new().name(format!("connections-{number}")).spawn(move || {
                runtime.block_on(async move { while stopped.changed().await.is_ok() {} });
            })?;
        }
        Ok(Self { handles, next: AtomicUsize::new(0), _stop: Some(stop) })
    }

    /// Whether there are threads.
    pub(super) fn is_empty(&self) -> bool {
        self.handles.is_empty()
    }

    /// Runs a connection on the next thread in turn.
    pub(super) fn spawn(&self, connection: impl Future<Output = ()> + Send + 'static) {
        if self.handles.is_empty() {
            tokio::spawn(connection);
            return;
        }
        let turn = self.next.fetch_add(1, Ordering::Relaxed); // only has to move on
        self.handles[turn % self.handles.len()].spawn(connection);
    }
}
