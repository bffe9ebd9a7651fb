//! A look at HTTP/1 requests as they are read, for what hyper does not hand on: whether a head told its body's length twice.
//!
//! hyper drops the second of two equal `Content-Length` lines, and every one beside a `Transfer-Encoding`: safe, but another
//! hop may have read the same bytes otherwise, so the request is refused. Put around a connection by `server`, asked by
//! `exchange`. It also sees when hyper has written all that it had, and hands hyper what was read before it.
//!
//! Requests come in one read with others before them, so their bodies are followed from head to head. Where that cannot be
//! done hyper refuses the request itself, and nothing behind it is read.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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

/// What was seen of a connection's heads.
#[derive(Debug, Default)]
pub(super) struct Heads(Mutex<Seen>);

/// How a head told its body's length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// In one way at most.
    Once,
    /// In several, which another hop may weigh otherwise.
    Twice,
}

#[derive(Debug, Default)]
struct Seen {
    place: Place,
    head: Head,
    /// How many heads are over, and how many have been asked about; hyper serves them in their order.
    over: u64,
    asked: u64,
    /// Whether the last one asked about is read to the end of its body.
    is_between: bool,
    /// The first that told its body's length twice. None behind it is served.
    twice: Option<u64>,
}

/// Where in the requests the next byte stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// In a head. Goes to `Body`, `Size`, `Lost` or the next head.
    #[default]
    Head,
    /// In a body of so many more bytes. Goes to `Head`.
    Body(u64),
    /// In the digits of a chunk's size. Goes to `SizeEnd`, `Data`, `Trailers` or `Lost`.
    Size(u64),
    /// Behind them. Goes to `Data` or `Trailers`.
    SizeEnd(u64),
    /// In a chunk of so many more bytes, the line end behind it included. Goes to `Size`.
    Data(u64),
    /// Behind the last chunk, in a line of so many bytes. Goes to `Head`.
    Trailers(u64),
    /// What follows is no request, or one that hyper refuses. Stays.
    Lost,
}

/// One head so far.
#[derive(Debug, Default)]
struct Head {
    has_begun: bool,
    lengths: usize,
    codings: usize,
    /// The value of the latest length.
    body: u64,
    /// Bytes of this line, the end of it aside.
    line: usize,
    /// Whether they begin like the names so far.
    like_length: bool,
    like_coding: bool,
}

impl Heads {
    /// How the next head told its body's length; to be asked once for each request.
    pub(super) fn next(&self) -> Told {
        let mut seen = self.lock();
        seen.asked += 1;
        seen.is_between = false;
        if seen.twice.is_some_and(|twice| twice < seen.asked) { Told::Twice } else { Told::Once }
    }

    /// Whether the last request that was asked about has been read to its end.
    pub(super) fn is_between(&self) -> bool {
        self.lock().is_between
    }

    /// It has.
    pub(super) fn ends(&self) {
        self.lock().is_between = true;
    }

    /// What is read from now on begins with a head, whatever was read before.
    pub(super) fn restart(&self) {
        *self.lock() = Seen::default();
    }

