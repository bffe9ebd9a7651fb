//! Streams over HTTP/2, many on a connection. Called by `client`; one pool a worker.
//!
//! A connection takes streams up to the plan's number, or to the server's own limit where that is lower: the rest open
//! further connections instead of waiting where nobody would see them wait.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use h2::client::{Builder, SendRequest};
use h2::{RecvStream, SendStream};
use tokio::sync::watch;

use super::head::format_of;
use super::record::Record;
use super::worker::Worker;
use super::{Failure, Target};

/// A worker's connections.
#[derive(Debug)]
pub(super) struct Pool {
    streams_max: usize,
    lines: Mutex<Lines>,
}

#[derive(Debug, Default)]
struct Lines {
    all: Vec<Arc<Line>>,
    begun: usize,
}

/// One connection.
#[derive(Debug)]
struct Line {
    standing: watch::Sender<Standing>,
    requests: OnceLock<SendRequest<Bytes>>,
    taken: Mutex<usize>,
}

/// How a connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// Being made. Left for `Open` or `Over`.
    Connecting,
    /// Takes so many streams. Left for `Over`.
    Open { streams_max: usize },
    /// Takes none any more; why, if it never did.
    Over(Failure),
}

/// A stream's place on a connection; given back when dropped.
#[derive(Debug)]
struct Seat {
    line: Arc<Line>,
    number: usize,
}

/// A response whose body is being read.
#[derive(Debug)]
pub(super) struct Body {
    received: RecvStream,
    /// Dropped before the body's end it would tell the server that nobody listens.
    _sent: SendStream<Bytes>,
    _seat: Seat,
}

impl Body {
    /// Takes a place, sends the request and waits for the response's head.
    pub(super) async fn open(worker: &Arc<Worker>, target: Target, record: &mut Record) -> Result<Self, Failure> {
        let early = |_: h2::Error| Failure::ClosedBeforeHeaders;
        let over = target.body.is_empty();
        let mut tries = 0;
        let (seat, (response, mut sent)) = loop {
            let seat = seat(worker).await?;
            if tries == 0 {
                record.connected();
            }
            tries += 1;
            // A place is given on an open connection only, and that has its handle.
            let requests = seat.line.requests.get().cloned().ok_or(Failure::ClosedBeforeHeaders)?;
            let sent = match requests.ready().await {
                Ok(mut requests) => requests.send_request(worker.requests.http2(&target), over),
                Err(error) => Err(error),
            };
            match sent {
                Ok(sent) => break (seat, sent),
                // The server takes no more on this connection, as many do after a thousand requests; nothing was sent.
                Err(_) if tries < TRIES_MAX => {
                    seat.line.standing.send_replace(Standing::Over(Failure::ClosedBeforeHeaders));
                }
                Err(error) => return Err(early(error)),
            }
        };
        if !over {
            sent.send_data(target.body, true).map_err(early)?;
        }
        let response = response.await.map_err(early)?;
        if !response.status().is_success() {
            return Err(Failure::Status(response.status().as_u16()));
        }
        record.opened(format_of(response.headers()));
        Ok(Self { received: response.into_body(), _sent: sent, _seat: seat })
    }

    /// Reads what has arrived; everything taken in one go has the same time.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        worker: &Worker,
        record: &mut Record,
    ) -> Poll<Result<(), Failure>> {
        let mut arrived_ns = None;
        loop {
            match self.received.poll_data(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => return Poll::Ready(Ok(())),
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(of_body(&error))),
                Poll::Ready(Some(Ok(data))) => {
                    let now_ns = *arrived_ns.get_or_insert_with(|| worker.phases.now_ns());
                    // Fails for a stream that is over, which the next poll says.
                    let _ = self.received.flow_control().release_capacity(data.len());
                    record.arrived(now_ns, &data)?;
                }
            }
        }
    }
}

impl Pool {
    /// Creates an empty pool whose connections take up to `streams_max` streams.
    pub(super) fn new(streams_max: usize) -> Self {
        Self { streams_max, lines: Mutex::default() }
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            standing: watch::Sender::new(Standing::Connecting),
            requests: OnceLock::new(),
            taken: Mutex::new(0),
        })
    }

    fn taken(&self) -> MutexGuard<'_, usize> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place, if there is one as far as is known.
    fn take(self: &Arc<Self>, planned_max: usize) -> Option<Seat> {
        let streams_max = match *self.standing.borrow() {
            Standing::Connecting => planned_max,
            Standing::Open { streams_max } => streams_max,
            Standing::Over(_) => 0,
        };
        let mut taken = self.taken();
        if *taken >= streams_max {
            return None;
        }
        *taken += 1;
        Some(Seat { line: Arc::clone(self), number: *taken })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        *self.line.taken() -= 1;
    }
}

