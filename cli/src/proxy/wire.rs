//! One HTTP/1.1 connection to an engine: writes a request, reads its answer. Made and kept by `direct`; polled by the task of
//! the answer that it carries, so that an event wakes no second one.
//!
//! A library's connection keeps buffers for as long as it lives and a channel to a task of its own: 35 kB for each stream.
//! Here what has arrived is read into one buffer a thread and handed on, and a connection that waits keeps nothing.

use std::cell::RefCell;
use std::io;
use std::mem::{self, MaybeUninit};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderMap, Method};
use http_body::{Frame, SizeHint};
use socket2::SockRef;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::TcpStream;
use tokio::runtime::{Handle, Id};

use super::reply::{self, NotHttp, Reply};
use super::sending::{Sending, Unsent};
use crate::framing::{Framing, Lines, Part};
use heartline::BoxError;

/// The connection.
#[derive(Debug)]
pub(super) struct Wire {
    socket: TcpStream,
    /// The runtime that hears of the socket.
    home: Id,
    /// The request, until all of it is written.
    sending: Option<Box<Sending>>,
    /// Bytes that were read and not used yet: part of a head, or what came behind one.
    rest: Vec<u8>,
    /// The lines behind the last chunk.
    trailers: Vec<u8>,
    framing: Framing,
    state: State,
}

/// How far an exchange has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Between two exchanges. Goes to `Asked`.
    Idle,
    /// The answer's head has not come. Goes to `Body`.
    Asked,
    /// The answer is being read; the connection can be used again behind it, or not. Goes to `Over`.
    Body { is_kept: bool },
    /// All was read and handed on. Goes to `Idle`.
    Over { is_kept: bool },
}

impl Wire {
    /// A connection that was just opened by this runtime.
    pub(super) fn new(socket: TcpStream) -> Self {
        Self {
            socket,
            home: Handle::current().id(),
            sending: None,
            rest: Vec::new(),
            trailers: Vec::new(),
            framing: Framing::UntilClose,
            state: State::Idle,
        }
    }

    /// Whether the next request may go over it: the last answer is read and nothing came behind it.
    pub(super) fn is_free(&self) -> bool {
        matches!(self.state, State::Idle | State::Over { is_kept: true })
            && self.sending.is_none()
            && self.rest.is_empty()
    }

