//! Streams over loopback sockets: the layer and the body under axum and under plain hyper, on
//! HTTP/1.1 and HTTP/2, in real time with the shortest interval; and the examples as they stand.
#![cfg(feature = "tower")]

mod common;

#[allow(dead_code)] // its `main` binds a fixed port
#[path = "../docs/examples/axum.rs"]
mod axum_example;
#[allow(dead_code)] // its `main` binds a fixed port
#[path = "../docs/examples/hyper.rs"]
mod hyper_example;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::ready;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body as AxumBody;
use bytes::Bytes;
use common::{Engine, Scripted, engine};
use heartline::{Heartline, KeepAlive};
use http::header::{HeaderMap, HeaderValue};
use http::{Request, Response, Version};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{client, server};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tower::{Layer, ServiceExt};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Stack {
    Axum,
    Hyper,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Layer,
    Body,
}

/// One way to serve a stream.
#[derive(Clone, Copy, Debug)]
struct Case {
    stack: Stack,
    way: Way,
    version: Version,
}

const CASES: [Case; 8] = {
    use Stack::{Axum, Hyper};
    use Way::{Body, Layer};
    const fn case(stack: Stack, way: Way, version: Version) -> Case {
        Case { stack, way, version }
    }
    [
        case(Axum, Layer, Version::HTTP_11),
        case(Axum, Layer, Version::HTTP_2),
        case(Axum, Body, Version::HTTP_11),
        case(Axum, Body, Version::HTTP_2),
        case(Hyper, Layer, Version::HTTP_11),
        case(Hyper, Layer, Version::HTTP_2),
        case(Hyper, Body, Version::HTTP_11),
        case(Hyper, Body, Version::HTTP_2),
    ]
};

/// The shortest interval that is allowed.
const INTERVAL: Duration = Duration::from_millis(100);

/// What takes longer than this will not happen; no assertion waits for it to pass.
const PATIENCE: Duration = Duration::from_secs(20);

fn heart() -> Heartline {
    Heartline::builder().interval(INTERVAL).build().unwrap()
}

/// The bodies that a server answers with, one for each request.
#[derive(Clone, Default)]
struct Answers(Arc<Mutex<VecDeque<Scripted>>>);

impl Answers {
    fn add(&self) -> Engine {
        let (hand, body) = engine();
        self.0.lock().unwrap().push_back(body);
        hand
    }

    fn next(&self) -> Response<Scripted> {
        let body = self.0.lock().unwrap().pop_front().expect("an answer was added");
        let response = Response::builder().header("content-type", "text/event-stream").header("trailer", "x-tokens");
        response.body(body).unwrap()
    }
}