/// Finds a place for a stream, opening a connection when all are full.
async fn seat(worker: &Arc<Worker>) -> Result<Seat, Failure> {
    loop {
        let mut begun = None;
        let seat = {
            let mut lines = worker.pool.lines();
            let planned_max = worker.pool.streams_max;
            // The youngest first: while streams are opened, only that one has places.
            match lines.all.iter().rev().find_map(|line| line.take(planned_max)) {
                Some(seat) => seat,
                None => {
                    lines.all.retain(|line| !matches!(*line.standing.borrow(), Standing::Over(_)));
                    let line = Line::new();
                    lines.all.push(Arc::clone(&line));
                    begun = Some((Arc::clone(&line), lines.begun));
                    lines.begun += 1;
                    *line.taken() += 1;
                    Seat { line, number: 1 }
                }
            }
        };
        if let Some((line, number)) = begun {
            tokio::spawn(run(Arc::clone(worker), line, number));
        }
        let mut standing = seat.line.standing.subscribe();
        let standing = standing.wait_for(|standing| *standing != Standing::Connecting).await;
        match standing.map(|standing| *standing) {
            Ok(Standing::Open { streams_max: 0 }) => return Err(Failure::ClosedBeforeHeaders),
            // The server takes fewer than were planned: the others go on to a further connection.
            Ok(Standing::Open { streams_max }) if seat.number > streams_max => {}
            Ok(Standing::Over(failure)) => return Err(failure),
            Ok(_) => return Ok(seat),
            Err(_) => return Err(Failure::ClosedBeforeHeaders),
        }
    }
}

/// Makes one connection and runs it to its end.
async fn run(worker: Arc<Worker>, line: Arc<Line>, number: usize) {
    let failure = match connection(&worker, &line, number).await {
        Ok(()) => Failure::ClosedBeforeHeaders,
        Err(failure) => failure,
    };
    line.standing.send_replace(Standing::Over(failure));
}

async fn connection(worker: &Worker, line: &Line, number: usize) -> Result<(), Failure> {
    // Spread over the sources as one worker's share of all connections.
    let wire = worker.dial.connect(&worker.plan, number * worker.plan.workers + worker.number).await?;
    let (requests, mut connection) = Builder::new()
        .initial_max_send_streams(0)
        .enable_push(false)
        .initial_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_header_list_size(HEAD_BYTES_MAX)
        .handshake(wire)
        .await
        .map_err(|error| of_handshake(&error))?;
    // Set once, by this task, before anybody is told that the connection stands.
    let _ = line.requests.set(requests);
    let planned_max = worker.pool.streams_max;
    let mut told = false;
    std::future::poll_fn(|cx| {
        let polled = std::pin::Pin::new(&mut connection).poll(cx);
        // No stream was allowed before the server's settings, so any number is theirs.
        let streams_max = connection.max_concurrent_send_streams();
        if !told && streams_max > 0 {
            told = true;
            line.standing.send_replace(Standing::Open { streams_max: planned_max.min(streams_max) });
        }
        polled
    })
    .await
    .map_err(|error| of_handshake(&error))
}

/// Names the failure of a connection before it took streams.
fn of_handshake(error: &h2::Error) -> Failure {
    if error.is_io() || error.is_remote() { Failure::ClosedBeforeHeaders } else { Failure::NotHttp }
}

/// Names the failure of a response whose body was being read.
fn of_body(error: &h2::Error) -> Failure {
    if let Some(io) = error.get_io() {
        return match io.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe => Failure::CutClosed,
            _ => Failure::CutReset,
        };
    }
    if error.is_reset() {
        Failure::CutReset
    } else if error.is_go_away() {
        Failure::CutClosed
    } else {
        Failure::NotHttpBody
    }
}

/// Connections that a stream tries before one takes it.
const TRIES_MAX: u32 = 3;

/// A stream is read as fast as it comes; this much may be under way.
const STREAM_WINDOW_BYTES: u32 = 256 * 1024;

/// The same for all streams of a connection.
const CONNECTION_WINDOW_BYTES: u32 = 16 * 1024 * 1024;

/// The longest head read.
const HEAD_BYTES_MAX: u32 = 64 * 1024;
