//! A request's body on its way to the engine: looked at as it passes, its end told. Made by `exchange`.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::sync::oneshot;

use super::look::{Finding, Look};
use super::sniff::Heads;
use crate::BoxError;

/// The body.
#[derive(Debug)]
pub(super) struct Forward {
    /// Frames that were read ahead to choose the engine; at most `look_bytes` and a frame.
    ahead: VecDeque<Frame<Bytes>>,
    inner: Incoming,
    look: Option<Look>,
    /// Told what the look found when the body's end is handed over; dropped untold when the body breaks off.
    whole: Option<oneshot::Sender<Finding>>,
    /// Set when the client broke the body's framing or left.
    is_broken: Arc<AtomicBool>,
    /// Told when the client's connection is done with the body, so that another head follows.
    heads: Arc<Heads>,
}

/// What the rest of the exchange sees of the body.
#[derive(Debug)]
pub(super) struct Progress {
    /// Resolves when the whole body has been handed to the engine's connection.
    pub(super) whole: oneshot::Receiver<Finding>,
    is_broken: Arc<AtomicBool>,
}

impl Progress {
    /// Whether the client broke the body.
    pub(super) fn is_broken(&self) -> bool {
        self.is_broken.load(Ordering::Relaxed) // pairs with the store in `break_off`
    }
}

impl Forward {
    /// `inner` with a look, if there is something to look for.
    pub(super) fn new(inner: Incoming, look: Option<Look>, heads: Arc<Heads>) -> (Self, Progress) {
        let (sender, whole) = oneshot::channel();
        let is_broken = Arc::new(AtomicBool::new(false));
        let mut body =
            Self { ahead: VecDeque::new(), inner, look, whole: Some(sender), is_broken: Arc::clone(&is_broken), heads };
        body.tell_if_over();
        (body, Progress { whole, is_broken })
    }

    /// Reads on until the look has found its model or cannot, within the bound of the look; the bytes stay.
    ///
    /// # Errors
    ///
    /// The client broke the body.
    pub(super) async fn find_model(&mut self, bytes_max: usize) -> Result<Option<String>, BoxError> {
        let mut bytes = 0;
        while let Some(look) = &self.look
            && look.finding().model.is_none()
            && !look.finding().is_over
            && bytes <= bytes_max
            && !self.inner.is_end_stream()
        {
            let frame = std::future::poll_fn(|cx| self.poll_inner(cx)).await;
            match frame {
                None => break,
                Some(frame) => {
                    let frame = frame?;
                    bytes += frame.data_ref().map_or(0, Bytes::len);
                    self.ahead.push_back(frame);
                }
            }
        }
        Ok(self.look.as_ref().and_then(|look| look.finding().model.clone()))
    }

    fn poll_inner(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = ready!(Pin::new(&mut self.inner).poll_frame(cx));
        Poll::Ready(frame.map(|frame| match frame {
            Ok(frame) => {
                if let (Some(look), Some(data)) = (&mut self.look, frame.data_ref()) {
                    look.push(data);
                }
                Ok(frame)
            }
            Err(error) => {
                self.is_broken.store(true, Ordering::Relaxed); // pairs with `is_broken`
                self.whole = None;
                Err(error.into())
            }
        }))
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
        let frame = match this.ahead.pop_front() {
            Some(frame) => Some(Ok(frame)),
            None => ready!(this.poll_inner(cx)),
        };
        match &frame {
            None => this.tell(),
            Some(Ok(_)) => this.tell_if_over(),
            Some(Err(_)) => {}
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.ahead.is_empty() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let ahead: u64 = self.ahead.iter().filter_map(|frame| frame.data_ref()).map(|data| data.len() as u64).sum();
        let inner = self.inner.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(inner.lower().saturating_add(ahead));
        if let Some(upper) = inner.upper().and_then(|upper| upper.checked_add(ahead)) {
            hint.set_upper(upper);
        }
        hint
    }
}
