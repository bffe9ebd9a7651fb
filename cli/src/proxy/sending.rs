//! A request on its way to an engine over HTTP/1.1: its head, then its body as the client sends it. Made by `direct`, driven
//! by `wire` and dropped once all is written, so that an answer that only waits keeps nothing of its request.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::request::Parts;
use http::{HeaderName, HeaderValue};
use http_body::Body;
use tokio::io::AsyncWrite;
use tokio::net::TcpStream;

use super::forward::Forward;
use super::trailers;
use heartline::BoxError;

/// The request.
#[derive(Debug)]
pub(super) struct Sending {
    /// What is to be written next.
    ready: Bytes,
    is_untouched: bool,
    body: Option<Outgoing>,
}

/// What of a body is still to come.
#[derive(Debug)]
struct Outgoing {
    body: Box<Forward>,
    framing: Framing,
    /// The fields that the head promised behind the body.
    promised: Vec<HeaderName>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Chunked,
    /// So many bytes are left.
    Length(u64),
}

impl Sending {
    /// Writes the head down; its address is the path and query that the engine is asked for.
    pub(super) fn new(mut head: Parts, body: Forward) -> Self {
        let body = (!body.is_end_stream()).then(|| Box::new(body));
        let body = body.map(|body| {
            let framing = match body.size_hint().exact() {
                Some(length) => {
                    head.headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
                    Framing::Length(length)
                }
                None => {
                    head.headers.remove(CONTENT_LENGTH);
                    head.headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
                    Framing::Chunked
                }
            };
            Outgoing { body, framing, promised: trailers::promised(&head.headers) }
        });
        let fields = head.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum::<usize>();
        let mut out = Vec::with_capacity(fields + LINE_BYTES);
        let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
        for part in [head.method.as_str(), " ", path, " HTTP/1.1\r\n"] {
            out.extend_from_slice(part.as_bytes());
        }
        for (name, value) in &head.headers {
            for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
                out.extend_from_slice(part);
            }
        }
        out.extend_from_slice(b"\r\n");
        Self { ready: out.into(), is_untouched: true, body }
    }

    /// Whether no byte was written, so that another connection may be tried.
    pub(super) fn is_untouched(&self) -> bool {
        self.is_untouched
    }

    /// Writes on; ready when all is written.
    ///
    /// # Errors
    ///
    /// The socket's, and the body's: then the request has no end that the engine could know.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, socket: &mut TcpStream) -> Poll<Result<(), Unsent>> {
        loop {
            while !self.ready.is_empty() {
                match ready!(Pin::new(&mut *socket).poll_write(cx, &self.ready)) {
                    Ok(0) => return Poll::Ready(Err(Unsent::Socket(io::ErrorKind::WriteZero.into()))),
                    Ok(written) => self.ready.advance(written),
                    Err(error) => return Poll::Ready(Err(Unsent::Socket(error))),
                }
                self.is_untouched = false;
            }
            let Some(outgoing) = &mut self.body else { return Poll::Ready(Ok(())) };
            let (next, is_last) = ready!(outgoing.poll(cx)).map_err(Unsent::Body)?;
            self.ready = next;
            if is_last {
                self.body = None;
            }
        }
    }
}

/// Why a request could not be written to its end.
#[derive(Debug)]
pub(super) enum Unsent {
    /// The engine takes no more; it may have answered all the same.
    Socket(io::Error),
    /// The client broke off.
    Body(BoxError),
}

impl Outgoing {
    /// The next bytes, and whether they are the last.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(Bytes, bool), BoxError>> {
        let frame = ready!(Pin::new(&mut *self.body).poll_frame(cx)).transpose()?;
        let Some(frame) = frame else { return Poll::Ready(self.end(&[])) };
        let data = match frame.into_data() {
            Ok(data) => data,
            Err(frame) => {
                let mut lines = Vec::new();
                trailers::write(&frame.into_trailers().unwrap_or_default(), &self.promised, &mut lines);
                return Poll::Ready(self.end(&lines));
            }
        };
        if data.is_empty() {
            return Poll::Ready(Ok((data, false)));
        }
        Poll::Ready(Ok(match &mut self.framing {
            Framing::Length(left) => {
                *left = left.checked_sub(data.len() as u64).ok_or("the body is longer than it said")?;
                (data, *left == 0 && self.body.is_end_stream())
            }
            Framing::Chunked => {
                let mut chunk = format!("{:X}\r\n", data.len()).into_bytes();
                chunk.extend_from_slice(&data);
                chunk.extend_from_slice(b"\r\n");
                let is_last = self.body.is_end_stream();
                if is_last {
                    chunk.extend_from_slice(b"0\r\n\r\n");
                }
                (chunk.into(), is_last)
            }
        }))
    }

    fn end(&self, trailers: &[u8]) -> Result<(Bytes, bool), BoxError> {
        match self.framing {
            Framing::Length(0) => Ok((Bytes::new(), true)),
            Framing::Length(_) => Err("the body is shorter than it said".into()),
            Framing::Chunked => Ok(([b"0\r\n", trailers, b"\r\n"].concat().into(), true)),
        }
    }
}

/// Room for the first line of most requests.
const LINE_BYTES: usize = 128;
