//! One registered stream at work: what a poll of it sends, in which order, and where it ends. Owned by `body`.

use super::cell::{End, Firmness, Orders};
use super::core::count;
use super::guard::Registration;
use crate::bytes::inject::{Beat, EndPlace, Injector};
use crate::config::Failures;
use crate::ending::Ended;
use crate::error::{BoxError, StreamError};
use crate::telemetry::Outcome;
use bytes::Bytes;
use http_body::{Body, Frame};
use std::pin::Pin;
use std::task::{Context, Poll};

/// A registered stream.
pub(crate) struct Live {
    registration: Registration,
    injector: Injector,
}

/// What a poll gives the connection.
pub(crate) type Polled = Poll<Option<Result<Frame<Bytes>, StreamError>>>;

/// The stream is over: report the outcome, give the connection `last`, then do what is left.
pub(crate) struct Leave {
    pub(crate) outcome: Outcome,
    pub(crate) last: Option<Result<Frame<Bytes>, StreamError>>,
    pub(crate) after: After,
}

impl Leave {
    fn new(outcome: Outcome, last: Option<Result<Frame<Bytes>, StreamError>>, after: After) -> Self {
        Self { outcome, last, after }
    }
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
        Self { registration, injector }
    }

    /// The stream's number in the registry.
    pub(crate) fn id(&self) -> Option<u32> {
        self.registration.id()
    }

    /// Removes the stream from the registry and says how it ended.
    pub(crate) fn finish(&mut self, outcome: Outcome) {
        self.registration.finish(outcome);
    }

    /// Polls the inner body, and gives a heartbeat its place only when there is nothing else to send. A stream that is
    /// over says so by `leave`, beside the answer: an answer that has to be taken apart and put together again costs a
    /// token's path (`cargo bench --bench instructions`).
    #[inline]
    pub(crate) fn poll<B>(&mut self, mut inner: Pin<&mut B>, cx: &mut Context<'_>, leave: &mut Option<Leave>) -> Polled
    where
        B: Body<Data = Bytes>,
        B::Error: Into<BoxError>,
    {
        let receiver = self.registration.receiver();
        let orders = receiver.orders();
        if let Some(end) = orders.end()
            && let Some(left) = self.end(end)
        {
            *leave = Some(left);
            return Poll::Pending;
        }
        let receiver = self.registration.receiver();
        // Bounded: a turn without a return swallowed a line feed or holds part of a byte order mark, three bytes at most.
        loop {
            let frame = match inner.as_mut().poll_frame(cx) {
                Poll::Pending => break,
                Poll::Ready(Some(Ok(frame))) => frame,
                Poll::Ready(Some(Err(error))) => {
                    *leave = Some(self.failed(StreamError::body(error)));
                    return Poll::Pending;
                }
                Poll::Ready(None) => {
                    let held = self.injector.flush().map(|bytes| Ok(Frame::data(bytes)));
                    *leave = Some(Leave::new(Outcome::Completed, held, After::Over));
                    return Poll::Pending;
                }
            };
            let mut data = match frame.into_data() {
                Ok(data) => data,
                Err(trailers) => {
                    *leave = Some(self.trailers(trailers));
                    return Poll::Pending;
                }
            };
            let (config, core) = (receiver.meta(), self.registration.core());
            if let Some(next) = config.next_sequence(&data) {
                receiver.set_sequence(next);
            }
            if self.injector.is_whole_token(&data, config.watch) {
                receiver.touch_content(core.tick());
            } else {
                if data.is_empty() {
                    return frame_of(data); // silence: a pending heartbeat stays pending (I7)
                }
                let passed = self.injector.pass(data, config.watch);
                if passed.data.is_empty() {
                    continue;
                }
                match passed.content {
                    true => receiver.touch_content(core.tick()),
                    false => receiver.touch_wire(core.tick()),
                }
                data = passed.data;
            }
            if orders.is_marked() {
                self.answered(orders);
            }
            return frame_of(data);
        }
        let orders = receiver.poll_orders(cx.waker());
        if orders.is_empty() {
            return Poll::Pending;
        }
        if let Some(end) = orders.end()
            && let Some(left) = self.end(end)
        {
            *leave = Some(left);
            return Poll::Pending;
        }
        if orders.is_beat() { self.beat(orders) } else { Poll::Pending }
    }

    /// Data of the stream goes out where a heartbeat was due, or where heartbeats went out since the last of it.
    #[cold]
    fn answered(&self, orders: Orders) {
        let (receiver, core) = (self.registration.receiver(), self.registration.core());
        if orders.is_bridging() {
            receiver.end_bridge(core.tick());
        }
        if orders.is_beat() {
            receiver.take_beat(); // data is life: the heartbeat that was due is not needed
            count(&core.tally.skipped_active);
        }
    }

    /// A heartbeat is due and the stream has nothing else to send.
    fn beat(&mut self, orders: Orders) -> Polled {
        let (receiver, core) = (self.registration.receiver(), self.registration.core());
        match self.injector.beat(&receiver.meta().form) {
            Beat::Send(bytes) => {
                receiver.take_beat();
                receiver.bridge();
                receiver.touch_wire(core.tick());
                receiver.count_beat();
                count(&core.tally.sent);
                frame_of(bytes)
            }
            Beat::Hold => {
                if !orders.is_held() {
                    receiver.hold();
                    count(&core.tally.held);
                }
                Poll::Pending
            }
            Beat::Never => {
                receiver.take_beat();
                receiver.mute();
                count(&core.tally.bypassed);
                Poll::Pending
            }
        }
    }

    /// The stream is ordered to end: how it does depends on where it stands (I8). `None` is "not yet".
    fn end(&self, end: End) -> Option<Leave> {
        let ended = Ended::of_number(end.reason);
        let (last, after) = match self.injector.end_place() {
            EndPlace::Terminated => return Some(Leave::new(Outcome::Completed, None, After::Over)),
            EndPlace::AtBoundary => match self.report(ended) {
                Some(report) => (Ok(report), After::Over),
                None => (Err(StreamError::ended(ended)), After::Over),
            },
            EndPlace::JsonUntouched => match self.report(ended) {
                Some(report) => (Ok(report), After::Flushing(StreamError::ended(ended).reported())),
                None => (Err(StreamError::ended(ended)), After::Over),
            },
            EndPlace::InsideEvent | EndPlace::JsonBegun if end.firmness == Firmness::Firm => {
                (Err(StreamError::ended(ended)), After::Over)
            }
            EndPlace::InsideEvent | EndPlace::JsonBegun => return None,
        };
        Some(Leave::new(Outcome::Ended(ended), Some(last), after))
    }

    /// The inner body failed: its client is told as the settings say, where an event can be written at all.
    fn failed(&self, error: StreamError) -> Leave {
        let failures = self.registration.receiver().meta().failures;
        let (is_told, then_ends) = match (self.injector.end_place(), failures) {
            // The answer is complete; that its connection broke afterwards is no news to the client.
            (EndPlace::Terminated, Failures::ReportThenAbort | Failures::ReportThenEnd) => {
                return Leave::new(Outcome::Completed, None, After::Over);
            }
            (EndPlace::AtBoundary, Failures::ReportThenEnd) => (true, true),
            // A JSON document never ends cleanly with an error in it: clients would take it for a success.
            (EndPlace::AtBoundary, Failures::ReportThenAbort)
            | (EndPlace::JsonUntouched, Failures::ReportThenAbort | Failures::ReportThenEnd) => (true, false),
            _ => (false, false),
        };
        let (last, after) = match is_told.then(|| self.report(Ended::Failed)).flatten() {
            Some(report) if then_ends => (Ok(report), After::Over),
            Some(report) => (Ok(report), After::Flushing(error.reported())),
            None => (Err(error), After::Over),
        };
        Leave::new(Outcome::Failed, Some(last), after)
    }

    /// The error event (or line, or document) that tells the client why; `None` if its shape has nothing to say.
    fn report(&self, ended: Ended) -> Option<Frame<Bytes>> {
        let receiver = self.registration.receiver();
        let bytes = receiver.meta().shape().error(ended, receiver.sequence());
        (!bytes.is_empty()).then(|| Frame::data(bytes))
    }

    fn trailers(&mut self, trailers: Frame<Bytes>) -> Leave {
        match self.injector.flush() {
            None => Leave::new(Outcome::Completed, Some(Ok(trailers)), After::Over),
            Some(held) => Leave::new(Outcome::Completed, Some(Ok(Frame::data(held))), After::Last(Box::new(trailers))),
        }
    }
}

fn frame_of(data: Bytes) -> Polled {
    Poll::Ready(Some(Ok(Frame::data(data))))
}
