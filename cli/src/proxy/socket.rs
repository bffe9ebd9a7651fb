//! A client's socket: reading and writing, a look at whether the client is gone, and how its connection is closed. Made by
//! `server`; `relay` holds its [`Line`].

use std::io;
use std::net::Shutdown;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout, timeout_at};

/// The half of the socket that hyper owns, with or without TLS around it.
#[derive(Debug)]
pub(super) struct Socket(Arc<TcpStream>);

/// The half that stays with the proxy: it never moves bytes of the connection.
#[derive(Clone, Debug)]
pub(super) struct Line(Arc<TcpStream>);

/// What a client speaks, told by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spoken {
    Http1,
    Http2,
}

/// Prepares an accepted socket: no Nagle delay, and an end to peers that acknowledge nothing for `user_timeout`.
///
/// # Errors
///
/// The socket's, which is then of no use.
pub(super) fn prepare(stream: TcpStream, user_timeout: Duration) -> io::Result<(Socket, Line)> {
    stream.set_nodelay(true)?;
    #[cfg(target_os = "linux")]
    SockRef::from(&stream).set_tcp_user_timeout(Some(user_timeout))?;
    #[cfg(not(target_os = "linux"))]
    let _ = user_timeout;
    let stream = Arc::new(stream);
    Ok((Socket(Arc::clone(&stream)), Line(stream)))
}

impl Line {
    /// Which protocol the client speaks, without taking a byte; `None` when it says nothing for `limit` or goes.
    pub(super) async fn spoken(&self, limit: Duration) -> Option<Spoken> {
        timeout(limit, self.first_bytes()).await.ok()?.ok()
    }

    async fn first_bytes(&self) -> io::Result<Spoken> {
        let mut first = [0; PREFACE.len()];
        loop {
            let length = self.0.peek(&mut first).await?;
            if length == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if first[..length] != PREFACE[..length] {
                return Ok(Spoken::Http1);
            }
            if length == PREFACE.len() {
                return Ok(Spoken::Http2);
            }
            sleep(PEEK_AGAIN).await; // the socket stays readable, so there is no edge to wait for
        }
    }

    /// Ready when the client has closed its side or its connection, as far as can be seen without taking a byte.
    ///
    /// Wakes the task that reads the connection, so it is to be called from that task only. With unread bytes in the
    /// kernel nothing can be seen.
    pub(super) fn poll_gone(&self, cx: &mut Context<'_>) -> Poll<()> {
        // Not polled with a buffer at once: this is on the path of each event, and the kernel is asked only when tokio
        // says that there is something.
        if ready!(self.0.poll_read_ready(cx)).is_err() {
            return Poll::Ready(());
        }
        let mut byte = [0];
        match self.0.poll_peek(cx, &mut ReadBuf::new(&mut byte)) {
            Poll::Ready(Ok(0) | Err(_)) => Poll::Ready(()),
            Poll::Ready(Ok(_)) | Poll::Pending => Poll::Pending,
        }
    }

    /// From now on closing the socket resets the connection: a response that ends with the connection must not look whole
    /// when it is not (case 40).
    pub(super) fn reset_on_close(&self) {
        let _ = SockRef::from(&*self.0).set_linger(Some(Duration::ZERO)); // a dead socket needs none
    }

    /// Waits a little for the client to stop sending after the connection was closed for writing.
    ///
    /// Closing a socket with unread bytes resets it, and a reset may overtake the answer that says why.
    pub(super) async fn settle(&self) {
        let _ = SockRef::from(&*self.0).shutdown(Shutdown::Write);
        let deadline = Instant::now() + SETTLE_TIME;
        let mut scratch = [0; SETTLE_STEP];
        for _ in 0..SETTLE_STEPS {
            match self.0.try_read(&mut scratch) {
                Ok(1..) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if !matches!(timeout_at(deadline, self.0.readable()).await, Ok(Ok(()))) {
                        return;
                    }
                }
                Ok(0) | Err(_) => return,
            }
        }
    }

    /// Writes `bytes` as far as the kernel takes them at once, for a connection that is refused before it is read.
    pub(super) async fn tell(&self, bytes: &[u8]) {
        if timeout(SETTLE_TIME, self.0.writable()).await.is_ok() {
            let _ = self.0.try_write(bytes);
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            ready!(self.0.poll_read_ready(cx))?;
            match self.0.try_read_buf(buf) {
                Ok(_) => return Poll::Ready(Ok(())),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl Socket {
    fn poll_io(
        &self,
        cx: &mut Context<'_>,
        write: impl Fn(&TcpStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.0.poll_write_ready(cx))?;
            match write(&self.0) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return Poll::Ready(result),
            }
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_io(cx, |stream| stream.try_write(buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_io(cx, |stream| stream.try_write_vectored(bufs))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        match SockRef::from(&*self.0).shutdown(Shutdown::Write) {
            Err(error) if error.kind() != io::ErrorKind::NotConnected => Poll::Ready(Err(error)),
            _ => Poll::Ready(Ok(())),
        }
    }
}

/// The first bytes of HTTP/2; no method of HTTP/1.1 begins like them (RFC 9113 §3.4).
const PREFACE: &[u8; 3] = b"PRI";
/// How long a client that sent one or two bytes is left alone before they are looked at again.
const PEEK_AGAIN: Duration = Duration::from_millis(5);
/// A round trip on a bad link: an answer that is not read by then will not be.
const SETTLE_TIME: Duration = Duration::from_millis(500);
/// What a client may still have under way: at most this much is read and dropped.
const SETTLE_STEP: usize = 16 * 1024;
const SETTLE_STEPS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel ends a peer that acknowledges nothing: that takes a peer without a network, so the option is looked at.
    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn an_accepted_socket_has_no_delay_and_a_user_timeout() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let _peer = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let limit = Duration::from_secs(7);
        let (_socket, line) = prepare(listener.accept().await.unwrap().0, limit).unwrap();
        assert!(line.0.nodelay().unwrap());
        assert_eq!(SockRef::from(&*line.0).tcp_user_timeout().unwrap(), Some(limit));
    }
}
