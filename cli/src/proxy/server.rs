//! Connections: accepted within the bounds, read as HTTP/1.1 or HTTP/2 with or without TLS, closed with care. Run by
//! [`Proxy::run`](super::Proxy::run).

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

use super::config::{HalfClose, Limits};
use super::exchange::{Client, serve};
use super::refusal;
use super::shared::{Running, Shared};
use super::signal::{Obeying, Order, Streams};
use super::sniff::Sniffed;
use super::socket::{self, Spoken};
use super::workers::Workers;

/// Accepts connections until it is dropped.
pub(super) async fn accept(listener: &TcpListener, shared: &Arc<Shared>, workers: &Workers) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) if workers.is_empty() => workers.spawn(connection(Arc::clone(shared), stream, peer)),
            Ok((stream, peer)) => {
                // Taken out of this runtime, so that its own one hears of it.
                let Ok(stream) = stream.into_std() else { continue };
                let shared = Arc::clone(shared);
                workers.spawn(async move {
                    if let Ok(stream) = TcpStream::from_std(stream) {
                        connection(shared, stream, peer).await;
                    }
                });
            }
            // A socket that failed before it was accepted; with no file left this repeats until one is free.
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                sleep(ACCEPT_RETRY).await;
            }
        }
    }
}

/// One connection from its accept to its close.
async fn connection(shared: Arc<Shared>, stream: TcpStream, peer: SocketAddr) {
    let running = shared.running.load_full();
    let limits = &running.config.limits;
    let Ok((socket, line)) = socket::prepare(stream, limits.user_timeout) else { return };
    let Some(place) = shared.admit(peer.ip()) else {
        tracing::warn!(%peer, "a connection was refused: a bound is reached");
        drop(socket);
        if running.tls.is_none() {
            line.tell(&refusal::busy_bytes()).await;
            line.settle().await;
        }
        return;
    };
    let client = Client {
        peer: peer.ip().to_canonical(),
        scheme: if running.tls.is_some() { "https" } else { "http" },
        line: line.clone(),
        place,
        heads: Arc::default(),
        settles: AtomicBool::new(false),
    };
    let client = Arc::new(client);
    match &running.tls {
        None => {
            let spoken = tokio::select! {
                spoken = line.spoken(limits.header_timeout) => spoken,
                () = client.place.signal.reached(Order::Finish) => None, // nothing was asked yet
            };
            let Some(spoken) = spoken else { return };
            read(&shared, &running, &client, socket, spoken).await;
        }
        Some(tls) => match timeout(limits.header_timeout, tls.accept(socket)).await {
            Ok(Ok((stream, spoken))) => read(&shared, &running, &client, stream, spoken).await,
            Ok(Err(error)) => tracing::debug!(%peer, %error, "a handshake failed"),
            Err(_) => {}
        },
    }
}

/// Reads requests and answers them until the connection is over.
async fn read<I>(shared: &Arc<Shared>, running: &Running, client: &Arc<Client>, io: I, spoken: Spoken)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = {
        let (shared, client) = (Arc::clone(shared), Arc::clone(client));
        // Boxed, since hyper keeps the room for it as long as the connection lives, and an answer lives far longer.
        service_fn(move |request: Request<Incoming>| Box::pin(serve(Arc::clone(&shared), Arc::clone(&client), request)))
    };
    let signal = Arc::clone(&client.place.signal);
    let limits = &running.config.limits;
    let ended = match spoken {
        Spoken::Http1 => {
            let io = TokioIo::new(Sniffed::new(io, Arc::clone(&client.heads)));
            let connection =
                http1_builder(limits, running.config.half_close).serve_connection(io, service).with_upgrades();
            Obeying::new(connection, signal, |connection: Pin<&mut _>| {
                http1::UpgradeableConnection::graceful_shutdown(connection);
            })
            .await
        }
        Spoken::Http2 => {
            let connection = http2_builder(limits).serve_connection(TokioIo::new(io), service);
            Obeying::new(connection, signal, |connection: Pin<&mut _>| {
                http2::Connection::graceful_shutdown(connection);
            })
            .await
        }
    };
    match ended {
        Some(Ok(())) if !client.settles.load(Ordering::Relaxed) => {}
        Some(Err(error)) if !is_clients_fault(&error) => tracing::debug!(%error, "a connection ended early"),
        // The client may still be sending; closing at once would reset the connection under the answer that says why.
        Some(_) => client.line.settle().await,
        None => {}
    }
}

/// Whether hyper answered the client that it could not be understood.
fn is_clients_fault(error: &hyper::Error) -> bool {
    error.is_parse() || error.is_parse_too_large() || error.is_timeout()
}

fn http1_builder(limits: &Limits, half_close: HalfClose) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .max_headers(limits.headers)
        .max_header_size(limits.header_bytes)
        .max_buf_size(limits.header_bytes.max(BUFFER_MIN))
        .half_close(half_close == HalfClose::Serve)
        // An event is a few hundred bytes: one buffer to write costs less than a list of three.
        .writev(false);
    builder
}

fn http2_builder(limits: &Limits) -> http2::Builder<Streams> {
    let mut builder = http2::Builder::new(Streams);
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.streams_per_connection)
        // Bounds CONTINUATION frames too: h2 counts how many such a list can need.
        .max_header_list_size(u32::try_from(limits.header_bytes).unwrap_or(u32::MAX))
        .max_send_buf_size(SEND_BUFFER)
        .max_pending_accept_reset_streams(RESETS_PENDING)
        .max_local_error_reset_streams(RESETS_BY_ERROR)
        .keep_alive_interval(limits.header_timeout)
        .keep_alive_timeout(PING_TIMEOUT);
    builder
}

/// How long a failed accept is left alone, so that a host without free files is not spun on.
const ACCEPT_RETRY: Duration = Duration::from_millis(10);
/// The least that hyper reads into.
const BUFFER_MIN: usize = 8 * 1024;
/// What one HTTP/2 stream may have written and not sent.
const SEND_BUFFER: usize = 64 * 1024;
/// Streams that were reset before they were taken (rapid reset, CVE-2023-44487): beyond these the connection ends.
const RESETS_PENDING: usize = 20;
/// Streams that this side reset because of the client's errors.
const RESETS_BY_ERROR: usize = 1_024;
/// How long a peer may leave a ping without an answer.
const PING_TIMEOUT: Duration = Duration::from_secs(20);
