//! A request's body on its way to the engine: looked at as it passes, its end told. Made by `exchange`.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::sync::oneshot;

use super::look::{Finding, Look};
use super::pace::Pace;
use super::sniff::Heads;
use heartline::BoxError;

/// The body.
#[derive(Debug)]
pub(super) struct Forward {
    /// What was read ahead to choose the engine, at most `look_bytes` and a frame, or to have a small body whole before its
    /// engine hears of it: in one piece, since many small frames would take many times their bytes.
    ahead: BytesMut,
    /// The trailers behind it, if they have come already.
    trailers: Option<Frame<Bytes>>,
    inner: Incoming,
    look: Option<Look>,
    /// Told what the look found when the body's end is handed over; dropped untold when the body breaks off.
    whole: Option<oneshot::Sender<Finding>>,
    fault: Arc<AtomicU8>,
    /// Boxed, since a connection keeps room for many of these.
    pace: Box<Pace>,
    /// Told when hyper has read the client's request to its end.
    heads: Arc<Heads>,
}

/// What the rest of the exchange sees of the body.
#[derive(Debug)]
pub(super) struct Progress {
    /// Resolves when the whole body has been handed to the engine's connection.
    pub(super) whole: oneshot::Receiver<Finding>,
    fault: Arc<AtomicU8>,
}

/// What a client did wrong in the middle of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It broke the framing, or left.
    Broken = 1,
    /// It fell silent, or was too slow.
    Slow = 2,
}

impl Progress {
    /// What the client did wrong, if anything.
    pub(super) fn fault(&self) -> Option<Fault> {
        match self.fault.load(Ordering::Relaxed) {
            0 => None, // pairs with the store in `fail`
            1 => Some(Fault::Broken),
            _ => Some(Fault::Slow),
        }
    }
}

impl Forward {
    /// `inner` with a look, if there is something to look for; its client has to keep `pace`.
    pub(super) fn new(inner: Incoming, look: Option<Look>, pace: Pace, heads: Arc<Heads>) -> (Self, Progress) {
        let (sender, whole) = oneshot::channel();
        let fault = Arc::new(AtomicU8::new(0));
        let mut body = Self {
            ahead: BytesMut::new(),
            trailers: None,
            inner,
            look,
            whole: Some(sender),
            fault: Arc::clone(&fault),
            pace: Box::new(pace),
            heads,
        };
        body.tell_if_over();
        (body, Progress { whole, fault })
    }

    /// Reads on until the look is over, within its bound; the bytes stay. A model that it has found may be named again.
    ///
    /// # Errors
    ///
    /// The client broke the body.
    pub(super) async fn find_model(&mut self, bytes_max: usize) -> Result<Option<String>, BoxError> {
        let searches = |look: &Look| !look.finding().is_over;
        self.read_ahead(bytes_max, |body| body.look.as_ref().is_some_and(searches)).await?;
        Ok(self.look.as_ref().and_then(|look| look.finding().model.clone()))
    }

    /// Reads on until the body is whole or too long to wait for; the bytes stay. So an engine is not held by a client that
    /// takes its time over a small body, and never sees half of one.
    ///
    /// # Errors
    ///
    /// The client broke the body.
    pub(super) async fn gather(&mut self) -> Result<(), BoxError> {
        self.read_ahead(GATHERED_MAX, |_| true).await
    }

    async fn read_ahead(&mut self, bytes_max: usize, goes_on: impl Fn(&Self) -> bool) -> Result<(), BoxError> {
        while self.ahead.len() <= bytes_max && self.trailers.is_none() && !self.inner.is_end_stream() && goes_on(self) {
            let frame = std::future::poll_fn(|cx| self.poll_inner(cx)).await;
            match frame {
                None => break,
                Some(frame) => match frame?.into_data() {
                    Ok(data) => self.ahead.extend_from_slice(&data),
                    Err(trailers) => {
                        self.trailers = Some(trailers);
                        break;
                    }
                },
            }
        }
        Ok(())
    }

    fn poll_inner(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let Poll::Ready(frame) = Pin::new(&mut self.inner).poll_frame(cx) else {
            let slow = ready!(self.pace.poll_slow(cx));
            return Poll::Ready(Some(Err(self.fail(Fault::Slow, slow))));
        };
        Poll::Ready(frame.map(|frame| match frame {
            Ok(frame) => {
                self.pace.came(frame.data_ref().map_or(0, Bytes::len));
                if let (Some(look), Some(data)) = (&mut self.look, frame.data_ref()) {
                    look.push(data);
                }
                Ok(frame)
            }
            Err(error) => Err(self.fail(Fault::Broken, error)),
        }))
    }

    fn fail(&mut self, fault: Fault, error: impl Into<BoxError>) -> BoxError {
        self.fault.store(fault as u8, Ordering::Relaxed); // pairs with the load in `fault`
        self.whole = None;
        error.into()
    }

    /// The engine's connection asks for no more once the end is known, so it is told with the last frame.
    fn tell_if_over(&mut self) {
        if self.is_end_stream() {
            self.tell();
        }
    }

    fn tell(&mut self) {
        if let Some(whole) = self.whole.take() {
            let finding = match &mut self.look {
                Some(look) => {
                    look.finish();
                    look.finding().clone()
                }
                None => Finding::default(),
            };
            self.heads.ends();
            let _ = whole.send(finding); // nobody may be waiting any more
        }
    }
}

impl Body for Forward {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        let frame = if !this.ahead.is_empty() {
            Some(Ok(Frame::data(std::mem::take(&mut this.ahead).freeze())))
        } else if let Some(trailers) = this.trailers.take() {
            Some(Ok(trailers))
        } else {
            ready!(this.poll_inner(cx))
        };
        match &frame {
            None => this.tell(),
            Some(Ok(_)) => this.tell_if_over(),
            Some(Err(_)) => {}
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.ahead.is_empty() && self.trailers.is_none() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let ahead = self.ahead.len() as u64;
        let inner = self.inner.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(inner.lower().saturating_add(ahead));
        if let Some(upper) = inner.upper().and_then(|upper| upper.checked_add(ahead)) {
            hint.set_upper(upper);
        }
        hint
    }
}

/// A body of up to so many bytes is whole before its engine hears of it: most chats are. More would cost more memory than it
/// saves: so much of it is held for each client that takes its time.
const GATHERED_MAX: usize = 64 * 1024;
