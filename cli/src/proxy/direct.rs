//! HTTP/1.1 connections to an engine without TLS, the usual case: each is polled by the task of the answer that it carries,
//! so that an event passes without waking a second task, and what came together is written together. Used by `upstream`.

use std::fmt;
use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use hyper_util::rt::TokioIo;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::{Instant, sleep, timeout};

use super::forward::Forward;
use super::muted::Muted;
use heartline::BoxError;

/// The connections to one engine.
pub(super) struct Direct {
    /// Host and port.
    address: (String, u16),
    connect_timeout: Duration,
    idle_max: Duration,
    idle: Mutex<Vec<(Open, Instant)>>,
    /// Whether a task closes those that have been idle for too long.
    is_reaped: AtomicBool,
}

/// An open connection.
struct Open {
    sender: SendRequest<Forward>,
    connection: Pin<Box<Connection<TokioIo<TcpStream>, Forward>>>,
}

impl Direct {
    pub(super) fn new(address: (String, u16), connect_timeout: Duration, idle_max: Duration) -> Self {
        Self { address, connect_timeout, idle_max, idle: Mutex::new(Vec::new()), is_reaped: AtomicBool::new(false) }
    }

    /// Sends a request; again on another connection only if no byte of it was written.
    ///
    /// # Errors
    ///
    /// The engine could not be reached, or broke off before its answer began.
    pub(super) async fn send(self: Arc<Self>, mut request: Request<Forward>) -> Result<Response<DirectBody>, BoxError> {
        loop {
            let (mut open, is_fresh) = match self.take() {
                Some(open) => (open, false),
                None => (self.connect().await?, true),
            };
            let mut connection = Some(open.connection);
            let mut muted = Muted::default();
            let answer = {
                let mut answer = pin!(open.sender.try_send_request(request));
                std::future::poll_fn(|cx| {
                    muted.poll(cx, |cx| {
                        if let Some(open) = &mut connection
                            && open.as_mut().poll(cx).is_ready()
                        {
                            connection = None; // its fate is told by the answer
                        }
                        answer.as_mut().poll(cx)
                    })
                })
                .await
            };
            match answer {
                Ok(response) => {
                    let open = connection.map(|connection| Open { sender: open.sender, connection });
                    return Ok(response.map(|body| DirectBody { body, open, muted, home: self }));
                }
                Err(mut error) => match error.take_message() {
                    Some(unwritten) if !is_fresh => request = unwritten,
                    _ => return Err(error.into_error().into()),
                },
            }
        }
    }

    async fn connect(&self) -> Result<Open, BoxError> {
        let stream = timeout(self.connect_timeout, self.dial()).await.map_err(|_| {
            let limit = self.connect_timeout;
            io::Error::new(io::ErrorKind::TimedOut, format!("no connection within {limit:?}"))
        })??;
        let (sender, connection) = Builder::new().max_buf_size(BUFFER).handshake(TokioIo::new(stream)).await?;
        Ok(Open { sender, connection: Box::pin(connection) })
    }

    /// Tries each address of the host, none for longer than its share of the time.
    async fn dial(&self) -> io::Result<TcpStream> {
        let (host, port) = &self.address;
        let addresses: Vec<_> = lookup_host((host.as_str(), *port)).await?.collect();
        let share = self.connect_timeout / u32::try_from(addresses.len().max(1)).unwrap_or(u32::MAX);
        let mut last = io::Error::new(io::ErrorKind::NotFound, format!("{host} has no address"));
        for address in addresses {
            match timeout(share, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    stream.set_nodelay(true)?;
                    // An engine whose host has gone without a word is noticed, though waiting for it has no limit.
                    let probes = TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE_INTERVAL);
                    SockRef::from(&stream).set_tcp_keepalive(&probes.with_retries(KEEPALIVE_RETRIES))?;
                    return Ok(stream);
                }
                Ok(Err(error)) => last = error,
                Err(_) => last = io::Error::new(io::ErrorKind::TimedOut, format!("no connection within {share:?}")),
            }
        }
        Err(last)
    }

    /// An idle connection that is still good, the one used last first.
    fn take(&self) -> Option<Open> {
        loop {
            let (mut open, since) = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()?;
            // Nobody polls an idle connection: what the engine did meanwhile shows now.
            let is_over = open.connection.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
            if !is_over && since.elapsed() < self.idle_max && open.sender.is_ready() {
                return Some(open);
            }
        }
    }

    fn put_back(self: &Arc<Self>, open: Open) {
        if self.idle_max.is_zero() {
            return;
        }
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push((open, Instant::now()));
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
pub(super) struct DirectBody {
    body: Incoming,
    open: Option<Open>,
    muted: Muted,
    home: Arc<Direct>,
}

impl DirectBody {
    /// The body is over: so the connection is free, if it is still good.
    fn go_home(&mut self) {
        let Some(mut open) = self.open.take() else { return };
        // The connection learns of the body's end when it is polled.
        let is_over = open.connection.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
        if !is_over && open.sender.is_ready() {
            self.home.put_back(open);
        }
    }
}

impl Body for DirectBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = self.get_mut();
        let (body, open) = (&mut this.body, &mut this.open);
        let polled = this.muted.poll(cx, |cx| {
            if let Some(running) = open
                && running.connection.as_mut().poll(cx).is_ready()
            {
                *open = None; // what it still has to say is in the body
            }
            Pin::new(&mut *body).poll_frame(cx)
        });
        if let Poll::Ready(None) = polled {
            this.go_home();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for DirectBody {
    fn drop(&mut self) {
        if self.body.is_end_stream() {
            self.go_home();
        }
    }
}

impl fmt::Debug for DirectBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DirectBody").finish_non_exhaustive()
    }
}

/// The most that is read ahead of, or kept of, one answer; more waits in the engine's kernel.
const BUFFER: usize = 128 * 1024;
/// Silence after which an engine's host is asked whether it still lives, how often, and how many times in vain.
const KEEPALIVE: Duration = Duration::from_secs(30);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_RETRIES: u32 = 3;