/// A server whose next answer the test drives by hand.
struct Server {
    address: SocketAddr,
    answers: Answers,
    accepting: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn bind() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

async fn serve(case: Case, heart: &Heartline) -> Server {
    let (listener, address) = bind().await;
    let (answers, heart) = (Answers::default(), heart.clone());
    let accepting = match case.stack {
        Stack::Axum => tokio::spawn(serve_axum(listener, case, answers.clone(), heart)),
        Stack::Hyper => tokio::spawn(serve_hyper(listener, case, answers.clone(), heart)),
    };
    Server { address, answers, accepting }
}

async fn serve_axum(listener: TcpListener, case: Case, answers: Answers, heart: Heartline) {
    let app: Router = match case.way {
        Way::Layer => {
            let layer = heart.layer();
            Router::new().fallback(move || ready(answers.next().map(AxumBody::new))).layer(layer)
        }
        Way::Body => {
            let respond = move || ready(answers.next().map(|body| AxumBody::new(heart.keep_alive(body))));
            Router::new().fallback(respond)
        }
    };
    axum::serve(listener, app).await.unwrap();
}

async fn serve_hyper(listener: TcpListener, case: Case, answers: Answers, heart: Heartline) {
    loop {
        let (socket, _) = listener.accept().await.unwrap();
        let (answers, heart) = (answers.clone(), heart.clone());
        let respond =
            service_fn(move |request: Request<Incoming>| respond(case, answers.clone(), heart.clone(), request));
        let io = TokioIo::new(socket);
        // A client that goes away fails its connection; that is what some tests do.
        tokio::spawn(async move {
            if case.version == Version::HTTP_2 {
                let _ = server::conn::http2::Builder::new(TokioExecutor::new()).serve_connection(io, respond).await;
            } else {
                let _ = server::conn::http1::Builder::new().serve_connection(io, respond).await;
            }
        });
    }
}

async fn respond(
    case: Case,
    answers: Answers,
    heart: Heartline,
    request: Request<Incoming>,
) -> Result<Response<KeepAlive<Scripted>>, Infallible> {
    match case.way {
        Way::Layer => {
            let handler = tower::service_fn(move |_: Request<Incoming>| ready(Ok(answers.next())));
            heart.layer().layer(handler).oneshot(request).await
        }
        Way::Body => Ok(answers.next().map(|body| heart.keep_alive(body))),
    }
}

/// One connection to a server.
struct Client {
    sender: Sender,
    connection: JoinHandle<()>,
}

enum Sender {
    Http1(client::conn::http1::SendRequest<Empty<Bytes>>),
    Http2(client::conn::http2::SendRequest<Empty<Bytes>>),
}

impl Client {
    async fn connect(address: SocketAddr, version: Version) -> Self {
        let io = TokioIo::new(TcpStream::connect(address).await.unwrap());
        if version == Version::HTTP_2 {
            let (sender, connection) = client::conn::http2::handshake(TokioExecutor::new(), io).await.unwrap();
            let connection = tokio::spawn(async { drop(connection.await) });
            Self { sender: Sender::Http2(sender), connection }
        } else {
            let (sender, connection) = client::conn::http1::handshake(io).await.unwrap();
            let connection = tokio::spawn(async { drop(connection.await) });
            Self { sender: Sender::Http1(sender), connection }
        }
    }

