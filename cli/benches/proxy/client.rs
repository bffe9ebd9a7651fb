//! The client's process: opens every stream and notes for each event how long it was under way; `main` runs it when the
//! role says so. One thread, one shared read buffer, so that it takes as little of the machine as it can.

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

/// What stands before an event's time, and how many hexadecimal digits that has.
const MARK: &[u8] = b"data: {\"t\":\"";
const DIGITS: usize = 16;

/// Source addresses: 127.0.0.2 and the next ones, so that no address runs out of ports.
const SOURCES: usize = 4;

/// Streams between connect and first event at a time: no listener's backlog is smaller.
const OPENING_MAX: usize = 64;

/// What all streams have seen. Counters only: nothing is published through them.
#[derive(Default)]
struct Seen {
    opened: AtomicU64,
    ended: AtomicU64,
    events: AtomicU64,
    /// Bytes that came with or between events.
    bytes: AtomicU64,
    /// How long events were under way, in ns.
    under_way: Mutex<Option<Histogram<u32>>>,
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
        for index in 0..streams {
            let permit = Arc::clone(&opening).acquire_owned().await.expect("the semaphore is never closed");
            let seen = Arc::clone(&seen);
            tokio::spawn(async move {
                // Live ones are spread over the run of streams.
                let is_live = live > 0 && index % (streams / live) == 0 && index / (streams / live) < live;
                if let Err(problem) = hold(index, port, is_live, &seen, permit).await
                    && seen.ended.fetch_add(1, Relaxed) == 0
                {
                    eprintln!("proxy: a stream ended: {problem}");
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
                let fresh = Histogram::new_with_max(60_000_000_000, 3).expect("the bounds are valid");
                *self.under_way.lock().expect("no holder panics") = Some(fresh);
                String::from("0")
            }
            "late" => {
                let under_way = self.under_way.lock().expect("no holder panics").take().expect("reset came before");
                let [p50, p99, p99_9] = [0.5, 0.99, 0.999].map(|quantile| under_way.value_at_quantile(quantile));
                format!("{} {p50} {p99} {p99_9} {}", under_way.len(), under_way.max())
            }
            _ => {
                let [opened, ended, events, bytes] =
                    [&self.opened, &self.ended, &self.events, &self.bytes].map(|counter| counter.load(Relaxed));
                format!("{opened} {ended} {events} {bytes}")
            }
        }
    }

    /// Takes every whole event out of `bytes` and leaves what could be the beginning of one.
    fn take(&self, bytes: &mut Vec<u8>) {
        let now = control::monotonic_ns();
        let mut from = 0;
        while let Some(at) = memchr::memmem::find(&bytes[from..], MARK) {
            let digits = from + at + MARK.len()..from + at + MARK.len() + DIGITS;
            let Some(written) = bytes.get(digits.clone()) else {
                from += at;
                break;
            };
            let written = std::str::from_utf8(written).ok().and_then(|text| u64::from_str_radix(text, 16).ok());
            self.events.fetch_add(1, Relaxed);
            if let Some(under_way) = self.under_way.lock().expect("no holder panics").as_mut() {
                under_way.saturating_record(now.saturating_sub(written.unwrap_or(0)));
            }
            from = digits.end;
        }
        let kept =
            if bytes[from..].starts_with(MARK) { from } else { bytes.len().saturating_sub(MARK.len()).max(from) };
        bytes.drain(..kept);
    }
}

/// One stream's life. `opening` is held until its first event has come.
async fn hold(
    index: usize,
    port: u16,
    is_live: bool,
    seen: &Seen,
    opening: OwnedSemaphorePermit,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut socket = connect(index, port).await?;
    let path = if is_live { "/live" } else { "/idle" };
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n");
    socket.write_all(request.as_bytes()).await?;
    let mut rest = Vec::new();
    while memchr::memmem::find(&rest, MARK).is_none() {
        read_some(&socket, |bytes| rest.extend_from_slice(bytes)).await?;
        if rest.len() >= 12 && !rest.starts_with(b"HTTP/1.1 200") {
            return Err(String::from_utf8_lossy(&rest).into_owned().into());
        }
    }
    seen.opened.fetch_add(1, Relaxed);
    drop(opening);
    loop {
        seen.take(&mut rest);
        if rest.is_empty() {
            rest = Vec::new(); // thousands of them
        }
        let count = read_some(&socket, |bytes| rest.extend_from_slice(bytes)).await?;
        seen.bytes.fetch_add(count as u64, Relaxed);
    }
}

/// Connects from one of the source addresses.
pub(crate) async fn connect(index: usize, port: u16) -> std::io::Result<TcpStream> {
    let source = Ipv4Addr::new(127, 0, 0, 2 + (index % SOURCES) as u8);
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::from((source, 0)))?;
    // A reset instead of a farewell at the end: thousands of closed ports must not wait when the next part connects.
    socket.set_zero_linger()?;
    let connected = socket.connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    tokio::time::timeout(Duration::from_secs(30), connected).await?
}

/// Waits for bytes and hands them over; returns how many.
pub(crate) async fn read_some(socket: &TcpStream, mut take: impl FnMut(&[u8])) -> std::io::Result<usize> {
    loop {
        socket.readable().await?;
        let read: std::io::Result<usize> = BUFFER.with_borrow_mut(|buffer| {
            let count = socket.try_read(buffer)?;
            take(&buffer[..count]);
            Ok(count)
        });
        match read {
            Ok(0) => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => return Ok(count),
            Err(early) if early.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(problem) => return Err(problem),
        }
    }
}
