//! [`KeepAlive`]: a body that forwards its inner body and puts heartbeats where they are neutral. Owns the stream's
//! registration; asks `inject` what may go out.

use crate::broadcaster::Heartline;
use crate::cell::End;
use crate::config::Shared;
use crate::core::count;
use crate::ending::{Ended, next_sequence};
use crate::error::{BoxError, StreamError};
use crate::guard::Registration;
use crate::inject::{Beat, EndPlace, Injector};
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
                live.registration.expect(Outcome::Completed);
            }
        }
    }
}

/// Where a body is in its life.
enum State {
    /// Not registered: everything passes untouched. Stays so.
    Bypassed,
    /// Registered. Goes to any state below.
    Live(Live),
    /// Bytes are out that must be followed by this last frame. Goes to `Over`.
    Last(Box<Frame<Bytes>>),
    /// The error body is out; one `Pending` lets the connection flush it. Goes to `Aborting`.
    Flushing(Ended),
    /// Goes to `Over` with this error.
    Aborting(Ended),
    /// Nothing more comes (I8).
    Over,
}

/// A registered stream.
struct Live {
    registration: Registration,
    injector: Injector,
    /// The next `sequence_number`, where the error shape needs it.
    sequence: u64,
}

impl<B: Body<Data = Bytes>> KeepAlive<B> {
    pub(crate) fn new(heart: &Heartline, inner: B, config: Shared) -> Self {
        if inner.is_end_stream() {
            return Self::untouched(inner); // nothing to keep alive, and nothing to count
        }
        let injector = Injector::new(config.format);
        let state = match task::enrol(&heart.core, config) {
            None => State::Bypassed,
            Some(registration) => State::Live(Live { registration, injector, sequence: 0 }),
        };
        Self { inner: Some(inner), state }
    }

    /// Passes `inner` through untouched, unregistered and uncounted: it is no stream at all.
    pub(crate) fn untouched(inner: B) -> Self {
        Self { inner: Some(inner), state: State::Bypassed }
    }

    /// Passes `inner` through untouched and unregistered, and counts it as `bypassed`.
    ///
    /// For a service that returns one body type, whether or not a response can be kept alive. The `size_hint` stays.
    pub fn bypass(inner: B) -> Self {
        telemetry::bypassed();
        Self::untouched(inner)
    }

    /// Whether the body is registered for heartbeats now.
    pub fn is_live(&self) -> bool {
        matches!(self.state, State::Live(_))
    }
}

/// What a poll of a live stream came to, before the state is changed.
enum Step {
    Frame(Frame<Bytes>),
    Pending,
    /// The stream is over: report this, and go to this state.
    Leave(Outcome, State, Option<Result<Frame<Bytes>, StreamError>>),
}

