//! A request's body on its way to the engine: looked at as it passes, its end told. Made by `exchange`.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::sync::oneshot;
use tokio::time::{Instant, Sleep, sleep};

use super::look::{Finding, Look};
use super::sniff::Heads;
use heartline::BoxError;

/// The body.
#[derive(Debug)]
pub(super) struct Forward {
    /// What was read ahead to choose the engine, at most `look_bytes` and a frame: in one piece, since many small frames
    /// would take many times their bytes.
    ahead: BytesMut,
    /// The trailers behind it, if they have come already.
    trailers: Option<Frame<Bytes>>,
    inner: Incoming,
    look: Option<Look>,
    /// Told what the look found when the body's end is handed over; dropped untold when the body breaks off.
    whole: Option<oneshot::Sender<Finding>>,
    fault: Arc<AtomicU8>,
    /// The client's silence in the middle of its body: how much is allowed, and the timer, once it was needed.
    silence_max: Duration,
    silence: Option<Pin<Box<Sleep>>>,
    /// Told when the client's connection is done with the body, so that another head follows.
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
    /// It fell silent.
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
    /// `inner` with a look, if there is something to look for; its client may be silent for `silence_max` at a time.
    pub(super) fn new(
        inner: Incoming,
        look: Option<Look>,
        silence_max: Duration,
        heads: Arc<Heads>,
    ) -> (Self, Progress) {
        let (sender, whole) = oneshot::channel();
        let fault = Arc::new(AtomicU8::new(0));
        let mut body = Self {
            ahead: BytesMut::new(),
            trailers: None,
            inner,
            look,
            whole: Some(sender),
            fault: Arc::clone(&fault),
            silence_max,
            silence: None,
            heads,
        };
        body.tell_if_over();
        (body, Progress { whole, fault })
    }

    /// Reads on until the look has found its model or cannot, within the bound of the look; the bytes stay.
    ///
    /// # Errors
    ///
    /// The client broke the body.
    pub(super) async fn find_model(&mut self, bytes_max: usize) -> Result<Option<String>, BoxError> {
        while let Some(look) = &self.look
            && look.finding().model.is_none()
            && !look.finding().is_over
            && self.ahead.len() <= bytes_max
            && !self.inner.is_end_stream()
        {
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
        Ok(self.look.as_ref().and_then(|look| look.finding().model.clone()))
    }

    fn poll_inner(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let Poll::Ready(frame) = Pin::new(&mut self.inner).poll_frame(cx) else {
            let limit = self.silence_max;
            ready!(self.silence.get_or_insert_with(|| Box::pin(sleep(limit))).as_mut().poll(cx));
            return Poll::Ready(Some(Err(self.fail(Fault::Slow, "the client fell silent"))));
        };
        if let Some(silence) = &mut self.silence {
            silence.as_mut().reset(Instant::now() + self.silence_max);
        }
        Poll::Ready(frame.map(|frame| match frame {
            Ok(frame) => {
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
            self.heads.next();
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
