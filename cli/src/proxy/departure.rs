//! How a live stream leaves hyper: its head goes the usual way, its body waits here until that is written, and then has the
//! connection for itself. Held by each client's connection; filled by `server`, emptied for `outlet`.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, TE, TRANSFER_ENCODING};
use http::{HeaderName, Request, Response, Version};
use http_body::{Body, Frame, SizeHint};

use super::headers::has_token;
use super::outlet::End;
use super::relay::Relay;
use super::sniff::Heads;
use super::trailers;
use heartline::StreamError;

/// Where a stream waits for its connection.
#[derive(Debug, Default)]
pub(super) struct Departure {
    waiting: Mutex<Option<Stream>>,
    is_waiting: AtomicBool,
    /// Whether hyper has written all that it had. Kept by `sniff`.
    is_written: AtomicBool,
}

/// A stream with what must be known to write it.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) relay: Box<Relay>,
    /// The fields that may stand behind it.
    pub(super) promised: Vec<HeaderName>,
    /// How the connection goes on if all goes well.
    pub(super) end: End,
}

/// What a request says about how its answer may be written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    is_http_1_1: bool,
    end: End,
    wants_trailers: bool,
}

impl Asked {
    pub(super) fn of<B>(request: &Request<B>) -> Self {
        Self {
            is_http_1_1: request.version() == Version::HTTP_11,
            end: if has_token(request.headers(), &CONNECTION, "close") { End::Close } else { End::Again },
            wants_trailers: has_token(request.headers(), &TE, "trailers"),
        }
    }
}

impl Departure {
    /// The answer that hyper is given: a live stream stays here, and hyper gets the head with nothing behind it. Not before
    /// the request is whole, which hyper must read on for.
    pub(super) fn split(&self, asked: Asked, heads: &Heads, response: Response<Relay>) -> Response<Answer> {
        let (head, relay) = response.into_parts();
        let is_chunked = !head.headers.contains_key(CONTENT_LENGTH) && !head.headers.contains_key(TRANSFER_ENCODING);
        if !(asked.is_http_1_1 && is_chunked && relay.is_live() && heads.is_between()) {
            return Response::from_parts(head, Answer::Here(Box::new(relay)));
        }
        let promised = if asked.wants_trailers { trailers::promised(&head.headers) } else { Vec::new() };
        let stream = Stream { relay: Box::new(relay), promised, end: asked.end };
        *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) = Some(stream);
        self.is_waiting.store(true, Ordering::Relaxed); // pairs with `take`
        Response::from_parts(head, Answer::Elsewhere)
    }

    /// The stream, once hyper has nothing of its own to write any more. To be asked behind hyper's poll, which writes the
    /// head as far as it can.
    pub(super) fn take(&self) -> Option<Stream> {
        // One task does all of this. Pairs with the stores in `split`, `writes` and `flushes`.
        if !self.is_waiting.load(Ordering::Relaxed) || !self.is_written.load(Ordering::Relaxed) {
            return None;
        }
        self.is_waiting.store(false, Ordering::Relaxed);
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// hyper writes; whether that is all is known when it flushes.
    pub(super) fn writes(&self) {
        self.is_written.store(false, Ordering::Relaxed); // pairs with `take`
    }

    /// hyper flushes, which it does when it has written all that it had.
    pub(super) fn flushes(&self) {
        self.is_written.store(true, Ordering::Relaxed); // pairs with `take`
    }
}

/// The body of an answer as hyper sees it.
#[derive(Debug)]
pub(super) enum Answer {
    /// All of it.
    Here(Box<Relay>),
    /// None of it: the connection is taken from hyper before this could matter.
    Elsewhere,
}

impl Body for Answer {
    type Data = Bytes;
    type Error = StreamError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, StreamError>>> {
        match self.get_mut() {
            Self::Here(relay) => Pin::new(&mut **relay).poll_frame(cx),
            Self::Elsewhere => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Here(relay) => relay.is_end_stream(),
            Self::Elsewhere => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Here(relay) => relay.size_hint(),
            Self::Elsewhere => SizeHint::default(),
        }
    }
}
