//! [`KeepAliveStream`]: the same as `body` for a `Stream` of bytes. No logic of its own.

use crate::body::KeepAlive;
use crate::broadcaster::Heartline;
use crate::config::Shared;
use crate::error::{BoxError, StreamError};
use bytes::Bytes;
use futures::Stream;
use http_body::{Body, Frame};
use pin_project_lite::pin_project;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

impl Heartline {
    /// Keeps an event stream alive that is a `Stream` of bytes; see [`keep_alive`](Self::keep_alive).
    pub fn keep_alive_stream<S, E>(&self, stream: S) -> KeepAliveStream<S>
    where
        S: Stream<Item = Result<Bytes, E>>,
        E: Into<BoxError>,
    {
        KeepAliveStream::new(self, stream, Arc::clone(&self.core.stream))
    }
}

pin_project! {
    /// A stream of bytes that is kept alive; made by [`Heartline::keep_alive_stream`].
    ///
    /// # Cancel safety
    ///
    /// Polling may be abandoned at any time; nothing is lost.
    pub struct KeepAliveStream<S>
    where
        Frames<S>: Body,
    {
        #[pin]
        body: KeepAlive<Frames<S>>,
    }
}

impl<S, E> KeepAliveStream<S>
where
    S: Stream<Item = Result<Bytes, E>>,
    E: Into<BoxError>,
{
    pub(crate) fn new(heart: &Heartline, stream: S, config: Shared) -> Self {
        Self { body: KeepAlive::new(heart, Frames { stream }, config) }
    }
}

impl<S, E> Stream for KeepAliveStream<S>
where
    S: Stream<Item = Result<Bytes, E>>,
    E: Into<BoxError>,
{
    type Item = Result<Bytes, StreamError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let frame = ready!(self.project().body.poll_frame(cx));
        Poll::Ready(frame.map(|result| result.map(|frame| frame.into_data().unwrap_or_default())))
    }
}

impl<S> fmt::Debug for KeepAliveStream<S>
where
    Frames<S>: Body,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeepAliveStream").field(&self.body).finish()
    }
}

pin_project! {
    /// A stream of bytes as a body of data frames.
    #[derive(Debug)]
    pub struct Frames<S> {
        #[pin]
        stream: S,
    }
}

impl<S, E> Body for Frames<S>
where
    S: Stream<Item = Result<Bytes, E>>,
    E: Into<BoxError>,
{
    type Data = Bytes;
    type Error = E;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, E>>> {
        let item = ready!(self.project().stream.poll_next(cx));
        Poll::Ready(item.map(|result| result.map(Frame::data)))
    }
}
