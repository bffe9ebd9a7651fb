//! One registered stream at work: what a poll of it sends, in which order, and where it ends. Owned by `body`.

use crate::cell::{End, Firmness, Orders};
use crate::config::Failures;
use crate::core::count;
use crate::ending::{Ended, next_sequence};
use crate::error::{BoxError, StreamError};
use crate::guard::Registration;
use crate::inject::{Beat, EndPlace, Injector};
use crate::telemetry::Outcome;
use bytes::Bytes;
use http_body::{Body, Frame};
use std::pin::Pin;
use std::task::{Context, Poll};

/// A registered stream.
pub(crate) struct Live {
    registration: Registration,
    injector: Injector,
    /// The next `sequence_number`, where the error shape needs it.
    sequence: u32,
}

/// What a poll of a live stream came to, before the state is changed.
pub(crate) enum Step {
    Frame(Frame<Bytes>),
    Pending,
    /// The stream is over: report the outcome, send the last frame or error, then do what is left.
    Leave(Outcome, Option<Result<Frame<Bytes>, StreamError>>, After),
}

/// What still follows when the inner body is gone.
pub(crate) enum After {
    /// Bytes are out that must be followed by this last frame. Goes to `Over`.
    Last(Box<Frame<Bytes>>),
    /// The error is out; one `Pending` lets the connection flush it. Goes to `Aborting`.
    Flushing(StreamError),
    /// Goes to `Over` with this error.
    Aborting(StreamError),
    /// Nothing more comes (I8). Stays.
    Over,
}

impl After {
    pub(crate) fn poll(&mut self, cx: &Context<'_>) -> Poll<Option<Result<Frame<Bytes>, StreamError>>> {
        match std::mem::replace(self, Self::Over) {
            Self::Flushing(error) => {
                *self = Self::Aborting(error);
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Self::Last(frame) => Poll::Ready(Some(Ok(*frame))),
            Self::Aborting(error) => Poll::Ready(Some(Err(error))),
            Self::Over => Poll::Ready(None),
        }
    }
}

impl Live {
    pub(crate) fn new(registration: Registration, injector: Injector) -> Self {
        Self { registration, injector, sequence: 0 }
    }

    /// The stream's number in the registry.
    pub(crate) fn id(&self) -> Option<u32> {
        self.registration.id()
    }

    /// Removes the stream from the registry and says how it ended.
    pub(crate) fn finish(&mut self, outcome: Outcome) {
        self.registration.finish(outcome);
    }

    /// Polls the inner body, and gives a heartbeat its place only when there is nothing else to send.
    pub(crate) fn poll<B>(&mut self, mut inner: Pin<&mut B>, cx: &mut Context<'_>) -> Step
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
                    return self.failed(StreamError::body(error));
                }
                Poll::Ready(None) => {
                    let held = self.injector.flush().map(|bytes| Ok(Frame::data(bytes)));
                    return Step::Leave(Outcome::Completed, held, After::Over);
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
            if orders.is_bridging() {
                receiver.end_bridge(core.tick());
            }
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
        if orders.is_beat() { self.beat(orders) } else { Step::Pending }
    }

    /// A heartbeat is due and the stream has nothing else to send.
    fn beat(&mut self, orders: Orders) -> Step {
        let (receiver, core) = (self.registration.receiver(), self.registration.core());
        match self.injector.beat(&receiver.meta().form) {
            Beat::Send(bytes) => {
                receiver.take_beat();
                receiver.bridge();
                receiver.touch_wire(core.tick());
                receiver.count_beat();
                count(&core.tally.sent);
                Step::Frame(Frame::data(bytes))
            }
            Beat::Hold => {
                if !orders.is_held() {
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
    fn end(&self, end: End) -> Option<Step> {
        let ended = Ended::of_number(end.reason);
        let (last, after) = match self.injector.end_place() {
            EndPlace::Terminated => return Some(Step::Leave(Outcome::Completed, None, After::Over)),
            EndPlace::AtBoundary => (Ok(self.report(ended)), After::Over),
            EndPlace::JsonUntouched => (Ok(self.report(ended)), After::Flushing(StreamError::ended(ended))),
            EndPlace::InsideEvent | EndPlace::JsonBegun if end.firmness == Firmness::Firm => {
                (Err(StreamError::ended(ended)), After::Over)
            }
            EndPlace::InsideEvent | EndPlace::JsonBegun => return None,
        };
        Some(Step::Leave(Outcome::Ended(ended), Some(last), after))
    }

    /// The inner body failed: its client is told as the settings say, where an event can be written at all.
    fn failed(&self, error: StreamError) -> Step {
        let failures = self.registration.receiver().meta().failures;
        let (last, after) = match (self.injector.end_place(), failures) {
            // The answer is complete; that its connection broke afterwards is no news to the client.
            (EndPlace::Terminated, Failures::ReportThenAbort | Failures::ReportThenEnd) => {
                return Step::Leave(Outcome::Completed, None, After::Over);
            }
            (EndPlace::AtBoundary, Failures::ReportThenEnd) => (Ok(self.report(Ended::Failed)), After::Over),
            // A JSON document never ends cleanly with an error in it: clients would take it for a success.
            (EndPlace::AtBoundary, Failures::ReportThenAbort)
            | (EndPlace::JsonUntouched, Failures::ReportThenAbort | Failures::ReportThenEnd) => {
                (Ok(self.report(Ended::Failed)), After::Flushing(error))
            }
            _ => (Err(error), After::Over),
        };
        Step::Leave(Outcome::Failed, Some(last), after)
    }

    /// The error event (or line, or document) that tells the client why.
    fn report(&self, ended: Ended) -> Frame<Bytes> {
        Frame::data(self.registration.receiver().meta().shape().error(ended, self.sequence))
    }

    fn trailers(&mut self, trailers: Frame<Bytes>) -> Step {
        match self.injector.flush() {
            None => Step::Leave(Outcome::Completed, Some(Ok(trailers)), After::Over),
            Some(held) => Step::Leave(Outcome::Completed, Some(Ok(Frame::data(held))), After::Last(Box::new(trailers))),
        }
    }
}
