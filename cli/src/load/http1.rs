//! One stream over HTTP/1.1 on a connection of its own. Called by `client`.
//!
//! A library's connection keeps a read buffer a stream, 8 KB at least; here what has arrived is read into one buffer a
//! thread, measured and forgotten, so that a silent stream takes no buffer at all.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::Method;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, ReadBuf};

use super::dial::Wire;
use super::head::Head;
use super::record::Record;
use super::worker::Worker;
use super::{Failure, Target};
use crate::framing::{Framing, Lines, Part};

/// A response whose body is being read.
#[derive(Debug)]
pub(super) struct Body {
    wire: Wire,
    framing: Framing,
}

/// A body, and the part of it that came with the head.
type Begun = (Body, Vec<u8>);

impl Body {
    /// Connects, sends the request and reads the response's head; `None` when the body is over with it.
    pub(super) async fn open(
        worker: &Worker,
        number: usize,
        target: Target,
        record: &mut Record,
    ) -> Result<Begun, Failure> {
        let mut wire = worker.dial.connect(&worker.plan, number).await?;
        record.connected();
        let request = worker.requests.http1(&target);
        // The server may answer before it has read all, and close: its answer tells more than this error.
        let sent = wire.write_all(&request).await;
        let sent = if sent.is_ok() { wire.flush().await } else { sent };
        drop(request);
        let (head, rest) = read_head(&mut wire, worker.requests.method()).await.map_err(|failure| match sent {
            Err(_) => Failure::ClosedBeforeHeaders,
            Ok(()) => failure,
        })?;
        if !head.status.is_success() {
            return Err(Failure::Status(head.status.as_u16()));
        }
        record.opened(head.format);
        Ok((Self { wire, framing: head.framing }, rest))
    }

    /// Measures what came with the head.
    pub(super) fn begin(&mut self, rest: &[u8], worker: &Worker, record: &mut Record) -> Poll<Result<(), Failure>> {
        take(&mut self.framing, rest, worker.phases.now_ns(), record)
    }

    /// Reads what has arrived; everything taken in one go has the same time.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        worker: &Worker,
        record: &mut Record,
    ) -> Poll<Result<(), Failure>> {
        BUFFER.with_borrow_mut(|buffer| {
            loop {
                let mut buffer = ReadBuf::new(buffer);
                match Pin::new(&mut self.wire).poll_read(cx, &mut buffer) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(of_read(&error))),
                    Poll::Ready(Ok(())) if buffer.filled().is_empty() => {
                        let over = self.framing.may_end();
                        return Poll::Ready(if over { Ok(()) } else { Err(Failure::CutClosed) });
                    }
                    Poll::Ready(Ok(())) => {
                        let now_ns = worker.phases.now_ns();
                        let taken = take(&mut self.framing, buffer.filled(), now_ns, record);
                        if taken.is_ready() {
                            return taken;
                        }
                    }
                }
            }
        })
    }
}

/// Measures bytes of the connection; ready when the body is over.
fn take(framing: &mut Framing, mut bytes: &[u8], now_ns: u64, record: &mut Record) -> Poll<Result<(), Failure>> {
    loop {
        match framing.next(Lines::CrlfOrLf, &mut bytes) {
            Ok(Part::Data(data)) => {
                if let Err(failure) = record.arrived(now_ns, data) {
                    return Poll::Ready(Err(failure));
                }
            }
            Ok(Part::End) => return Poll::Ready(Ok(())),
            Ok(Part::Trailer(_)) => {}
            Ok(Part::Starved) => return Poll::Pending,
            Err(_) => return Poll::Ready(Err(Failure::NotHttpBody)),
        }
    }
}

/// Reads the head; returns it with what came after it.
async fn read_head(wire: &mut Wire, method: &Method) -> Result<(Head, Vec<u8>), Failure> {
    let mut bytes = Vec::with_capacity(HEAD_BYTES);
    loop {
        match wire.read_buf(&mut bytes).await {
            Ok(0) | Err(_) => return Err(Failure::ClosedBeforeHeaders),
            Ok(_) => {}
        }
        if let Some(head) = Head::parse(&bytes, method).map_err(|_| Failure::NotHttp)? {
            return Ok((head, bytes.split_off(head.bytes)));
        }
        if bytes.len() > HEAD_BYTES_MAX {
            return Err(Failure::NotHttp);
        }
    }
}

/// Names the failure of a read in the middle of a body.
fn of_read(error: &io::Error) -> Failure {
    match error.kind() {
        // TLS: the connection ended without the alert that says so.
        io::ErrorKind::UnexpectedEof => Failure::CutClosed,
        io::ErrorKind::InvalidData => Failure::NotHttpBody,
        _ => Failure::CutReset,
    }
}

thread_local! {
    /// Where every stream of a worker reads to: taken for one poll, across no await.
    static BUFFER: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ_BYTES].into_boxed_slice());
}

/// A read shorter than this tells tokio that the socket is empty, which saves asking again.
const READ_BYTES: usize = 64 * 1024;

/// Room for a usual head; given back with it.
const HEAD_BYTES: usize = 1_024;

/// The longest head read.
const HEAD_BYTES_MAX: usize = 64 * 1024;