    /// Makes an idle connection ready for another request, and this runtime's.
    ///
    /// # Errors
    ///
    /// It is not good any more.
    pub(super) fn revive(&mut self) -> io::Result<()> {
        // Nobody polls an idle connection: what the engine did meanwhile shows now. Anything, the end included, is too much.
        match SockRef::from(&self.socket).peek(&mut [MaybeUninit::uninit()]) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
            Ok(_) => return Err(io::ErrorKind::ConnectionAborted.into()),
        }
        let here = Handle::current().id();
        if self.home != here {
            // Else each event would wake the thread that opened it, only to wake this one.
            let socket = SockRef::from(&self.socket).try_clone()?.into();
            self.socket = TcpStream::from_std(socket)?;
            self.home = here;
        }
        Ok(())
    }

    /// Sends the request on and waits for the head of its answer. What was written of the request is noted in it.
    ///
    /// # Errors
    ///
    /// The socket's, the body's, and an answer that is none. The connection is then of no use.
    pub(super) fn poll_reply(
        &mut self,
        cx: &mut Context<'_>,
        sending: &mut Option<Box<Sending>>,
        method: &Method,
    ) -> Poll<Result<http::response::Parts, BoxError>> {
        self.state = State::Asked;
        let mut refused = None;
        if let Some(unsent) = sending {
            match unsent.poll(cx, &mut self.socket) {
                Poll::Pending => {}
                Poll::Ready(Ok(())) => *sending = None,
                Poll::Ready(Err(Unsent::Body(error))) => return Poll::Ready(Err(error)),
                Poll::Ready(Err(Unsent::Socket(error))) => refused = Some(error),
            }
        }
        loop {
            let read = BUFFER.with_borrow_mut(|buffer| {
                let mut buffer = ReadBuf::new(buffer);
                ready!(Pin::new(&mut self.socket).poll_read(cx, &mut buffer))?;
                Poll::Ready(self.head_in(buffer.filled(), method))
            });
            match read {
                // What cannot be sent may have been answered before; if not, it never will be.
                Poll::Pending => return refused.map_or(Poll::Pending, |error| Poll::Ready(Err(error.into()))),
                Poll::Ready(Ok(None)) => {}
                Poll::Ready(Ok(Some(reply))) => {
                    // Where the engine takes no more, the connection is done with once the answer is read.
                    let is_kept = reply.is_kept && refused.is_none();
                    self.framing = reply.framing;
                    self.state =
                        if reply.framing.is_over() { State::Over { is_kept } } else { State::Body { is_kept } };
                    self.sending = sending.take().filter(|_| refused.is_none());
                    return Poll::Ready(Ok(reply.head));
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(refused.map_or(error, Into::into))),
            }
        }
    }

    /// Looks for a whole head in what was read so far and `more`; keeps what is left.
    fn head_in(&mut self, more: &[u8], method: &Method) -> Result<Option<Reply>, BoxError> {
        if more.is_empty() {
            return Err(ended());
        }
        let parsed = if self.rest.is_empty() {
            let parsed = Reply::parse(more, method)?;
            self.rest.extend_from_slice(&more[parsed.as_ref().map_or(0, |reply| reply.bytes)..]);
            parsed
        } else {
            self.rest.extend_from_slice(more);
            // Half a line more cannot end a head: one that drips is not read from its beginning for each byte.
            if !more.contains(&b'\n') {
                None
            } else {
                let parsed = Reply::parse(&self.rest, method)?;
                if let Some(reply) = &parsed {
                    self.rest.drain(..reply.bytes);
                }
                parsed
            }
        };
        match &parsed {
            Some(_) if self.rest.is_empty() => self.rest = Vec::new(), // an answer that waits keeps no buffer
            None if self.rest.len() > HEAD_BYTES_MAX => return Err(NotHttp("its head is too long").into()),
            _ => {}
        }
        Ok(parsed)
    }

    /// The next part of the answer's body; the request is sent on meanwhile.
    ///
    /// # Errors
    ///
    /// The engine broke off, or what it sent is not framed as it said; or the client broke off its request.
    pub(super) fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(sending) = &mut self.sending {
            match sending.poll(cx, &mut self.socket) {
                Poll::Pending => {}
                Poll::Ready(Ok(())) => self.sending = None,
                Poll::Ready(Err(Unsent::Body(error))) => return Poll::Ready(Some(Err(error))),
                Poll::Ready(Err(Unsent::Socket(_))) => {
                    self.sending = None; // the answer may be whole all the same
                    self.state = State::Body { is_kept: false };
                }
            }
        }
        // Bounded: a turn without a return took part of the head of a chunk, whose length is bounded.
        while let State::Body { is_kept } = self.state {
            let data = if self.rest.is_empty() {
                match ready!(self.poll_data(cx)) {
                    Ok(data) => data,
                    Err(error) => return Poll::Ready(Some(Err(error))),
                }
            } else {
                let rest = mem::take(&mut self.rest);
                match self.decode(&rest) {
                    Ok(data) => data,
                    Err(error) => return Poll::Ready(Some(Err(error.into()))),
                }
            };
            if self.framing.is_over() {
                self.state = State::Over { is_kept };
            }
            if let Some(data) = data {
                return Poll::Ready(Some(Ok(Frame::data(data))));
            }
        }
        Poll::Ready(self.trailing())
    }

    /// Reads once.
    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, BoxError>> {
        BUFFER.with_borrow_mut(|buffer| {
            let mut buffer = ReadBuf::new(buffer);
            ready!(Pin::new(&mut self.socket).poll_read(cx, &mut buffer))?;
            if !buffer.filled().is_empty() {
                return Poll::Ready(self.decode(buffer.filled()).map_err(Into::into));
            }
            if !self.framing.may_end() {
                return Poll::Ready(Err(ended()));
            }
            self.state = State::Over { is_kept: false };
            Poll::Ready(Ok(None))
        })
    }

    /// The data in `bytes`, in one piece; what is behind the body's end is kept.
    fn decode(&mut self, mut bytes: &[u8]) -> Result<Option<Bytes>, NotHttp> {
        const REFUSED: NotHttp = NotHttp("its body is not framed as it should be");
        let mut all: Option<&[u8]> = None;
        let mut joined = Vec::new();
        loop {
            let part = match self.framing.next(Lines::Crlf, &mut bytes) {
                Ok(part) => part,
                Err(_) if all.is_none() => return Err(REFUSED),
                Err(_) => Part::End, // what is right goes out first; what is wrong is found again
            };
            match part {
                Part::Data(data) => match all.replace(data) {
                    None => {}
                    Some(before) => {
                        if joined.is_empty() {
                            joined.reserve_exact(before.len() + data.len() + bytes.len());
                            joined.extend_from_slice(before);
                        }
                        joined.extend_from_slice(data);
                    }
                },
                Part::Trailer(lines) => self.trailers.extend_from_slice(lines),
                Part::End => {
                    self.rest.extend_from_slice(bytes); // behind the end it keeps the connection from being used again
                    break;
                }
                Part::Starved => break,
            }
        }
        if !joined.is_empty() {
            return Ok(Some(joined.into()));
        }
        Ok(all.map(Bytes::copy_from_slice))
    }

    /// What follows the body's data: the trailers, once, or nothing.
    fn trailing(&mut self) -> Option<Result<Frame<Bytes>, BoxError>> {
        if self.trailers.is_empty() {
            return None;
        }
        let fields: Result<HeaderMap, _> = reply::trailers(mem::take(&mut self.trailers));
        Some(fields.map(Frame::trailers).map_err(Into::into))
    }

    /// Whether the answer has been read and handed on to its end.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.state, State::Over { .. }) && self.trailers.is_empty()
    }

    /// How much of the answer is still to come.
    pub(super) fn size_hint(&self) -> SizeHint {
        match self.framing {
            Framing::Length(left) => SizeHint::with_exact(left),
            Framing::Chunked(_) | Framing::UntilClose if self.is_over() => SizeHint::with_exact(0),
            Framing::Chunked(_) | Framing::UntilClose => SizeHint::default(),
        }
    }
}

fn ended() -> BoxError {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the engine closed the connection before its answer was whole").into()
}

thread_local! {
    /// Where every connection of a thread reads to: taken for one read, across no await.
    static BUFFER: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ_BYTES].into_boxed_slice());
}

/// The most that is taken from an engine at a time. A read shorter than this tells tokio that the socket is empty, which
/// saves asking again.
const READ_BYTES: usize = 64 * 1024;
/// The longest head of an answer.
const HEAD_BYTES_MAX: usize = 128 * 1024;
