//! [`KeepAlive`]: a body that forwards its inner body and puts heartbeats where they are neutral. Owns the stream's
//! registration; asks `inject` what may go out.

use crate::broadcaster::Heartline;
use crate::config::Shared;
use crate::error::{BoxError, StreamError};
use crate::inject::Injector;
use crate::live::{After, Leave, Live};
use crate::task;
use crate::telemetry::{self, Outcome};
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

impl Heartline {
    /// Keeps an event stream alive: wraps its body so that heartbeats go out while it is silent.
    ///
    /// The body is taken for `text/event-stream` with this broadcaster's settings; [`stream`](Self::stream) is for one that
    /// needs its own. The response must have no `Content-Length` and no content encoding. Outside a tokio runtime with a
    /// timer the body passes through without heartbeats, which is counted as `bypassed`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), heartline::Error> {
    /// let heart = heartline::Heartline::builder().build()?;
    /// let body = heart.keep_alive(http_body_util::Full::new(bytes::Bytes::from("data: 1\n\n")));
    /// assert_eq!(heart.active(), 1);
    /// drop(body);
    /// assert_eq!(heart.active(), 0);
    /// # Ok(()) }
    /// ```
    pub fn keep_alive<B: Body<Data = Bytes>>(&self, body: B) -> KeepAlive<B> {
        KeepAlive::new(self, body, Arc::clone(&self.core.stream))
    }
}

pin_project! {
    /// A response body that is kept alive; made by [`Heartline::keep_alive`] and
    /// [`StreamBuilder::wrap`](crate::StreamBuilder::wrap).
    ///
    /// Frames of the inner body pass in order, heartbeats go between them, trailers pass. Its error is a [`StreamError`]
    /// even where the inner one is `Infallible`, since a cap or a drain may have to abort the stream (I8).
    ///
    /// A wrapped body reports no upper bound of its size. Dropping it, at any time, removes the stream from its broadcaster.
    ///
    /// # Cancel safety
    ///
    /// `poll_frame` may be called and abandoned at any time; nothing is lost.
    pub struct KeepAlive<B>
    where
        B: Body,
    {
        #[pin]
        inner: Option<B>, // gone as soon as the stream is over, so that whoever feeds it is told at once
        state: State,
    }

    impl<B: Body> PinnedDrop for KeepAlive<B> {
        fn drop(this: Pin<&mut Self>) {
            let this = this.project();
            // A server need not poll once more for the end when the last frame announced it.
            if let State::Live(live) = this.state && this.inner.as_ref().get_ref().as_ref().is_none_or(Body::is_end_stream) {
                live.finish(Outcome::Completed);
            }
        }
    }
}

/// Where a body is in its life.
enum State {
    /// Not registered: everything passes untouched. Stays so.
    Bypassed,
    /// Registered. Goes to `After`.
    Live(Live),
    /// The inner body is gone. Stays so.
    After(After),
}

impl<B: Body<Data = Bytes>> KeepAlive<B> {
    pub(crate) fn new(heart: &Heartline, inner: B, config: Shared) -> Self {
        if inner.is_end_stream() {
            return Self::untouched(inner); // nothing to keep alive, and nothing to count
        }
        let injector = Injector::new(config.format);
        let state = match task::enrol(&heart.core, config) {
            None => State::Bypassed,
            Some(registration) => State::Live(Live::new(registration, injector)),
        };
        Self { inner: Some(inner), state }
    }

    /// Passes `inner` through untouched, unregistered and uncounted: it is no stream at all.
    ///
    /// For a service that returns one body type for its streams and everything else.
    pub fn untouched(inner: B) -> Self {
        Self { inner: Some(inner), state: State::Bypassed }
    }

    /// Passes `inner` through untouched and unregistered, and counts it as `bypassed`.
    ///
    /// For a service that returns one body type, whether or not a response can be kept alive. The `size_hint` stays.
    pub fn bypass(inner: B) -> Self {
        telemetry::bypassed();
        Self::untouched(inner)
    }

    /// The number under which [`Heartline::streams`] lists this stream; `None` when it is not registered.
    pub fn id(&self) -> Option<u32> {
        match &self.state {
            State::Live(live) => live.id(),
            State::Bypassed | State::After(_) => None,
        }
    }

    /// Whether the body is registered for heartbeats now.
    pub fn is_live(&self) -> bool {
        matches!(self.state, State::Live(_))
    }
}

impl<B> Body for KeepAlive<B>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = StreamError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, StreamError>>> {
        let mut this = self.project();
        let (state, inner) = (this.state, this.inner.as_mut().as_pin_mut());
        let (live, inner) = match (&mut *state, inner) {
            (State::Live(live), Some(inner)) => (live, inner),
            (State::After(after), _) => return after.poll(cx),
            (_, inner) => {
                let Some(inner) = inner else { return Poll::Ready(None) };
                let frame = ready!(inner.poll_frame(cx));
                return Poll::Ready(frame.map(|result| result.map_err(StreamError::body)));
            }
        };
        let mut leave = None;
        let polled = live.poll(inner, cx, &mut leave);
        let Some(Leave { outcome, last, after }) = leave else { return polled };
        live.finish(outcome);
        *state = State::After(after);
        this.inner.set(None);
        Poll::Ready(last)
    }

    fn is_end_stream(&self) -> bool {
        match (&self.state, &self.inner) {
            (State::After(after), _) => matches!(after, After::Over),
            (_, inner) => inner.as_ref().is_none_or(Body::is_end_stream),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match (&self.state, &self.inner) {
            (State::Bypassed, Some(inner)) => inner.size_hint(),
            (State::After(After::Over), _) => SizeHint::with_exact(0),
            _ => SizeHint::default(),
        }
    }
}

impl<B: Body> fmt::Debug for KeepAlive<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeepAlive").field("live", &matches!(self.state, State::Live(_))).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a stream costs beside its inner body, its channel and its entry: 150 B in all is the aim.
    #[test]
    fn the_wrapper_is_small() {
        assert!(size_of::<State>() <= 40, "{}", size_of::<State>());
    }
}
