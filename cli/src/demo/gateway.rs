//! A hop that loses its patience, as Cloudflare does: it forwards each HTTP/1.1 request to one engine and cuts any
//! response that is silent for too long.
//!
//! Before the headers a cut is a 524, after them the connection is aborted. The demo puts it between its load and its
//! engine; sockets, server and client are real ones.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Request, Response, StatusCode, header};
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;

use super::cut::{CutBody, Cuts};
use heartline::BoxError;

/// A listening gateway; it serves once [`run_until`](Self::run_until) is called.
#[derive(Debug)]
pub(crate) struct Gateway {
    listener: TcpListener,
    local_addr: SocketAddr,
    route: Route,
}

/// Where requests go and how long a response may be silent.
#[derive(Clone, Debug)]
struct Route {
    engine: SocketAddr,
    cut_after: Duration,
    cuts: Cuts,
}

impl Gateway {
    /// Listens on a free loopback port and forwards to `engine`.
    ///
    /// # Errors
    ///
    /// The error of the socket that could not be opened.
    pub(crate) fn bind(engine: SocketAddr, cut_after: Duration) -> io::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
        let listener = socket.listen(BACKLOG)?;
        Ok(Self {
            local_addr: listener.local_addr()?,
            listener,
            route: Route { engine, cut_after, cuts: Cuts::default() },
        })
    }

    /// Where it listens.
    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// The count of responses it has cut; it stays readable after the gateway has gone.
    pub(crate) fn cuts(&self) -> Cuts {
        self.route.cuts.clone()
    }

    /// Serves until `shutdown` is ready, then drops every connection; cancelling it does the same.
    pub(crate) async fn run_until(self, shutdown: impl Future<Output = ()>) {
        let mut shutdown = std::pin::pin!(shutdown);
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok((socket, _)) => {
                        connections.spawn(serve(socket, self.route.clone()));
                    }
                    // A socket that failed before it was accepted; with no file left this repeats until one is free.
                    Err(error) => {
                        tracing::warn!(%error, "the gateway could not accept a connection");
                        tokio::time::sleep(ACCEPT_RETRY).await;
                    }
                },
                Some(_) = connections.join_next() => {}
                () = &mut shutdown => return,
            }
        }
    }
}

/// Serves one connection of a client to its end.
async fn serve(socket: TcpStream, route: Route) {
    let _ = socket.set_nodelay(true);
    let service = service_fn(move |request| {
        let route = route.clone();
        async move { Ok::<_, Infallible>(route.answer(request).await) }
    });
    let served = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(socket), service).await;
    if let Err(error) = served {
        // A cut ends here too: it is meant to be an error of the connection.
        tracing::debug!(%error, "a connection through the gateway ended early");
    }
}

type ResponseBody = Either<CutBody<Incoming>, Full<Bytes>>;

impl Route {
    /// The engine's response, or the gateway's own when there is none.
    async fn answer(self, request: Request<Incoming>) -> Response<ResponseBody> {
        match tokio::time::timeout(self.cut_after, forward(self.engine, request)).await {
            Ok(Ok((response, connection))) => {
                response.map(|body| Either::Left(CutBody::new(body, self.cut_after, self.cuts, connection)))
            }
            Ok(Err(error)) => own(StatusCode::BAD_GATEWAY, format!("the engine did not answer: {error}\n")),
            Err(_) => {
                self.cuts.add();
                let text = format!("the engine was silent for {:?}\n", self.cut_after);
                own(silent_status(), text)
            }
        }
    }
}

/// Sends `request` on a connection of its own; the task that drives it ends when the returned set is dropped.
async fn forward(
    engine: SocketAddr,
    request: Request<Incoming>,
) -> Result<(Response<Incoming>, JoinSet<()>), BoxError> {
    let socket = TcpStream::connect(engine).await?;
    socket.set_nodelay(true)?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(socket)).await?;
    let mut task = JoinSet::new();
    task.spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection to the engine ended early");
        }
    });
    let (mut head, body) = request.into_parts();
    remove_hop_headers(&mut head.headers);
    let mut response = sender.send_request(Request::from_parts(head, body)).await?;
    remove_hop_headers(response.headers_mut());
    Ok((response, task))
}

/// Removes what belongs to one connection only (RFC 9110 §7.6.1); both sides frame their messages anew.
fn remove_hop_headers(headers: &mut HeaderMap) {
    for name in HOP_HEADERS {
        headers.remove(name);
    }
}

const HOP_HEADERS: [HeaderName; 5] =
    [header::CONNECTION, header::TRANSFER_ENCODING, header::TE, header::TRAILER, header::UPGRADE];

