//! A live event stream as two ends: an [`EventSender`] for the handler, an [`EventBody`] for the
//! response. Called by servers whose events come from elsewhere than a body or stream that they
//! already have.
//!
//! The queue is an unbounded futures channel behind a semaphore, not a bounded channel, for two
//! reasons. The bound is exact for any number of senders (a cloned bounded futures `Sender` has a
//! slot of its own), and an idle stream is cheap (tokio's bounded channel allocates room for 32
//! messages at once).

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures::StreamExt;
use futures::channel::mpsc;
use futures::stream::FusedStream;
use http_body::{Body, Frame};
use tokio::sync::{Semaphore, TryAcquireError};

use crate::{Event, Format, Heartline, KeepAlive, StreamBuilder};

/// Sends the events of one stream to its [`EventBody`].
///
/// A clone is cheap and sends into the same stream; the bound is shared by all clones. The stream
/// ends cleanly when the last one is dropped, after all that was sent before has been read.
#[derive(Clone)]
pub struct EventSender {
    queue: mpsc::UnboundedSender<Bytes>,
    room: Arc<Room>,
}

impl EventSender {
    /// Sends `event`, once the stream has room for it.
    ///
    /// Success means that the event is on its way, not that the client has it.
    ///
    /// # Errors
    ///
    /// When the stream is closed: its client has gone, or heartline has ended it. The error gives
    /// the event back.
    ///
    /// # Cancel safety
    ///
    /// When the future is dropped before it completes, the event was not sent and its place in the
    /// line is lost.
    pub async fn send(&self, event: Event) -> Result<(), SendError<Event>> {
        match self.room.places.acquire().await {
            Ok(place) => {
                // The body gives the place back when it has read the event.
                place.forget();
                self.enqueue(event)
            }
            Err(_) => Err(SendError::closed(event)),
        }
    }

    /// Sends `event` if the stream has room for it now.
    ///
    /// # Errors
    ///
    /// When the stream is full or closed; [`SendError::is_full`] and [`SendError::is_closed`] tell
    /// which. A full stream has a slow client, not a gone one.
    pub fn try_send(&self, event: Event) -> Result<(), SendError<Event>> {
        match self.room.places.try_acquire() {
            Ok(place) => {
                place.forget();
                self.enqueue(event)
            }
            Err(TryAcquireError::NoPermits) => Err(SendError::full(event)),
            Err(TryAcquireError::Closed) => Err(SendError::closed(event)),
        }
    }

    /// Whether the stream is closed, so that no event can be sent any more.
    pub fn is_closed(&self) -> bool {
        self.queue.is_closed()
    }

    /// Waits until the stream is closed: its client has gone, or heartline has ended it.
    ///
    /// A handler that selects over this and its source stops work for a client that no longer
    /// waits.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect.
    pub async fn closed(&self) {
        // This semaphore never has a permit; it only ever closes.
        let _ = self.room.gone.acquire().await;
    }

    fn enqueue(&self, event: Event) -> Result<(), SendError<Event>> {
        self.queue.unbounded_send(event.encode()).map_err(|_| SendError::closed(event))
    }
}

impl fmt::Debug for EventSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventSender")
            .field("room", &self.room.places.available_permits())
            .field("closed", &self.is_closed())
            .finish()
    }
}

/// The body that carries what an [`EventSender`] sends: one frame for each event, whole.
#[derive(Debug)]
pub struct EventBody {
    queue: mpsc::UnboundedReceiver<Bytes>,
    room: Arc<Room>,
}

impl Body for EventBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let event = ready!(self.queue.poll_next_unpin(cx));
        Poll::Ready(event.map(|bytes| {
            self.room.places.add_permits(1);
            Ok(Frame::data(bytes))
        }))
    }

    /// Whether the end has been read; that no sender is left is known only then.
    fn is_end_stream(&self) -> bool {
        self.queue.is_terminated()
    }
}

impl Drop for EventBody {
    fn drop(&mut self) {
        self.queue.close();
        self.room.places.close();
        self.room.gone.close();
    }
}

/// Why an event was not sent, with the event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendError<T> {
    unsent: T,
    reason: Reason,
}

impl<T> SendError<T> {
    /// Whether the stream had no room left; its client is slow, and later there may be room again.
    pub fn is_full(&self) -> bool {
        self.reason == Reason::Full
    }

    /// Whether the stream was closed, for good.
    pub fn is_closed(&self) -> bool {
        self.reason == Reason::Closed
    }

    /// What was not sent.
    pub fn into_inner(self) -> T {
        self.unsent
    }

    fn full(unsent: T) -> Self {
        Self { unsent, reason: Reason::Full }
    }

    fn closed(unsent: T) -> Self {
        Self { unsent, reason: Reason::Closed }
    }
}

impl<T> fmt::Display for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.reason {
            Reason::Full => "the stream has no room for another event: wait with `send`, or leave it out",
            Reason::Closed => "the stream is closed: stop sending to it",
        })
    }
}

impl<T: fmt::Debug> std::error::Error for SendError<T> {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    /// Leaves when the body reads an event.
    Full,
    /// Never leaves.
    Closed,
}

/// What the two ends share besides the queue.
#[derive(Debug)]
struct Room {
    /// One permit for each event that may be queued; senders wait here in order.
    places: Semaphore,
    /// Never has a permit; closes with the body.
    gone: Semaphore,
}

/// Both ends of an event stream that queues at most `capacity` events, at least one.
pub(crate) fn channel(capacity: usize) -> (EventSender, EventBody) {
    let (sender, receiver) = mpsc::unbounded();
    let room =
        Arc::new(Room { places: Semaphore::new(capacity.clamp(1, Semaphore::MAX_PERMITS)), gone: Semaphore::new(0) });
    let sender = EventSender { queue: sender, room: Arc::clone(&room) };
    let body = EventBody { queue: receiver, room };
    (sender, body)
}

impl Heartline {
    /// A live event stream for a handler to send into: the sender, and the body for the response.
    ///
    /// At most `capacity` events wait for the client, 0 counting as 1; heartbeats need no room.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use heartline::{Event, Heartline};
    ///
    /// let heart = Heartline::builder().build()?;
    /// let (events, body) = heart.channel(32);
    /// tokio::spawn(async move { events.send(Event::data("hello")).await });
    /// let response = http::Response::builder()
    ///     .header("content-type", "text/event-stream")
    ///     .body(body)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn channel(&self, capacity: usize) -> (EventSender, KeepAlive<EventBody>) {
        self.stream().channel(capacity)
    }
}

impl StreamBuilder {
    /// As [`Heartline::channel`], with what was set on this builder; the format is an event stream,
    /// whatever was set.
    pub fn channel(self, capacity: usize) -> (EventSender, KeepAlive<EventBody>) {
        let (sender, body) = channel(capacity);
        (sender, self.format(Format::EventStream).wrap(body))
    }
}
