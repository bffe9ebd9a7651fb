//! The floor: what the kernel alone asks for one heartbeat. Blocking accept, headers written by hand, then one loop that
//! writes one chunk to every socket each second. Started by `server::run`.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Instant;

use crate::settings::INTERVAL;

/// Response headers, and the first byte as every other server sends it.
const HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n1\r\n\n\r\n";

/// One heartbeat on the wire.
const CHUNK: &[u8] = b"1\r\n\n\r\n";

/// Accepts `streams` sockets, then writes to all of them every interval; never returns.
pub(crate) fn serve(listener: &TcpListener, streams: usize) -> std::io::Result<()> {
    let mut sockets = Vec::with_capacity(streams);
    while sockets.len() < streams {
        let (mut socket, _) = listener.accept()?;
        socket.set_nodelay(true)?;
        read_request(&mut socket)?;
        socket.write_all(HEAD)?;
        socket.set_nonblocking(true)?;
        sockets.push(socket);
    }
    let mut due = Instant::now() + INTERVAL;
    loop {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        due += INTERVAL;
        for socket in &mut sockets {
            match socket.write(CHUNK) {
                Ok(_) => {}
                Err(full) if full.kind() == ErrorKind::WouldBlock => {}
                Err(gone) => return Err(gone),
            }
        }
    }
}

/// Reads up to the blank line that ends a request without a body.
fn read_request(socket: &mut TcpStream) -> std::io::Result<()> {
    let mut request = Vec::with_capacity(256);
    let mut part = [0; 256];
    while !request.ends_with(b"\r\n\r\n") {
        let count = socket.read(&mut part)?;
        if count == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        request.extend_from_slice(&part[..count]);
    }
    Ok(())
}
