//! A server that sends events at an even pace, each by a `send(2)` of its own and hence in a TCP segment of
//! its own, one to each connection in turn, so that a client which keeps up reads one event at a time.

#![expect(clippy::disallowed_types, reason = "a server that keeps pace by the wall clock")]

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Accepts so many connections, answers each request, then sends so many events a second to each, for ever.
pub(crate) fn run(arguments: &[String]) -> ExitCode {
    let connections: usize = arguments.first().and_then(|text| text.parse().ok()).unwrap_or(1);
    let pace: u64 = arguments.get(1).and_then(|text| text.parse().ok()).unwrap_or(1);
    match serve(connections, Duration::from_nanos(1_000_000_000 / pace.max(1))) {
        // The client went away: that is how a run ends.
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("flood: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(connections: usize, every: Duration) -> std::io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("listening on http://{}", listener.local_addr()?);
    let mut all = Vec::with_capacity(connections);
    for _ in 0..connections {
        let (mut stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        answer(&mut stream)?;
        stream.set_nonblocking(true)?;
        all.push(stream);
    }
    let event = chunk();
    let mut due = Instant::now();
    loop {
        due += every;
        let round = (due - every, every / u32::try_from(connections).unwrap_or(u32::MAX));
        for (number, stream) in (0..).zip(&mut all) {
            // Spread over the round, in steps that a timer can keep.
            if number % EVENTS_PER_STEP == 0 {
                wait_until(round.0 + round.1 * number);
            }
            match stream.write(&event) {
                Ok(sent) if sent == event.len() => {}
                // A client that does not keep up has a full buffer; half an event would tear the rest.
                Ok(sent) => finish(stream, &event[sent..])?,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => return Ok(()),
            }
        }
    }
}

fn wait_until(due: Instant) {
    let (_silent, waiting) = std::sync::mpsc::channel::<()>();
    if let Some(wait) = due.checked_duration_since(Instant::now()) {
        // Nobody sends: this only times out, which a bench may wait for.
        let _ = waiting.recv_timeout(wait);
    }
}

fn answer(stream: &mut TcpStream) -> std::io::Result<()> {
    let mut request = [0; 4_096];
    let mut read = 0;
    while !request[..read].windows(4).any(|window| window == b"\r\n\r\n") {
        match stream.read(&mut request[read..])? {
            0 => return Ok(()),
            more => read += more,
        }
    }
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
}

fn finish(stream: &mut TcpStream, rest: &[u8]) -> std::io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.write_all(rest)?;
    stream.set_nonblocking(true)
}

/// A chunk of an OpenAI stream, as engines send one for each token: about 200 bytes.
fn chunk() -> Vec<u8> {
    let event = concat!(
        "data: {\"id\":\"chatcmpl-0123456789abcdef\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,",
        "\"model\":\"llama\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" token\"},\"finish_reason\":null}]}\n\n"
    );
    format!("{:x}\r\n{event}\r\n", event.len()).into_bytes()
}

/// Events sent before the clock is looked at: few enough that a reader is not given a queue.
const EVENTS_PER_STEP: u32 = 20;
