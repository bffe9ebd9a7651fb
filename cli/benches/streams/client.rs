//! The client's process: opens every stream from several loopback addresses and counts what arrives; `main` runs it when
//! the role says so. One thread, one shared read buffer, so that it takes as little of the machine as it can.

use std::cell::RefCell;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hdrhistogram::Histogram;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::control;
use crate::settings::INTERVAL;

/// One heartbeat on the wire, the same from every server.
const CHUNK: &[u8] = b"1\r\n\n\r\n";

/// Hexadecimal digits of a token's due time.
const TOKEN_DIGITS: usize = 16;

/// Source addresses: 127.0.0.2 and the next ones, so that no address runs out of ports.
const SOURCES: usize = 4;

/// Over how long the streams are opened: whole intervals, so that their beginnings, and with them the timers of servers that
/// have one per stream, are spread evenly over an interval, as those of independent users are.
const RAMP: Duration = INTERVAL.saturating_mul(2);

/// Streams between connect and first byte at a time: no listener's backlog is smaller.
const OPENING_MAX: usize = 128;

/// What all streams have seen. Counters only: nothing is published through them.
#[derive(Default)]
struct Seen {
    /// Streams whose first byte has come.
    opened: AtomicU64,
    /// Streams that ended or failed.
    ended: AtomicU64,
    /// Heartbeats, the first byte of each stream included.
    heartbeats: AtomicU64,
    /// Reads that held anything else on an idle stream.
    strange: AtomicU64,
    /// Lateness of tokens in µs.
    late: Mutex<Option<Histogram<u32>>>,
}

thread_local! {
    /// Where every stream reads to: the runtime has one thread, and no read waits while it holds the buffer.
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; 16 * 1024]);
}

/// Holds `PORT STREAMS LIVE` until the parent goes.
pub(crate) fn run(arguments: &[String]) -> ExitCode {
    let count = |place: usize| arguments[place].parse::<usize>().expect("the parent passes numbers");
    let (port, streams, live) = (count(0) as u16, count(1), count(2));
    let seen = Arc::new(Seen::default());
    let told = Arc::clone(&seen);
    std::thread::spawn(move || control::answer(|command| told.reply(command)));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    runtime.block_on(async {
        let opening = Arc::new(Semaphore::new(OPENING_MAX));
        let begun = tokio::time::Instant::now();
        for index in 0..streams {
            tokio::time::sleep_until(begun + RAMP.mul_f64(index as f64 / streams as f64)).await;
            let permit = Arc::clone(&opening).acquire_owned().await.expect("the semaphore is never closed");
            let seen = Arc::clone(&seen);
            tokio::spawn(async move {
                // Live ones are spread over the run of streams.
                let is_live = live > 0 && index % (streams / live) == 0 && index / (streams / live) < live;
                if let Err(problem) = hold(index, port, is_live, &seen, permit).await
                    && seen.ended.fetch_add(1, Relaxed) == 0
                {
                    eprintln!("streams: a stream ended: {problem}");
                }
            });
        }
        std::future::pending::<()>().await;
    });
    ExitCode::SUCCESS
}

impl Seen {
    fn reply(&self, command: &str) -> String {
        match command {
            "reset" => {
                let fresh = Histogram::new_with_max(60_000_000, 3).expect("the bounds are valid");
                *self.late.lock().expect("no holder panics") = Some(fresh);
                String::from("0")
            }
            "late" => {
                let late = self.late.lock().expect("no holder panics").take().expect("reset came before");
                let [p50, p99, p99_9] = [0.5, 0.99, 0.999].map(|quantile| late.value_at_quantile(quantile));
                format!("{} {p50} {p99} {p99_9} {}", late.len(), late.max())
            }
            _ => {
                let [opened, ended, heartbeats, strange] =
                    [&self.opened, &self.ended, &self.heartbeats, &self.strange].map(|counter| counter.load(Relaxed));
                format!("{opened} {ended} {heartbeats} {strange} {}", control::cpu().as_micros())
            }
        }
    }
}

