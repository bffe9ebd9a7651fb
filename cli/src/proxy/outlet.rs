//! A live stream's way to its HTTP/1.1 client: once the head of its answer is out, the connection is the stream's own until
//! the stream ends. Made by `server`, which takes the connection away from hyper for it and gives it back afterwards.
//!
//! hyper keeps a buffer of 8 kB for each direction of a connection, and runs its state machines for each event. A stream
//! needs neither: what it has to say goes through one buffer a thread into the socket, and only what the socket does not take
//! is kept.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderName;
use http_body::{Body, Frame};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::config::HalfClose;
use super::departure::Stream;
use super::relay::Relay;
use super::trailers;

/// A stream at work on its connection. Resolves when the stream is over and all of it is written.
#[derive(Debug)]
pub(super) struct Outlet<I> {
    io: I,
    stream: Option<Box<Relay>>,
    promised: Vec<HeaderName>,
    /// What the client's socket has not taken yet.
    rest: Bytes,
    is_flushed: bool,
    /// What the client sent meanwhile, for hyper to read.
    ahead: Vec<u8>,
    half_close: HalfClose,
    end: End,
}

/// How the connection goes on behind the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The next request may be answered.
    Again,
    /// It is to be closed.
    Close,
    /// The stream broke off: its connection must not look as if it had ended well.
    Broken,
}

impl<I: AsyncRead + AsyncWrite + Unpin> Outlet<I> {
    /// `ahead` is what the client had sent behind its request.
    pub(super) fn new(io: I, stream: Stream, ahead: Vec<u8>, half_close: HalfClose) -> Self {
        let Stream { relay, promised, end } = stream;
        let (stream, rest, ahead) = (Some(relay), Bytes::new(), ahead);
        Self { io, stream, promised, rest, is_flushed: true, ahead, half_close, end }
    }

    /// Closes the connection behind the stream.
    pub(super) fn finish(&mut self) {
        if self.end == End::Again {
            self.end = End::Close;
        }
    }

    /// The connection, and what was read of it.
    pub(super) fn into_parts(self) -> (I, Bytes) {
        (self.io, self.ahead.into())
    }

    /// Takes what the stream has to say, as far as it fits into one write; whether there may be more at once.
    fn fill(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> More {
        while let Some(stream) = &mut self.stream {
            if out.len() >= WRITE_BYTES {
                return More::Now;
            }
            let frame = match Pin::new(&mut **stream).poll_frame(cx) {
                Poll::Pending => return More::Later,
                Poll::Ready(Some(Ok(frame))) => frame,
                Poll::Ready(Some(Err(_))) => {
                    self.end = End::Broken;
                    self.stream = None;
                    break;
                }
                Poll::Ready(None) => {
                    out.extend_from_slice(LAST_CHUNK);
                    self.stream = None;
                    break;
                }
            };
            match frame.into_data() {
                Ok(data) if data.is_empty() => {}
                Ok(data) => {
                    write_chunk(&data, out);
                    if stream.is_end_stream() {
                        out.extend_from_slice(LAST_CHUNK);
                        self.stream = None;
                    }
                }
                Err(frame) => {
                    self.write_trailers(frame, out);
                    self.stream = None;
                }
            }
        }
        More::Never
    }

    fn write_trailers(&self, frame: Frame<Bytes>, out: &mut Vec<u8>) {
        out.extend_from_slice(b"0\r\n");
        if let Ok(fields) = frame.into_trailers() {
            trailers::write(&fields, &self.promised, out);
        }
        out.extend_from_slice(b"\r\n");
    }

    /// Writes `out`; keeps what the socket does not take.
    fn write(&mut self, cx: &mut Context<'_>, mut out: &[u8]) -> io::Result<()> {
        while !out.is_empty() {
            match Pin::new(&mut self.io).poll_write(cx, out) {
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(written)) => out = &out[written..],
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Pending => {
                    self.rest = Bytes::copy_from_slice(out);
                    if let Some(stream) = &self.stream {
                        stream.held_up();
                    }
                    break;
                }
            }
        }
        self.is_flushed = false;
        Ok(())
    }

    /// Writes what is left of earlier.
    fn poll_rest(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.rest.is_empty() {
            let written = ready!(Pin::new(&mut self.io).poll_write(cx, &self.rest))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.rest = self.rest.split_off(written);
            if let Some(stream) = &self.stream {
                stream.held_up(); // from now on, again
            }
        }
        self.rest = Bytes::new();
        if !self.is_flushed {
            ready!(Pin::new(&mut self.io).poll_flush(cx))?;
            self.is_flushed = true;
        }
        Poll::Ready(Ok(()))
    }

    /// Ready when the client is gone. What it sends before its answer is over is kept, up to a bound.
    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        // Bounded by what is kept.
        while self.half_close == HalfClose::Abort && self.ahead.len() < AHEAD_BYTES_MAX {
            let mut bytes = [0; AHEAD_STEP];
            let mut bytes = ReadBuf::new(&mut bytes);
            match ready!(Pin::new(&mut self.io).poll_read(cx, &mut bytes)) {
                Ok(()) if !bytes.filled().is_empty() => self.ahead.extend_from_slice(bytes.filled()),
                Ok(()) | Err(_) => return Poll::Ready(()),
            }
        }
        Poll::Pending
    }
}

impl<I: AsyncRead + AsyncWrite + Unpin> Future for Outlet<I> {
    type Output = io::Result<End>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<End>> {
        let this = self.get_mut();
        loop {
            ready!(this.poll_rest(cx))?;
            if this.stream.is_none() {
                return Poll::Ready(Ok(this.end));
            }
            let mut out = OUT.take();
            let more = this.fill(cx, &mut out);
            let written = this.write(cx, &out);
            out.clear();
            OUT.set(out);
            written?;
            if more == More::Later {
                ready!(this.poll_rest(cx))?;
                ready!(this.poll_gone(cx));
                return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
            }
        }
    }
}

/// Whether a stream has more to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum More {
    Now,
    Later,
    Never,
}

fn write_chunk(data: &[u8], out: &mut Vec<u8>) {
    let mut digits = [0; 16];
    let mut at = digits.len();
    let mut length = data.len();
    // Bounded by the digits of a length.
    while length > 0 {
        at -= 1;
        digits[at] = b"0123456789ABCDEF"[length % 16];
        length /= 16;
    }
    out.extend_from_slice(&digits[at..]);
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(data);
    out.extend_from_slice(b"\r\n");
}

thread_local! {
    /// What a stream has to say on its way to the socket: taken for one poll, across no await.
    static OUT: Cell<Vec<u8>> = Cell::new(Vec::with_capacity(WRITE_BYTES));
}

const LAST_CHUNK: &[u8] = b"0\r\n\r\n";
/// What is gathered for one write, and a frame more.
const WRITE_BYTES: usize = 32 * 1024;
/// What a client may send before its answer is over; the rest waits in the kernel.
const AHEAD_BYTES_MAX: usize = 8 * 1024;
const AHEAD_STEP: usize = 1024;
