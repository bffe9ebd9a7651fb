//! The engine's process: writes events of 200 bytes into every live stream at a steady pace, each with the time at which it
//! was written. Plain sockets and two threads, so that it takes as little of the machine as it can. Run by `main`.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use crate::control;

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// Bytes of one event.
pub(crate) const EVENT_BYTES: usize = 200;

/// Live streams by the millisecond of the interval in which they get their event.
static SLOTS: Mutex<Vec<Vec<TcpStream>>> = Mutex::new(Vec::new());
/// Streams that only got their first event; kept open.
static IDLE: Mutex<Vec<TcpStream>> = Mutex::new(Vec::new());
static WRITES: AtomicBool = AtomicBool::new(false);
/// Events that a socket had no room for.
static MISSED: AtomicU64 = AtomicU64::new(0);
static WRITTEN: AtomicU64 = AtomicU64::new(0);

/// Serves `INTERVAL_MS` until the parent goes: each live stream gets an event every so many milliseconds, when told.
pub(crate) fn run(arguments: &[String]) -> ExitCode {
    let interval_ms: usize = arguments[0].parse().expect("the parent passes numbers");
    SLOTS.lock().expect("no holder panics").resize_with(interval_ms.max(1), Vec::new);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port is free");
    control::say(&listener.local_addr().expect("a bound listener has an address").port().to_string());
    thread::spawn(move || accept(&listener));
    thread::spawn(write);
    control::answer(|command| {
        match command {
            "run" => WRITES.store(true, Relaxed),
            "pause" => WRITES.store(false, Relaxed),
            _ => {}
        }
        format!("{} {}", WRITTEN.load(Relaxed), MISSED.load(Relaxed))
    })
}

fn accept(listener: &TcpListener) {
    let mut lives = 0;
    while let Ok((mut socket, _)) = listener.accept() {
        let Ok(is_live) = greet(&mut socket) else { continue };
        if is_live {
            let mut slots = SLOTS.lock().expect("no holder panics");
            let slot = lives % slots.len();
            slots[slot].push(socket);
            lives += 1;
        } else {
            IDLE.lock().expect("no holder panics").push(socket);
        }
    }
}

/// Reads the request, writes the head and the first event; returns whether the stream is a live one.
fn greet(socket: &mut TcpStream) -> std::io::Result<bool> {
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(Duration::from_secs(5)))?;
    let mut request = Vec::with_capacity(512);
    let mut part = [0; 512];
    while !request.ends_with(b"\r\n\r\n") {
        match socket.read(&mut part)? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            count => request.extend_from_slice(&part[..count]),
        }
    }
    socket.write_all(&[HEAD, &event()].concat())?;
    socket.set_nonblocking(true)?;
    Ok(request.starts_with(b"GET /live"))
}

fn write() {
    let step = Duration::from_millis(1);
    let (mut due, mut at) = (Instant::now(), 0);
    loop {
        due += step;
        let now = Instant::now();
        match due.checked_duration_since(now) {
            Some(early) => thread::sleep(early),
            // Held up for long: go on from here, not with a burst.
            None if now - due > 20 * step => due = now,
            None => {}
        }
        let mut slots = SLOTS.lock().expect("no holder panics");
        at = (at + 1) % slots.len();
        if !WRITES.load(Relaxed) {
            continue;
        }
        slots[at].retain_mut(|socket| match socket.write(&event()) {
            Ok(_) => {
                WRITTEN.fetch_add(1, Relaxed);
                true
            }
            Err(full) if full.kind() == ErrorKind::WouldBlock => {
                MISSED.fetch_add(1, Relaxed);
                true
            }
            Err(_) => false,
        });
    }
}

/// One event in its chunk, with the time of this moment.
fn event() -> Vec<u8> {
    let mut chunk = format!(
        "{EVENT_BYTES:x}\r\ndata: {{\"t\":\"{:016x}\",\"choices\":[{{\"delta\":{{\"content\":\"",
        control::monotonic_ns()
    )
    .into_bytes();
    let head = chunk.iter().position(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    const TAIL: &[u8] = b"\"}}]}\n\n";
    chunk.resize(head + EVENT_BYTES - TAIL.len(), b'x');
    chunk.extend_from_slice(TAIL);
    chunk.extend_from_slice(b"\r\n");
    chunk
}