/// A response of the gateway itself.
fn own(status: StatusCode, text: String) -> Response<ResponseBody> {
    let mut response = Response::new(Either::Right(Full::from(text)));
    *response.status_mut() = status;
    response
}

/// 524, the status Cloudflare answers with when an origin is silent.
fn silent_status() -> StatusCode {
    StatusCode::from_u16(524).expect("524 lies between 100 and 999")
}

/// A whole burst may queue before it is accepted; the kernel cuts this down to its own limit.
const BACKLOG: u32 = 65_535;

/// How long a failed accept is left alone, so that a host without free files is not spun on.
const ACCEPT_RETRY: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use futures::StreamExt;
    use http_body::Frame;
    use http_body_util::{BodyExt, Empty, StreamBody};

    use super::*;

    /// Long enough for loopback, short enough for a test that waits for it.
    const PATIENCE: Duration = Duration::from_millis(40);

    /// An engine of one script: what it does is the path of the request.
    async fn engine(listener: TcpListener) {
        let mut connections = JoinSet::new();
        while let Ok((socket, _)) = listener.accept().await {
            let service = service_fn(|request: Request<Incoming>| async move {
                let first = futures::stream::iter([Ok::<_, io::Error>(Frame::data(Bytes::from("first\n")))]);
                let rest = match request.uri().path() {
                    "/no-headers" => std::future::pending().await,
                    "/hang" => futures::stream::pending().boxed(),
                    "/dies" => futures::stream::iter([Err(io::Error::other("died"))]).boxed(),
                    _ => futures::stream::iter([Ok(Frame::data(Bytes::from("last\n")))]).boxed(),
                };
                Ok::<_, Infallible>(Response::new(StreamBody::new(first.chain(rest))))
            });
            connections
                .spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(socket), service));
        }
    }

    /// What a client sees of one request to that engine through the gateway, and how often the gateway cut.
    async fn through_gateway(path: &str) -> (StatusCode, Result<Bytes, hyper::Error>, usize) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let _engine = JoinSet::from_iter([engine(listener)]);
        through_gateway_to(address, path).await
    }

    async fn through_gateway_to(engine: SocketAddr, path: &str) -> (StatusCode, Result<Bytes, hyper::Error>, usize) {
        let gateway = Gateway::bind(engine, PATIENCE).expect("a free port");
        let (address, cuts) = (gateway.local_addr(), gateway.cuts());
        let mut servers = JoinSet::new();
        servers.spawn(gateway.run_until(std::future::pending()));

        let socket = TcpStream::connect(address).await.expect("the gateway listens");
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(socket)).await.expect("a handshake");
        servers.spawn(async { drop(connection.await) });
        let request =
            Request::get(path).header(header::HOST, "engine").body(Empty::<Bytes>::new()).expect("a valid request");
        let response = sender.send_request(request).await.expect("a response");
        let status = response.status();
        let body = response.into_body().collect().await.map(|body| body.to_bytes());
        (status, body, cuts.count())
    }

    #[tokio::test]
    async fn a_response_that_is_not_silent_passes_whole() {
        let (status, body, cuts) = through_gateway("/").await;
        assert_eq!((status, cuts), (StatusCode::OK, 0));
        assert_eq!(body.expect("a whole body"), "first\nlast\n");
    }

    #[tokio::test]
    async fn silence_before_the_headers_is_answered_with_524() {
        let (status, body, cuts) = through_gateway("/no-headers").await;
        assert_eq!((status.as_u16(), cuts), (524, 1));
        assert_eq!(body.expect("a whole body"), "the engine was silent for 40ms\n");
    }

    #[tokio::test]
    async fn silence_after_the_headers_aborts_the_connection() {
        let (status, body, cuts) = through_gateway("/hang").await;
        assert_eq!((status, cuts), (StatusCode::OK, 1));
        body.expect_err("an abort is no clean end");
    }

    #[tokio::test]
    async fn an_engine_that_dies_is_a_failure_and_no_cut() {
        let (status, body, cuts) = through_gateway("/dies").await;
        // hyper may drop what went just before the error, headers included.
        assert!(status == StatusCode::BAD_GATEWAY || body.is_err(), "{status} {body:?}");
        assert_eq!(cuts, 0);
    }

    #[tokio::test]
    async fn an_engine_that_is_not_there_is_a_502() {
        let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let address = closed.local_addr().expect("an address");
        drop(closed);
        let (status, body, cuts) = through_gateway_to(address, "/").await;
        assert_eq!((status, cuts), (StatusCode::BAD_GATEWAY, 0));
        let text = body.expect("a whole body");
        assert!(text.starts_with(b"the engine did not answer: "), "{text:?}");
    }
}