    async fn get(&mut self, path: &str) -> Response<Incoming> {
        let request = Request::builder().header("te", "trailers");
        let sent = async {
            match &mut self.sender {
                Sender::Http1(sender) => {
                    let request = request.uri(path).header("host", "test");
                    sender.send_request(request.body(Empty::new()).unwrap()).await
                }
                Sender::Http2(sender) => {
                    let request = request.uri(format!("http://test{path}"));
                    sender.send_request(request.body(Empty::new()).unwrap()).await
                }
            }
        };
        within(sent).await.unwrap()
    }
}

/// The socket closes with the client, whatever the response's state.
impl Drop for Client {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

/// Runs `test` for all `cases` at the same time.
async fn in_all<F: Future<Output = ()>>(cases: impl IntoIterator<Item = Case>, test: impl Fn(Case) -> F) {
    futures::future::join_all(cases.into_iter().map(test)).await;
}

async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("it takes too long")
}

/// Waits for what another task does.
async fn until(mut condition: impl FnMut() -> bool) {
    within(async {
        while !condition() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// Reads data until it holds `wanted`; fails at the body's end, and at anything that is neither
/// data nor a heartbeat before.
async fn read_until(body: &mut Incoming, wanted: &str) -> String {
    let mut text = String::new();
    while !text.contains(wanted) {
        let frame = within(body.frame()).await.expect("the body goes on").expect("no error");
        text.push_str(std::str::from_utf8(&frame.into_data().expect("data")).unwrap());
    }
    text
}

/// A server, a client and the answer to its request, of which the head is there.
async fn open(case: Case, heart: &Heartline) -> (Server, Client, Engine, Incoming) {
    open_with(case, heart, |_| ()).await
}

/// As [`open`], for an answer that `begin` has begun.
async fn open_with(case: Case, heart: &Heartline, begin: impl Fn(&Engine)) -> (Server, Client, Engine, Incoming) {
    let server = serve(case, heart).await;
    let hand = server.answers.add();
    begin(&hand);
    let mut client = Client::connect(server.address, case.version).await;
    let response = client.get("/").await;
    assert_eq!(response.version(), case.version, "{case:?}");
    let fields = response.headers();
    assert_eq!(fields.contains_key("x-accel-buffering"), case.way == Way::Layer, "{case:?}");
    assert!(!fields.contains_key("content-length"), "{case:?}");
    (server, client, hand, response.into_body())
}

#[tokio::test]
async fn heartbeats_reach_the_client_of_a_silent_stream_and_events_pass() {
    in_all(CASES, |case| async move {
        let heart = heart();
        let (_server, _client, hand, mut body) = open(case, &heart).await;
        assert_eq!(heart.active(), 1, "{case:?}");
        assert!(read_until(&mut body, "\n\n").await.bytes().all(|byte| byte == b'\n'), "{case:?}");
        hand.send("data: 1\n\n");
        assert_eq!(read_until(&mut body, "1\n\n").await.trim_start(), "data: 1\n\n", "{case:?}");
        // After an id no blank line may come: the boundary is followed across the whole stream.
        hand.send("id: 7\ndata: 2\n\n");
        read_until(&mut body, "2\n\n").await;
        let text = read_until(&mut body, ":\n:\n").await;
        assert!(text.split_terminator(":\n").all(str::is_empty), "{case:?}: {text:?}");

        hand.end();
        let rest = within(body.collect()).await.unwrap().to_bytes();
        assert!(rest.chunks(2).all(|heartbeat| heartbeat == b":\n"), "{case:?}: {rest:?}");
        until(|| heart.active() == 0).await;
        assert!(hand.is_dropped(), "{case:?}");
    })
    .await;
}

/// Case 5 of the reports: a stream leaked with each connection.
#[tokio::test]
async fn a_client_that_goes_away_frees_its_stream() {
    in_all(CASES, |case| async move {
        let heart = heart();
        let (_server, client, hand, body) = open(case, &heart).await;
        assert_eq!(heart.active(), 1, "{case:?}");
        drop((client, body));
        until(|| heart.active() == 0 && hand.is_dropped()).await;
    })
    .await;
}

#[tokio::test]
async fn a_stream_reset_on_a_shared_connection_frees_that_stream_only() {
    in_all(CASES.into_iter().filter(|case| case.version == Version::HTTP_2), |case| async move {
        let heart = heart();
        let (server, mut client, hand, body) = open(case, &heart).await;
        let other = server.answers.add();
        let mut other_body = client.get("/").await.into_body();
        assert_eq!(heart.active(), 2, "{case:?}");
        drop(body);
        until(|| heart.active() == 1 && hand.is_dropped()).await;
        read_until(&mut other_body, "\n").await;
        assert!(!other.is_dropped(), "{case:?}");
    })
    .await;
}

#[tokio::test]
async fn an_error_of_the_stream_is_an_error_at_the_client() {
    in_all(CASES, |case| async move {
        let heart = heart();
        let (_server, _client, hand, mut body) = open(case, &heart).await;
        hand.send("data: 1\n\n");
        read_until(&mut body, "1\n\n").await;
        hand.fail("the engine died");
        let end = within(async {
            loop {
                match body.frame().await {
                    Some(Ok(_)) => continue,
                    end => break end,
                }
            }
        });
        assert!(end.await.is_some_and(|frame| frame.is_err()), "{case:?}: taken for a complete stream");
        until(|| heart.active() == 0 && hand.is_dropped()).await;
    })
    .await;
}

#[tokio::test]
async fn trailers_reach_the_client_after_heartbeats() {
    in_all(CASES, |case| async move {
        let heart = heart();
        let (_server, _client, hand, mut body) = open(case, &heart).await;
        read_until(&mut body, "\n").await;
        hand.send("data: 1\n\n");
        hand.send_trailers(HeaderMap::from_iter([("x-tokens".parse().unwrap(), HeaderValue::from_static("1"))]));
        let rest = within(body.collect()).await.unwrap();
        assert_eq!(rest.trailers().expect("trailers")["x-tokens"], "1", "{case:?}");
        assert_eq!(rest.to_bytes().trim_ascii_start(), b"data: 1\n\n", "{case:?}");
        until(|| heart.active() == 0).await;
    })
    .await;
}

/// Case 18 of the reports: heartbeats kept a dead request alive.
#[tokio::test]
async fn a_stream_ended_for_its_silence_is_told_so_and_ends_cleanly() {
    in_all(CASES, |case| async move {
        let heart = Heartline::builder().interval(INTERVAL).max_silence(INTERVAL * 3).build().unwrap();
        let (_server, _client, hand, body) = open(case, &heart).await;
        let text = within(body.collect()).await.expect("a clean end").to_bytes();
        let event = text.trim_ascii_start();
        assert!(event.starts_with(b"data: {\"error\":") && event.ends_with(b"}\n\n"), "{case:?}: {text:?}");
        until(|| heart.active() == 0 && hand.is_dropped()).await;
    })
    .await;
}

/// Case 31 of the reports: an error glued onto half an event.
#[tokio::test]
async fn a_stream_ended_inside_an_event_is_aborted() {
    in_all(CASES, |case| async move {
        let heart = Heartline::builder().interval(INTERVAL).max_silence(INTERVAL * 3).build().unwrap();
        let (_server, _client, hand, mut body) = open_with(case, &heart, |hand| hand.send("data: half\n")).await;
        let mut text = read_until(&mut body, "half\n").await;
        while let Ok(frame) = within(body.frame()).await.expect("taken for a complete stream") {
            text.push_str(std::str::from_utf8(&frame.into_data().unwrap()).unwrap());
        }
        let after = text.trim_start().strip_prefix("data: half\n").expect("the half event");
        assert!(after.split_terminator(":\n").all(str::is_empty), "{case:?}: {text:?}");
        until(|| heart.active() == 0 && hand.is_dropped()).await;
    })
    .await;
}

/// Case 7 of the reports: open event streams block a graceful shutdown for ever.
#[tokio::test]
async fn drain_ends_silent_streams_of_every_stack() {
    in_all(CASES, |case| async move {
        let heart = heart();
        let (_server, _client, hand, body) = open(case, &heart).await;
        assert_eq!(within(heart.drain(INTERVAL)).await, 0, "{case:?}");
        let text = within(body.collect()).await.expect("a clean end").to_bytes();
        assert!(text.trim_ascii_start().starts_with(b"data: {\"error\":"), "{case:?}: {text:?}");
        assert!(hand.is_dropped(), "{case:?}");
    })
    .await;
}

#[tokio::test]
async fn the_axum_example_keeps_its_answer_alive() {
    let (heart, (listener, address)) = (heart(), bind().await);
    let app = axum_example::app(&heart);
    let server = tokio::spawn(async { axum::serve(listener, app).await.unwrap() });
    for version in [Version::HTTP_11, Version::HTTP_2] {
        let mut client = Client::connect(address, version).await;
        let response = client.get("/answer").await;
        assert_eq!(response.headers()["cache-control"], "no-cache, no-transform");
        read_until(&mut response.into_body(), "\n\n").await;
        drop(client);
        until(|| heart.active() == 0).await;
    }
    server.abort();
}

#[tokio::test]
async fn the_hyper_example_keeps_its_answer_alive() {
    let (heart, (listener, address)) = (heart(), bind().await);
    let server = tokio::spawn(hyper_example::serve(listener, heart.clone()));
    for version in [Version::HTTP_11, Version::HTTP_2] {
        let mut client = Client::connect(address, version).await;
        let response = client.get("/").await;
        read_until(&mut response.into_body(), "\n\n").await;
        drop(client);
        until(|| heart.active() == 0).await;
    }
    server.abort();
}