/// One stream's life. `opening` is held until its first byte has come.
async fn hold(
    index: usize,
    port: u16,
    is_live: bool,
    seen: &Seen,
    opening: OwnedSemaphorePermit,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut socket = connect(index, port).await?;
    let path = if is_live { "/live" } else { "/idle" };
    socket
        .write_all(format!("GET {path} HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n").as_bytes())
        .await?;

    // Headers, then whatever of the body came with them.
    let mut rest = Vec::new();
    let body_at = loop {
        read_some(&socket, |bytes| rest.extend_from_slice(bytes)).await?;
        if let Some(at) = memchr::memmem::find(&rest, b"\r\n\r\n") {
            break at + 4;
        }
    };
    if !rest.starts_with(b"HTTP/1.1 200") {
        return Err("the answer was not 200".into());
    }
    rest.drain(..body_at);
    while rest.is_empty() {
        read_some(&socket, |bytes| rest.extend_from_slice(bytes)).await?;
    }
    seen.opened.fetch_add(1, Relaxed);
    drop(opening);

    if is_live {
        loop {
            seen.take_tokens(&mut rest);
            read_some(&socket, |bytes| rest.extend_from_slice(bytes)).await?;
        }
    }
    seen.take_heartbeats(&rest);
    drop(rest);
    loop {
        read_some(&socket, |bytes| seen.take_heartbeats(bytes)).await?;
    }
}

impl Seen {
    fn take_heartbeats(&self, bytes: &[u8]) {
        self.heartbeats.fetch_add((bytes.len() / CHUNK.len()) as u64, Relaxed);
        if !bytes.chunks(CHUNK.len()).all(|chunk| chunk == CHUNK) {
            self.strange.fetch_add(1, Relaxed);
        }
    }

    /// Takes every whole token out of `bytes` and notes how late it is against the time it was due.
    fn take_tokens(&self, bytes: &mut Vec<u8>) {
        const MARK: &[u8] = b"data: ";
        let mut from = 0;
        while let Some(at) = memchr::memmem::find(&bytes[from..], MARK) {
            let digits = from + at + MARK.len()..from + at + MARK.len() + TOKEN_DIGITS;
            let Some(due) = bytes.get(digits.clone()) else {
                from += at;
                break;
            };
            let due_ns = std::str::from_utf8(due).ok().and_then(|due| u64::from_str_radix(due, 16).ok()).unwrap_or(0);
            let late_us = control::monotonic_ns().saturating_sub(due_ns) / 1_000;
            if let Some(late) = self.late.lock().expect("no holder panics").as_mut() {
                late.saturating_record(late_us);
            }
            from = digits.end;
        }
        // A mark may be torn at the end: keep what could be its beginning.
        let kept =
            if bytes[from..].starts_with(MARK) { from } else { bytes.len().saturating_sub(MARK.len()).max(from) };
        bytes.drain(..kept);
    }
}

async fn connect(index: usize, port: u16) -> std::io::Result<TcpStream> {
    let source = Ipv4Addr::new(127, 0, 0, 2 + (index % SOURCES) as u8);
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::from((source, 0)))?;
    // A reset instead of a farewell at the end: thousands of closed ports must not wait when the next round connects.
    socket.set_zero_linger()?;
    let connected = socket.connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    tokio::time::timeout(Duration::from_secs(30), connected).await?
}

/// Waits for bytes and hands them over.
async fn read_some(socket: &TcpStream, mut take: impl FnMut(&[u8])) -> std::io::Result<()> {
    loop {
        socket.readable().await?;
        let read: std::io::Result<usize> = BUFFER.with_borrow_mut(|buffer| {
            let count = socket.try_read(buffer)?;
            take(&buffer[..count]);
            Ok(count)
        });
        match read {
            Ok(0) => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => return Ok(()),
            Err(early) if early.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(problem) => return Err(problem),
        }
    }
}
