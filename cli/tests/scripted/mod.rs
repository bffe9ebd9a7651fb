//! A server whose every byte is scripted, on loopback, with delays of milliseconds: what `cli/tests/load.rs` measures.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use Step::{Beat, Chunk, Demand, Finish, Hang, Raw, Reset, Wait};

/// One thing the server does on a connection.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Reads on until the request holds this text.
    Demand(&'static str),
    /// Sends these bytes as they are.
    Raw(Vec<u8>),
    /// Sends one chunk of a chunked body.
    Chunk(Vec<u8>),
    /// Sends such a chunk so often, so many milliseconds apart.
    Beat(&'static [u8], u32, u64),
    /// Waits so many milliseconds.
    Wait(u64),
    /// Ends the chunked body.
    Finish,
    /// Resets the connection.
    Reset,
    /// Keeps the connection open until the client closes it.
    Hang,
}

/// The type of an event stream, as some servers spell it.
pub(crate) const EVENTS: &str = "text/event-stream; charset=utf-8";

/// Response headers with a chunked body of this type.
pub(crate) fn ok(content_type: &str) -> Step {
    Raw(format!("HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ntransfer-encoding: chunked\r\n\r\n").into_bytes())
}

pub(crate) fn chunk(text: impl AsRef<[u8]>) -> Step {
    Chunk(text.as_ref().to_vec())
}

/// A server that answers connection `i` with script `i` modulo their number. Stops when dropped.
pub(crate) struct Server {
    /// Where it listens.
    pub(crate) address: SocketAddr,
    _task: JoinSet<Infallible>,
}

impl Server {
    /// Starts listening on a free port.
    pub(crate) async fn start(scripts: Vec<Vec<Step>>) -> Self {
        Self::start_with(scripts, None).await
    }

    /// Starts listening, for TLS where there is an acceptor.
    pub(crate) async fn start_with(scripts: Vec<Vec<Step>>, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut task = JoinSet::new();
        task.spawn(async move {
            let next = AtomicUsize::new(0);
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                stream.set_nodelay(true).unwrap();
                let script = scripts[next.fetch_add(1, Ordering::Relaxed) % scripts.len()].clone();
                let tls = tls.clone();
                connections.spawn(async move {
                    // A client that went away ends its script.
                    let _ = match tls {
                        None => {
                            play(stream, script, |stream| {
                                socket2::SockRef::from(stream).set_linger(Some(Duration::ZERO))
                            })
                            .await
                        }
                        Some(tls) => match tls.accept(stream).await {
                            Ok(stream) => play(stream, script, |_| Ok(())).await,
                            Err(error) => Err(error),
                        },
                    };
                });
            }
        });
        Self { address, _task: task }
    }
}

async fn play<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    script: Vec<Step>,
    abort: impl Fn(&S) -> std::io::Result<()>,
) -> std::io::Result<()> {
    let mut request = [0; 4096];
    let mut read = 0;
    while !request[..read].windows(4).any(|w| w == b"\r\n\r\n") {
        read += stream.read(&mut request[read..]).await?;
    }
    for step in script {
        match step {
            Demand(text) => {
                while !String::from_utf8_lossy(&request[..read]).contains(text) {
                    match stream.read(&mut request[read..]).await? {
                        0 => return Ok(()),
                        more => read += more,
                    }
                }
            }
            Raw(bytes) => stream.write_all(&bytes).await?,
            Chunk(bytes) => send(&mut stream, &bytes).await?,
            Beat(bytes, times, every_ms) => {
                for _ in 0..times {
                    tokio::time::sleep(Duration::from_millis(every_ms)).await;
                    send(&mut stream, bytes).await?;
                }
            }
            Wait(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
            Finish => stream.write_all(b"0\r\n\r\n").await?,
            Reset => {
                abort(&stream)?;
                return Ok(());
            }
            Hang => while stream.read(&mut request).await? > 0 {},
        }
    }
    stream.shutdown().await
}

async fn send(stream: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> std::io::Result<()> {
    let mut framed = format!("{:x}\r\n", bytes.len()).into_bytes();
    framed.extend_from_slice(bytes);
    framed.extend_from_slice(b"\r\n");
    stream.write_all(&framed).await
}