impl Live {
    /// Polls the inner body, and gives a heartbeat its place only when there is nothing else to send.
    fn poll<B>(&mut self, mut inner: Pin<&mut B>, cx: &mut Context<'_>) -> Step
    where
        B: Body<Data = Bytes>,
        B::Error: Into<BoxError>,
    {
        let receiver = self.registration.receiver();
        let orders = receiver.orders();
        if let Some(end) = orders.end()
            && let Some(step) = self.end(end)
        {
            return step;
        }
        let receiver = self.registration.receiver();
        // Bounded: a turn without a return swallowed a line feed or holds part of a byte order mark, three bytes at most.
        loop {
            let frame = match inner.as_mut().poll_frame(cx) {
                Poll::Pending => break,
                Poll::Ready(Some(Ok(frame))) => frame,
                Poll::Ready(Some(Err(error))) => {
                    return Step::Leave(Outcome::Failed, State::Over, Some(Err(StreamError::body(error))));
                }
                Poll::Ready(None) => {
                    let held = self.injector.flush().map(|bytes| Ok(Frame::data(bytes)));
                    return Step::Leave(Outcome::Completed, State::Over, held);
                }
            };
            let data = match frame.into_data() {
                Ok(data) => data,
                Err(trailers) => return self.trailers(trailers),
            };
            if data.is_empty() {
                return Step::Frame(Frame::data(data)); // an empty frame is silence: a pending heartbeat stays pending (I7)
            }
            let config = receiver.meta();
            if config.error_shape.as_ref().is_some_and(|shape| shape.is_numbered()) {
                self.sequence = next_sequence(&data).unwrap_or(self.sequence);
            }
            let passed = self.injector.pass(data, config.watch);
            if passed.data.is_empty() {
                continue;
            }
            let core = self.registration.core();
            match passed.content {
                true => receiver.touch_content(core.tick()),
                false => receiver.touch_wire(core.tick()),
            }
            if orders.is_beat() {
                receiver.take_beat(); // data is life: the heartbeat that was due is not needed
                count(&core.tally.skipped_active);
            }
            return Step::Frame(Frame::data(passed.data));
        }
        let orders = receiver.poll_orders(cx.waker());
        if orders.is_empty() {
            return Step::Pending;
        }
        if let Some(end) = orders.end()
            && let Some(step) = self.end(end)
        {
            return step;
        }
        if orders.is_beat() { self.beat(orders.is_held()) } else { Step::Pending }
    }

    /// A heartbeat is due and the stream has nothing else to send.
    fn beat(&mut self, was_held: bool) -> Step {
        let (receiver, core) = (self.registration.receiver(), self.registration.core());
        match self.injector.beat(&receiver.meta().form) {
            Beat::Send(bytes) => {
                receiver.take_beat();
                receiver.touch_wire(core.tick());
                receiver.count_beat();
                count(&core.tally.sent);
                Step::Frame(Frame::data(bytes))
            }
            Beat::Hold => {
                if !was_held {
                    receiver.hold();
                    count(&core.tally.held);
                }
                Step::Pending
            }
            Beat::Never => {
                receiver.take_beat();
                receiver.mute();
                count(&core.tally.bypassed);
                Step::Pending
            }
        }
    }

    /// The stream is ordered to end: how it does depends on where it stands (I8). `None` is "not yet".
    fn end(&mut self, end: End) -> Option<Step> {
        let ended = Ended::of_number(end.reason);
        let error = || {
            let shape = self.registration.receiver().meta().shape();
            Some(Ok(Frame::data(shape.error(ended, self.sequence))))
        };
        let (state, last) = match self.injector.end_place() {
            EndPlace::Terminated => return Some(Step::Leave(Outcome::Completed, State::Over, None)),
            EndPlace::AtBoundary => (State::Over, error()),
            EndPlace::JsonUntouched => (State::Flushing(ended), error()),
            EndPlace::InsideEvent | EndPlace::JsonBegun if end.firm => {
                (State::Over, Some(Err(StreamError::ended(ended))))
            }
            EndPlace::InsideEvent | EndPlace::JsonBegun => return None,
        };
        Some(Step::Leave(Outcome::Ended(ended), state, last))
    }

    fn trailers(&mut self, trailers: Frame<Bytes>) -> Step {
        match self.injector.flush() {
            None => Step::Leave(Outcome::Completed, State::Over, Some(Ok(trailers))),
            Some(held) => Step::Leave(Outcome::Completed, State::Last(Box::new(trailers)), Some(Ok(Frame::data(held)))),
        }
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
        let state = this.state;
        let Some(inner) = this.inner.as_mut().as_pin_mut() else {
            return state.poll_after(cx);
        };
        let State::Live(live) = state else {
            let frame = ready!(inner.poll_frame(cx));
            return Poll::Ready(frame.map(|result| result.map_err(StreamError::body)));
        };
        match live.poll(inner, cx) {
            Step::Frame(frame) => Poll::Ready(Some(Ok(frame))),
            Step::Pending => Poll::Pending,
            Step::Leave(outcome, next, last) => {
                if let State::Live(live) = std::mem::replace(state, next) {
                    live.registration.settle(outcome);
                }
                this.inner.set(None);
                Poll::Ready(last)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match (&self.state, &self.inner) {
            (State::Bypassed | State::Live(_), Some(inner)) => inner.is_end_stream(),
            (State::Last(_) | State::Flushing(_) | State::Aborting(_), _) => false,
            _ => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match (&self.state, &self.inner) {
            (State::Bypassed, Some(inner)) => inner.size_hint(),
            (State::Over, _) => SizeHint::with_exact(0),
            _ => SizeHint::default(),
        }
    }
}

impl State {
    /// What still follows when the inner body is gone.
    fn poll_after(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, StreamError>>> {
        match std::mem::replace(self, Self::Over) {
            Self::Flushing(ended) => {
                *self = Self::Aborting(ended);
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Self::Last(frame) => Poll::Ready(Some(Ok(*frame))),
            Self::Aborting(ended) => Poll::Ready(Some(Err(StreamError::ended(ended)))),
            Self::Bypassed | Self::Live(_) | Self::Over => Poll::Ready(None),
        }
    }
}

impl<B: Body> fmt::Debug for KeepAlive<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeepAlive").field("live", &matches!(self.state, State::Live(_))).finish_non_exhaustive()
    }
}