    /// What is read from now on is no request.
    pub(super) fn stop(&self) {
        self.lock().place = Place::Lost;
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    fn pass(&mut self, mut bytes: &[u8]) {
        // Bounded: every turn takes a byte.
        while let Some((&byte, rest)) = bytes.split_first() {
            self.place = match self.place {
                Place::Lost => return,
                Place::Body(left) | Place::Data(left) => {
                    let taken = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                    bytes = &bytes[taken..];
                    self.place = match (self.place, left - taken as u64) {
                        (Place::Body(_), 0) => Place::Head,
                        (Place::Body(_), left) => Place::Body(left),
                        (_, 0) => Place::Size(0),
                        (_, left) => Place::Data(left),
                    };
                    continue;
                }
                Place::Head => match self.head.pass(byte) {
                    false => Place::Head,
                    true => self.end_head(),
                },
                Place::Size(size) => match (byte, char::from(byte).to_digit(16)) {
                    (_, Some(digit)) => match size.checked_mul(16) {
                        Some(size) => Place::Size(size + u64::from(digit)),
                        None => Place::Lost,
                    },
                    (b'\n', _) => end_size(size),
                    _ => Place::SizeEnd(size),
                },
                Place::SizeEnd(size) if byte == b'\n' => end_size(size),
                Place::Trailers(0) if byte == b'\n' => Place::Head,
                Place::Trailers(_) if byte == b'\n' => Place::Trailers(0),
                Place::Trailers(line) if byte != b'\r' => Place::Trailers(line.saturating_add(1)),
                place @ (Place::SizeEnd(_) | Place::Trailers(_)) => place,
            };
            bytes = rest;
        }
    }

    fn end_head(&mut self) -> Place {
        let head = std::mem::take(&mut self.head);
        if head.lengths + head.codings.min(1) > 1 {
            self.twice = self.twice.or(Some(self.over));
        }
        self.over += 1;
        match (head.codings, head.body) {
            (1.., _) => Place::Size(0),
            (0, 0) => Place::Head,
            (0, u64::MAX) => Place::Lost,
            (0, length) => Place::Body(length),
        }
    }
}

/// Behind the line of a chunk's size: the chunk and its line end, or after the last one trailers.
fn end_size(size: u64) -> Place {
    if size == 0 { Place::Trailers(0) } else { Place::Data(size.saturating_add(2)) }
}

impl Head {
    /// Passes a byte; returns whether it was the head's last.
    fn pass(&mut self, byte: u8) -> bool {
        match byte {
            b'\r' => {}
            b'\n' => {
                // A blank line before the first other one is not the head's end (RFC 9112 §2.2).
                let is_over = self.line == 0 && self.has_begun;
                self.has_begun |= self.line > 0;
                self.line = 0;
                return is_over;
            }
            byte => {
                let is_like = |name: &[u8], before| {
                    (self.line == 0 || before)
                        && name.get(self.line).is_none_or(|letter| byte.eq_ignore_ascii_case(letter))
                };
                self.like_length = is_like(LENGTH, self.like_length);
                self.like_coding = is_like(CODING, self.like_coding);
                self.line += 1;
                if self.like_length && self.line == LENGTH.len() {
                    self.lengths += 1;
                    self.body = 0;
                } else if self.like_length && self.line > LENGTH.len() && byte.is_ascii_digit() {
                    // One that does not fit, or is no number, hyper refuses.
                    self.body = self.body.saturating_mul(10).saturating_add(u64::from(byte - b'0'));
                }
                self.codings += usize::from(self.like_coding && self.line == CODING.len());
            }
        }
        false
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

const LENGTH: &[u8] = b"content-length:";
const CODING: &[u8] = b"transfer-encoding:";

#[cfg(test)]
mod tests {
    use super::*;

    /// How the heads in `bytes` told their lengths, asked about when all has been read in pieces of `step`.
    fn told(bytes: &str, step: usize) -> Vec<Told> {
        let heads = Heads::default();
        for chunk in bytes.as_bytes().chunks(step) {
            heads.lock().pass(chunk);
        }
        let over = heads.lock().over;
        (0..over).map(|_| heads.next()).collect()
    }

    const GET: &str = "GET / HTTP/1.1\r\nhost: a\r\n\r\n";
    const TWICE: &str = "POST / HTTP/1.1\r\nContent-Length: 5\r\ncontent-LENGTH:5\r\n\r\nhello";
    const BOTH: &str = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n";
    const LENGTH: &str = "POST / HTTP/1.1\r\ncontent-length: 21\r\n\r\n\n\ncontent-length: 5\r\n";
    const CHUNKS: &str = "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n\
                          15;a=b\r\n\n\ncontent-length: 5\r\n\r\n2 \r\n\r\n\r\n000\r\ncontent-length: 5\r\nx: y\r\n\r\n";
    const LIKE: &str = "\r\nPOST / HTTP/1.1\nx-content-length: 5\ncontent-lengths: 5\ntransfer-encoding-x: 5\n\n";

    #[test]
    fn lengths_are_counted_under_any_chunking_behind_any_request() {
        for step in [1, 2, 3, 1000] {
            for before in [GET, LENGTH, CHUNKS, LIKE] {
                for (request, expected) in [
                    (GET, Told::Once),
                    (LENGTH, Told::Once),
                    (CHUNKS, Told::Once),
                    (TWICE, Told::Twice),
                    (BOTH, Told::Twice),
                ] {
                    let told = told(&format!("{before}{request}"), step);
                    assert_eq!(told, [Told::Once, expected], "{request:?} behind {before:?} by {step}");
                }
            }
        }
    }

    #[test]
    fn what_hyper_refuses_is_followed_no_further() {
        for broken in [
            "POST / HTTP/1.1\r\ncontent-length: 18446744073709551616\r\n\r\n",
            "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n10000000000000000\r\n",
        ] {
            assert_eq!(told(&format!("{broken}{BOTH}"), 7), [Told::Once], "{broken:?}");
        }
        let heads = Heads::default();
        heads.stop();
        heads.lock().pass(BOTH.as_bytes());
        assert_eq!(heads.next(), Told::Once, "a tunnel's bytes are no heads");
    }
}
