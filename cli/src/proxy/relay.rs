//! The answer's body on its way to the client: the engine's bytes through [`KeepAlive`], counted, and dropped at once when
//! the client is gone. Made by `exchange`, polled by hyper.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep};

use super::late::LateBody;
use super::log::Entry;
use super::socket::Line;
use super::table::{Live, Seat};
use super::upstream::Arrived;
use heartline::{BoxError, KeepAlive, StreamError};

/// A response's body.
pub(super) struct Relay {
    body: KeepAlive<Source>,
    seat: Seat,
    entry: Entry,
    /// Where to see that the client is gone while hyper does not look; `None` where it always looks.
    line: Option<Line>,
    /// The connection to reset if the body breaks off, and when.
    reset: Option<(Line, Resets)>,
    end: End,
}

/// How far a body has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// More may come. Goes to either of the others.
    Open,
    /// All of it was handed over. Stays.
    Whole,
    /// It broke off. Stays.
    Broken,
    /// It broke off after an error event that says so. Stays.
    Reported,
}

/// Which broken bodies reset their connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resets {
    /// All: the end of the connection is the body's end, and a plain close would look whole (case 40).
    Broken,
    /// Those whose client was not told by an error event. A plain close in the middle of a chunked body is a violation of
    /// the protocol to some clients (httpx, and so anthropic-python), a reset is a lost connection to all of them.
    Unreported,
}

impl Relay {
    /// The body of an exchange.
    pub(super) fn new(body: KeepAlive<Source>, seat: Seat, entry: Entry) -> Self {
        Self { body, seat, entry, line: None, reset: None, end: End::Open }
    }

    /// Watches `line` for the client's going.
    pub(super) fn watching(mut self, line: Option<Line>) -> Self {
        self.line = line;
        self
    }

    /// Resets `line` if the body breaks off.
    pub(super) fn resetting(mut self, line: Option<(Line, Resets)>) -> Self {
        self.reset = line;
        self
    }
}

impl Body for Relay {
    type Data = Bytes;
    type Error = StreamError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, StreamError>>> {
        let this = self.get_mut();
        match Pin::new(&mut this.body).poll_frame(cx) {
            Poll::Pending => {
                this.seat.waits();
                if let Some(line) = &this.line
                    && line.poll_gone(cx).is_ready()
                {
                    this.end = End::Broken;
                    return Poll::Ready(Some(Err(StreamError::body("the client is gone"))));
                }
                Poll::Pending
            }
            Poll::Ready(Some(Ok(frame))) => {
                this.seat.given();
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(None) => {
                this.end = End::Whole;
                this.seat.waits();
                Poll::Ready(None)
            }
            Poll::Ready(Some(Err(error))) => {
                this.end = if error.is_reported() { End::Reported } else { End::Broken };
                this.entry.failed(&error);
                Poll::Ready(Some(Err(error)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // hyper asks no more once a body has announced its end.
        let is_whole = self.end == End::Whole || (self.end == End::Open && self.body.is_end_stream());
        if let Some((line, resets)) = &self.reset
            && !is_whole
            && (self.end != End::Reported || *resets == Resets::Broken)
        {
            line.reset_on_close();
        }
        self.entry.write(self.seat.live.bytes(), if is_whole { "complete" } else { "broken_off" });
    }
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay").field("seat", &self.seat).finish_non_exhaustive()
    }
}

/// Where the bytes of an answer come from.
pub(super) enum Source {
    /// The engine.
    Engine(EngineBody),
    /// The engine, once it answers.
    Late(Box<LateBody<Pending, EngineBody>>),
    /// The proxy itself.
    Own(Option<Bytes>),
}

/// The wait for an engine's response.
pub(super) type Pending = Pin<Box<dyn Future<Output = Result<Response<EngineBody>, BoxError>> + Send>>;

impl Body for Source {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self.get_mut() {
            Self::Engine(body) => Pin::new(body).poll_frame(cx),
            Self::Late(body) => Pin::new(body.as_mut()).poll_frame(cx),
            Self::Own(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Engine(body) => body.is_end_stream(),
            Self::Late(body) => body.is_end_stream(),
            Self::Own(bytes) => bytes.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Engine(body) => body.size_hint(),
            Self::Late(body) => body.size_hint(),
            Self::Own(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
        }
    }
}

/// The body of an engine's response. Dropping it drops the request at the engine.
pub(super) struct EngineBody {
    body: Arrived,
    live: Arc<Live>,
    idle: Option<Idle>,
}

/// The limit on an engine's silence in the middle of its answer; off by default.
struct Idle {
    limit: Duration,
    timer: Pin<Box<Sleep>>,
}

impl EngineBody {
    /// Counts `body` for `live`; fails it after a silence of `idle`.
    pub(super) fn new(body: Arrived, live: Arc<Live>, idle: Option<Duration>) -> Self {
        let idle = idle.map(|limit| Idle { limit, timer: Box::pin(sleep(limit)) });
        Self { body, live, idle }
    }
}

impl Body for EngineBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(cx) else {
            let Some(idle) = &mut this.idle else { return Poll::Pending };
            ready!(idle.timer.as_mut().poll(cx));
            return Poll::Ready(Some(Err(format!("the engine was silent for {:?}", idle.limit).into())));
        };
        if let Some(idle) = &mut this.idle {
            idle.timer.as_mut().reset(Instant::now() + idle.limit);
        }
        Poll::Ready(frame.map(|frame| match frame {
            Ok(frame) => {
                if let Some(data) = frame.data_ref() {
                    this.live.count(data.len());
                }
                Ok(frame)
            }
            Err(error) => Err(error),
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
