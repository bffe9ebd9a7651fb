//! Connections: accepted within the bounds, read as HTTP/1.1 or HTTP/2 with or without TLS, closed with care. Run by
//! [`Proxy::run`](super::Proxy::run).

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

use super::config::{HalfClose, Limits};
use super::departure::Asked;
use super::exchange::{Client, Gone, serve};
use super::outlet::{End, Outlet};
use super::refusal;
use super::shared::{Running, Shared};
use super::signal::{Obeying, Order, Streams};
use super::sniff::Sniffed;
use super::socket::{self, Socket, Spoken};
use super::tls::Acceptor;
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
pub(super) async fn connection(shared: Arc<Shared>, stream: TcpStream, peer: SocketAddr) {
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
        departure: Arc::default(),
        settles: AtomicBool::new(false),
    };
    let client = Arc::new(client);
    match &running.tls {
        None => {
            let spoken = tokio::select! {
                spoken = line.spoken(limits.header_timeout) => spoken,
                () = client.place.signal.reached(Order::Finish) => None, // nothing was asked yet
            };
            match spoken {
                Some(Spoken::Http1) => http1(&shared, &running, &client, socket).await,
                // Boxed like all that is rare: each connection has room for the largest of these.
                Some(Spoken::Http2) => Box::pin(http2(&shared, &running, &client, socket)).await,
                None => {}
            }
        }
        Some(tls) => Box::pin(encrypted(&shared, &running, &client, tls, socket)).await,
    }
}

/// Reads requests over TLS and answers them until the connection is over.
async fn encrypted(shared: &Arc<Shared>, running: &Running, client: &Arc<Client>, tls: &Acceptor, socket: Socket) {
    match timeout(running.config.limits.header_timeout, tls.accept(socket)).await {
        Ok(Ok((stream, Spoken::Http1))) => http1(shared, running, client, stream).await,
        Ok(Ok((stream, Spoken::Http2))) => http2(shared, running, client, stream).await,
        Ok(Err(error)) => tracing::debug!(peer = %client.peer, %error, "a handshake failed"),
        Err(_) => {}
    }
}

/// Reads requests of HTTP/1 and answers them until the connection is over.
async fn http1<I>(shared: &Arc<Shared>, running: &Running, client: &Arc<Client>, io: I)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (half_close, signal) = (running.config.half_close, &client.place.signal);
    let (mut io, mut ahead) = (io, Bytes::new());
    let ended = loop {
        let service = {
            let (shared, client) = (Arc::clone(shared), Arc::clone(client));
            // Boxed, since hyper keeps the room for it as long as it has the connection.
            service_fn(move |request: Request<Incoming>| {
                let (client, asked) = (Arc::clone(&client), Asked::of(&request));
                let answer = serve(Arc::clone(&shared), Arc::clone(&client), request);
                Box::pin(async move { Ok::<_, Gone>(client.departure.split(asked, &client.heads, answer.await?)) })
            })
        };
        let sniffed = Sniffed::new(io, ahead, Arc::clone(&client.heads), Arc::clone(&client.departure));
        let builder = http1_builder(&running.config.limits, half_close);
        let connection = builder.serve_connection(TokioIo::new(sniffed), service).with_upgrades();
        let mut connection = Obeying::new(connection, Arc::clone(signal), |connection: Pin<&mut _>| {
            http1::UpgradeableConnection::graceful_shutdown(connection);
        });
        let left = std::future::poll_fn(|cx| match Pin::new(&mut connection).poll(cx) {
            Poll::Ready(ended) => Poll::Ready(Err(ended)),
            Poll::Pending => client.departure.take().map_or(Poll::Pending, |stream| Poll::Ready(Ok(stream))),
        });
        let stream = match left.await {
            Ok(stream) => stream,
            Err(ended) => break ended,
        };
        let Some(parts) = connection.into_inner().into_parts() else { break None };
        client.heads.restart(); // what was read ahead is looked at when it is read again
        let (inner, unread) = parts.io.into_inner().into_parts();
        let outlet = Outlet::new(inner, stream, [parts.read_buf, unread].concat(), half_close);
        let mut outlet = Obeying::new(outlet, Arc::clone(signal), |outlet: Pin<&mut Outlet<I>>| {
            outlet.get_mut().finish();
        });
        let end = (&mut outlet).await;
        (io, ahead) = outlet.into_inner().into_parts();
        match end {
            Some(Ok(End::Again)) => {}
            Some(Ok(End::Close)) => {
                let _ = io.shutdown().await; // a client that is gone by now has all that there was
                break Some(Ok(()));
            }
            Some(Ok(End::Broken) | Err(_)) | None => break None,
        }
    };
    close(client, ended).await;
}

/// Reads requests of HTTP/2 and answers them until the connection is over.
async fn http2<I>(shared: &Arc<Shared>, running: &Running, client: &Arc<Client>, io: I)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = {
        let (shared, client) = (Arc::clone(shared), Arc::clone(client));
        service_fn(move |request: Request<Incoming>| Box::pin(serve(Arc::clone(&shared), Arc::clone(&client), request)))
    };
    let connection = http2_builder(&running.config.limits).serve_connection(TokioIo::new(io), service);
    let signal = Arc::clone(&client.place.signal);
    let ended = Obeying::new(connection, signal, |connection: Pin<&mut _>| {
        http2::Connection::graceful_shutdown(connection);
    });
    close(client, ended.await).await;
}

/// The end of a connection; `ended` is what hyper says of it, if it was not cut.
async fn close(client: &Client, ended: Option<hyper::Result<()>>) {
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
