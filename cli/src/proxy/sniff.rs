//! A look at HTTP/1 heads as they are read, for what hyper does not hand on: how many `Content-Length` lines there were.
//!
//! hyper drops the second of two equal ones, and every one beside a `Transfer-Encoding`: safe, but another hop may have read
//! the same bytes otherwise, so the request is refused. Put around a connection by `server`, asked by `exchange`. It also sees
//! when hyper has written all that it had, and hands hyper what was read before it.
//!
//! What is pipelined into one read behind another request is not seen; hyper's own reading then stands.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::departure::Departure;

/// A connection whose heads are looked at.
#[derive(Debug)]
pub(super) struct Sniffed<I> {
    io: I,
    /// Read before hyper was there; to be read first.
    ahead: Bytes,
    heads: Arc<Heads>,
    departure: Arc<Departure>,
}

/// What was seen of the latest head.
#[derive(Debug, Default)]
pub(super) struct Heads(Mutex<Head>);

#[derive(Debug, Default)]
struct Head {
    /// The blank line has come: what follows is a body, until [`Heads::next`].
    is_over: bool,
    has_begun: bool,
    lengths: usize,
    /// Bytes of this line, the end of it aside.
    length: usize,
    /// Whether they begin like the name so far.
    is_like: bool,
}

impl Heads {
    /// How many `Content-Length` lines the head had.
    pub(super) fn content_lengths(&self) -> usize {
        self.lock().lengths
    }

    /// Whether the last request is whole.
    pub(super) fn is_between(&self) -> bool {
        !self.lock().is_over
    }

    /// The request is whole: what is read from now on is another head.
    pub(super) fn next(&self) {
        *self.lock() = Head::default();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Head> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Head {
    fn pass(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if self.is_over {
                return;
            }
            match byte {
                b'\r' => {}
                b'\n' => {
                    // A blank line before the first other one is not the head's end (RFC 9112 §2.2).
                    self.is_over = self.length == 0 && self.has_begun;
                    self.has_begun |= self.length > 0;
                    self.length = 0;
                }
                byte => {
                    let like = NAME.get(self.length).is_some_and(|name| byte.eq_ignore_ascii_case(name));
                    self.is_like = like && (self.length == 0 || self.is_like);
                    self.length += 1;
                    self.lengths += usize::from(self.is_like && self.length == NAME.len());
                }
            }
        }
    }
}

impl<I> Sniffed<I> {
    pub(super) fn new(io: I, ahead: Bytes, heads: Arc<Heads>, departure: Arc<Departure>) -> Self {
        Self { io, ahead, heads, departure }
    }

    /// The connection, and what is still to be read before it.
    pub(super) fn into_parts(self) -> (I, Bytes) {
        (self.io, self.ahead)
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Sniffed<I> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        if self.ahead.is_empty() {
            ready!(Pin::new(&mut self.io).poll_read(cx, buf))?;
        } else {
            let length = self.ahead.len().min(buf.remaining());
            buf.put_slice(&self.ahead.split_to(length));
        }
        self.heads.lock().pass(&buf.filled()[before..]);
        Poll::Ready(Ok(()))
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Sniffed<I> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.departure.writes();
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.departure.writes();
        Pin::new(&mut self.io).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.io).poll_flush(cx))?;
        self.departure.flushes();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

const NAME: &[u8] = b"content-length:";

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(bytes: &[u8], step: usize) -> usize {
        let mut head = Head::default();
        for chunk in bytes.chunks(step) {
            head.pass(chunk);
        }
        head.lengths
    }

    #[test]
    fn lines_are_counted_under_any_chunking_and_bodies_are_not_looked_at() {
        for step in [1, 3, 1000] {
            for (head, expected) in [
                ("POST / HTTP/1.1\r\nhost: a\r\n\r\n", 0),
                ("POST / HTTP/1.1\r\nContent-Length: 5\r\ncontent-LENGTH:5\r\n\r\n", 2),
                ("POST / HTTP/1.1\nx-content-length: 5\ncontent-lengths: 5\n\ncontent-length: 5\n", 0),
                ("POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n", 1),
            ] {
                assert_eq!(lengths(head.as_bytes(), step), expected, "{head:?} by {step}");
            }
        }
    }
}
