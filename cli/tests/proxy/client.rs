//! A client of raw sockets, which sees an answer as it stood on the wire. Part of `support`.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::soon;

/// A client of raw bytes.
pub(crate) struct Client {
    pub(crate) socket: TcpStream,
    /// Bytes that were read and not yet asked for.
    buffer: Vec<u8>,
}

/// A response as it stood on the wire, its chunks joined.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: String,
    pub(crate) end: End,
}

/// How a response ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// As its framing promised.
    Whole,
    /// By a FIN before its end, or at the end of a body that is delimited so.
    Closed,
    /// By a reset.
    Reset,
}

impl Answer {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("text")
    }

    /// Every line of a field, in order.
    pub(crate) fn fields(&self, name: &str) -> Vec<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(':'));
        lines.filter(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).collect()
    }

    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields(name).first().copied()
    }
}

impl Client {
    pub(crate) async fn to(address: SocketAddr) -> Self {
        let socket = TcpStream::connect(address).await.expect("the proxy listens");
        socket.set_nodelay(true).expect("a socket");
        Self { socket, buffer: Vec::new() }
    }

    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.socket.write_all(bytes.as_ref()).await.expect("the proxy reads");
    }

    /// Sends a GET and reads its answer.
    pub(crate) async fn get(&mut self, path: &str) -> Answer {
        self.send(format!("GET {path} HTTP/1.1\r\nhost: chat.example\r\n\r\n")).await;
        self.answer().await
    }

    /// Reads more; `None` at the end, and how it came.
    async fn more(&mut self) -> Result<(), End> {
        let mut buffer = [0; 16 * 1024];
        match soon("bytes at the client", self.socket.read(&mut buffer)).await {
            Ok(0) => Err(End::Closed),
            Ok(length) => {
                self.buffer.extend_from_slice(&buffer[..length]);
                Ok(())
            }
            Err(_) => Err(End::Reset),
        }
    }

    /// Takes everything up to and including `mark`.
    pub(crate) async fn until(&mut self, mark: &[u8]) -> Result<Vec<u8>, End> {
        loop {
            if let Some(at) = self.buffer.windows(mark.len()).position(|window| window == mark) {
                return Ok(self.buffer.drain(..at + mark.len()).collect());
            }
            self.more().await?;
        }
    }

    async fn exactly(&mut self, length: usize, body: &mut Vec<u8>) -> Result<(), End> {
        while self.buffer.len() < length {
            if let Err(end) = self.more().await {
                body.append(&mut self.buffer);
                return Err(end);
            }
        }
        body.extend(self.buffer.drain(..length));
        Ok(())
    }

    /// The head of the next response.
    pub(crate) async fn head(&mut self) -> Answer {
        let head = self.until(b"\r\n\r\n").await.unwrap_or_else(|end| panic!("no head: {end:?} {:?}", self.buffer));
        let head = String::from_utf8(head).expect("text");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        Answer { status, head, body: Vec::new(), trailers: String::new(), end: End::Whole }
    }

    /// The next response, to its end.
    pub(crate) async fn answer(&mut self) -> Answer {
        let mut answer = self.head().await;
        while (100..200).contains(&answer.status) && answer.status != 101 {
            answer = self.head().await;
        }
        self.body(&mut answer).await;
        answer
    }

    pub(crate) async fn body(&mut self, answer: &mut Answer) {
        let is_chunked = answer.field("transfer-encoding").is_some_and(|coding| coding.ends_with("chunked"));
        let length = answer.field("content-length").map(|length| length.parse().expect("a length"));
        let result = if matches!(answer.status, 204 | 304) {
            Ok(())
        } else if is_chunked {
            self.chunks(answer).await
        } else if let Some(length) = length {
            let mut body = Vec::new();
            let result = self.exactly(length, &mut body).await;
            answer.body = body;
            result
        } else {
            let end = loop {
                if let Err(end) = self.more().await {
                    break end;
                }
            };
            answer.body.append(&mut self.buffer);
            Err(end)
        };
        answer.end = result.err().unwrap_or(End::Whole);
    }

    async fn chunks(&mut self, answer: &mut Answer) -> Result<(), End> {
        loop {
            let line = self.until(b"\r\n").await?;
            let length = std::str::from_utf8(&line).expect("a chunk's length").trim();
            let length = usize::from_str_radix(length, 16).expect("hexadecimal");
            if length == 0 {
                loop {
                    let line = self.until(b"\r\n").await?;
                    if line == b"\r\n" {
                        return Ok(());
                    }
                    answer.trailers.push_str(std::str::from_utf8(&line).expect("text"));
                }
            }
            let mut body = std::mem::take(&mut answer.body);
            let result = self.exactly(length, &mut body).await;
            answer.body = body;
            result?;
            self.until(b"\r\n").await?;
        }
    }
}
