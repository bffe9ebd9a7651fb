//! HTTP/1.1 connections to an engine without TLS, the usual case: opened, kept while they are idle and handed to the answer
//! that they carry. Used by `upstream`.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body::{Body, Frame, SizeHint};
use hyper_util::client::legacy::connect::HttpConnector;
use tokio::time::{Instant, sleep, timeout};
use tower_service::Service;

use super::forward::Forward;
use super::sending::Sending;
use super::wire::Wire;
use heartline::BoxError;

/// The connections to one engine.
pub(super) struct Direct {
    /// Tries the addresses of the host, each for its share of the time.
    dial: HttpConnector,
    /// Scheme, host and port.
    address: Uri,
    connect_timeout: Duration,
    idle_max: Duration,
    idle: Mutex<Vec<(Box<Wire>, Instant)>>,
    /// Whether a task closes those that have been idle for too long.
    is_reaped: AtomicBool,
}

impl Direct {
    pub(super) fn new(dial: HttpConnector, address: Uri, connect_timeout: Duration, idle_max: Duration) -> Self {
        let (idle, is_reaped) = (Mutex::default(), AtomicBool::new(false));
        Self { dial, address, connect_timeout, idle_max, idle, is_reaped }
    }

    /// Sends a request; again on another connection only if no byte of it was written.
    ///
    /// # Errors
    ///
    /// The engine could not be reached, or broke off before its answer began.
    pub(super) async fn send(self: Arc<Self>, request: Request<Forward>) -> Result<Response<DirectBody>, BoxError> {
        let (head, body) = request.into_parts();
        let method = head.method.clone();
        let mut sending = Some(Box::new(Sending::new(head, body)));
        loop {
            let (mut wire, is_fresh) = match self.take() {
                Some(wire) => (wire, false),
                None => (self.connect().await?, true),
            };
            match std::future::poll_fn(|cx| wire.poll_reply(cx, &mut sending, &method)).await {
                Ok(head) => return Ok(Response::from_parts(head, DirectBody { wire: Some(wire), home: self })),
                Err(_) if !is_fresh && sending.as_ref().is_some_and(|sending| sending.is_untouched()) => {}
                Err(error) => return Err(error),
            }
        }
    }

    async fn connect(&self) -> Result<Box<Wire>, BoxError> {
        let mut dial = self.dial.clone();
        // The dialler's own limit is for its addresses; looking them up takes time too.
        let socket = timeout(self.connect_timeout, dial.call(self.address.clone())).await.map_err(|_| {
            let limit = self.connect_timeout;
            io::Error::new(io::ErrorKind::TimedOut, format!("no connection within {limit:?}"))
        })??;
        Ok(Box::new(Wire::new(socket.into_inner())))
    }

    /// An idle connection that is still good, the one used last first.
    fn take(&self) -> Option<Box<Wire>> {
        loop {
            let (mut wire, since) = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()?;
            if since.elapsed() < self.idle_max && wire.revive().is_ok() {
                return Some(wire);
            }
        }
    }

    fn put_back(self: &Arc<Self>, wire: Box<Wire>) {
        if self.idle_max.is_zero() {
            return;
        }
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push((wire, Instant::now()));
        if !self.is_reaped.swap(true, Ordering::SeqCst) {
            tokio::spawn(reap(Arc::downgrade(self), self.idle_max)); // one at a time; pairs with the store in `reap`
        }
    }
}

/// Closes connections that have been idle for too long, until none is left.
async fn reap(pool: Weak<Direct>, idle_max: Duration) {
    loop {
        sleep(idle_max / 2).await;
        let Some(pool) = pool.upgrade() else { return };
        let mut idle = pool.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let (stale, fresh) = idle.drain(..).partition(|(_, since)| since.elapsed() >= idle_max);
        *idle = fresh;
        if idle.is_empty() {
            pool.is_reaped.store(false, Ordering::SeqCst); // under the lock that a new one is put in with
            return;
        }
        drop(idle);
        drop::<Vec<_>>(stale);
    }
}

impl fmt::Debug for Direct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Direct").field("address", &self.address).finish_non_exhaustive()
    }
}

/// The body of an answer, with the connection that carries it. Dropping it before its end closes the connection.
#[derive(Debug)]
pub(super) struct DirectBody {
    /// Gone when the body is over and the connection was put back.
    wire: Option<Box<Wire>>,
    home: Arc<Direct>,
}

impl DirectBody {
    /// The body is over: so the connection is free, if it is still good.
    fn go_home(&mut self) {
        if let Some(wire) = self.wire.take().filter(|wire| wire.is_free()) {
            self.home.put_back(wire);
        }
    }
}

impl Body for DirectBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        let Some(wire) = &mut this.wire else { return Poll::Ready(None) };
        let polled = wire.poll_frame(cx);
        match polled {
            Poll::Ready(None) => this.go_home(),
            Poll::Ready(Some(Err(_))) => this.wire = None, // nothing more is to be had of it
            Poll::Ready(Some(Ok(_))) | Poll::Pending => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.wire.as_ref().is_none_or(|wire| wire.is_over())
    }

    fn size_hint(&self) -> SizeHint {
        self.wire.as_ref().map_or_else(|| SizeHint::with_exact(0), |wire| wire.size_hint())
    }
}

impl Drop for DirectBody {
    fn drop(&mut self) {
        if self.is_end_stream() {
            self.go_home();
        }
    }
}
