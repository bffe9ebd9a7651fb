//! Protocols on both sides: HTTP/2 in, h2c and https out, TLS in, bodiless answers, trailers, expectations, WebSockets.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use heartline_cli::proxy::{TlsFiles, Upstream};
use http::{HeaderMap, Request, Response, Version};
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::support::{EVENTS, Engine, INTERVAL, Running, chunk, config, engine_of, plain, soon, start};
use super::tls::{connect, file};

type Sender = hyper::client::conn::http2::SendRequest<Full<Bytes>>;

/// An HTTP/2 client on a connection of its own; the set drives it.
async fn http2(proxy: &Running) -> (Sender, JoinSet<()>) {
    let socket = TcpStream::connect(proxy.address).await.expect("the proxy listens");
    socket.set_nodelay(true).expect("a socket");
    let (sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(socket)).await.expect("HTTP/2");
    let mut task = JoinSet::new();
    task.spawn(async { drop(connection.await) });
    (sender, task)
}

fn get(path: &str) -> Request<Full<Bytes>> {
    Request::get(format!("http://chat.example{path}")).body(Full::default()).expect("a request")
}

/// An engine of hyper that speaks HTTP/2 without TLS, and answers with events and trailers, or with more than anyone buffers.
async fn h2c_engine() -> (std::net::SocketAddr, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let mut task = JoinSet::new();
    task.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((socket, _)) = listener.accept().await {
            let service = service_fn(|request: Request<Incoming>| async move {
                assert_eq!(request.version(), Version::HTTP_2);
                assert!(!request.headers().contains_key("connection"));
                let asked = request.uri().authority().map(ToString::to_string).unwrap_or_default();
                let te = request.headers().get("te").cloned().unwrap_or(http::HeaderValue::from_static("none"));
                let is_flood = request.uri().path() == "/flood";
                let sent = request.into_body().collect().await.expect("a body").to_bytes();
                let mut frames = vec![
                    Frame::data(Bytes::from("data: 1\n\n")),
                    Frame::data(Bytes::from(format!("data: {asked} {}\n\n", sent.len()))),
                    Frame::trailers(HeaderMap::from_iter([(
                        http::HeaderName::from_static("x-sum"),
                        http::HeaderValue::from_static("7"),
                    )])),
                ];
                if is_flood {
                    frames =
                        std::iter::repeat_with(|| Frame::data(Bytes::from_static(&[b'x'; 32_768]))).take(600).collect();
                }
                let response =
                    Response::builder().header("content-type", "text/event-stream").header("trailer", "x-sum");
                let body = StreamBody::new(async_frames(frames));
                Ok::<_, Infallible>(response.header("x-te", te).body(body).expect("a response"))
            });
            let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(socket), service);
            connections.spawn(async { drop(connection.await) });
        }
    });
    (address, task)
}

fn async_frames(frames: Vec<Frame<Bytes>>) -> impl futures::Stream<Item = Result<Frame<Bytes>, Infallible>> {
    futures::stream::unfold((frames.into_iter(), 0), |(mut frames, sent)| async move {
        if sent == 1 {
            tokio::time::sleep(2 * INTERVAL + INTERVAL / 2).await;
        }
        frames.next().map(|frame| (Ok(frame), (frames, sent + 1)))
    })
}

fn h2c(address: std::net::SocketAddr) -> heartline_cli::proxy::Config {
    let mut config = config(address);
    let mut upstream = Upstream::new("engine", format!("h2c://{address}").parse().expect("an address"));
    upstream.heart.interval = INTERVAL;
    config.upstreams = vec![upstream];
    config
}

#[tokio::test]
async fn http_2_in_and_h2c_out_with_heartbeats_and_trailers() {
    let (address, _engine) = h2c_engine().await;
    let proxy = start(h2c(address)).await;
    let (mut sender, _task) = http2(&proxy).await;
    let request = Request::post("http://chat.example/v1/events").body(Full::from("12345")).expect("a request");
    let response = soon("a response", sender.send_request(request)).await.expect("a response");
    assert_eq!((response.status().as_u16(), response.version()), (200, Version::HTTP_2));
    assert!(!response.headers().contains_key("connection"));
    let body = soon("the body", response.into_body().collect()).await.expect("a whole body");
    assert_eq!(body.trailers().expect("trailers")["x-sum"], "7");
    let text = String::from_utf8(body.to_bytes().to_vec()).expect("text");
    assert_eq!(text.replace("\n\n\n", "\n\n").replace("\n\n\n", "\n\n"), format!("data: 1\n\ndata: {address} 5\n\n"));
    assert!(text.contains("\n\n\n"), "a heartbeat: {text:?}");
    drop(sender);
    proxy.is_empty().await;
}

#[tokio::test]
async fn http_1_in_and_h2c_out_with_trailers_for_those_who_ask() {
    let (address, _engine) = h2c_engine().await;
    let proxy = start(h2c(address)).await;
    let mut client = proxy.connect().await;
    client.send("GET / HTTP/1.1\r\nhost: a\r\nte: trailers\r\nconnection: te\r\n\r\n").await;
    let answer = client.answer().await;
    assert_eq!((answer.status, answer.trailers.as_str()), (200, "x-sum: 7\r\n"));
    assert_eq!(answer.field("x-te"), Some("trailers"), "the engine is asked for them");
    assert_eq!(client.get("/").await.trailers, "", "not asked for");
}

/// All requests share one connection to such an engine: what some clients leave unread must not stop the others.
#[tokio::test]
async fn clients_that_read_nothing_hold_up_no_other_stream_of_the_engines_connection() {
    let (address, _engine) = h2c_engine().await;
    let proxy = start(h2c(address)).await;
    let mut frozen = Vec::new();
    for _ in 0..8 {
        let mut client = proxy.connect().await;
        client.send("GET /flood HTTP/1.1\r\nhost: a\r\n\r\n").await;
        frozen.push(client);
    }
    let bytes = || proxy.handle.streams().iter().map(|stream| stream.bytes).sum::<u64>();
    let stuck = async {
        let (mut before, mut now) = (0, bytes());
        while now == 0 || now != before {
            tokio::time::sleep(4 * INTERVAL).await;
            (before, now) = (now, bytes());
        }
    };
    soon("all of them are stuck", stuck).await;
    assert_eq!(soon("another one", proxy.connect().await.get("/")).await.status, 200);
}

#[tokio::test]
async fn trailers_of_http_1_engines_pass() {
    let engine = Engine::answering(
        "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ntrailer: x-sum\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nx-sum: 9\r\n\r\n",
    )
    .await;
    let proxy = start(config(engine.address)).await;
    let mut client = proxy.connect().await;
    client.send("GET / HTTP/1.1\r\nhost: a\r\nte: trailers\r\nconnection: te\r\n\r\n").await;
    let answer = client.answer().await;
    assert_eq!((answer.text(), answer.trailers.as_str()), ("ok", "x-sum: 9\r\n"));
}

/// On HTTP/2 an error event ends the stream well: an `Err` behind it would drop it.
#[tokio::test]
async fn engine_dies_between_events_on_http_2_and_the_client_reads_the_error() {
    for (sent, ends_well) in [("data: 1\n\n", true), ("data: 1\n\ndata: {\"half", false)] {
        let engine = Engine::start(move |mut peer, _| async move {
            peer.send(EVENTS.to_owned() + &chunk(sent)).await;
            tokio::time::sleep(Duration::from_millis(20)).await;
            peer.reset();
            None
        })
        .await;
        let proxy = start(config(engine.address)).await;
        let (mut sender, _task) = http2(&proxy).await;
        let response = sender.send_request(get("/v1/chat/completions")).await.expect("a response");
        let body = soon("the body", response.into_body().collect()).await;
        match ends_well {
            true => {
                let text = String::from_utf8(body.expect("a clean end").to_bytes().to_vec()).expect("text");
                assert!(text.contains("\"error\"") && !text.contains("[DONE]"), "{text}");
            }
            false => assert!(body.is_err(), "a reset"),
        }
        drop(sender);
        proxy.is_empty().await;
    }
}

#[tokio::test]
async fn a_reset_stream_drops_its_request_and_no_other() {
    let mut engine = Engine::start(|mut peer, head| async move {
        peer.send(EVENTS.to_owned() + &chunk("data: 1\n\n")).await;
        if head.contains("/stays") {
            tokio::time::sleep(3 * INTERVAL).await;
            peer.send(chunk("data: 2\n\n") + "0\r\n\r\n").await;
            return Some(peer);
        }
        peer.until_gone().await;
        None
    })
    .await;
    let proxy = start(config(engine.address)).await;
    let (mut sender, _task) = http2(&proxy).await;
    let stays = sender.send_request(get("/stays")).await.expect("a response");
    let mut goes = sender.send_request(get("/goes")).await.expect("a response");
    goes.frame().await.expect("a frame").expect("data");
    let left = std::time::SystemTime::now();
    drop(goes);
    let took = engine.gone().await.duration_since(left).unwrap_or_default();
    assert!(took < Duration::from_millis(100), "{took:?}");
    let text = stays.into_body().collect().await.expect("a whole body").to_bytes();
    assert!(text.ends_with(b"data: 2\n\n"));
    drop(sender);
    proxy.is_empty().await;
}

/// One stream whose window stays closed, on a connection that is well otherwise.
#[tokio::test]
async fn a_stream_that_takes_nothing_is_reset_and_its_connection_lives() {
    let mut engine = Engine::start(|mut peer, head| async move {
        if head.contains("/fine") {
            peer.send(plain("text/plain", "fine")).await;
            return Some(peer);
        }
        peer.send(EVENTS).await;
        let event = chunk(&format!("data: {}\n\n", "x".repeat(8_000)));
        while peer.socket.write_all(event.as_bytes()).await.is_ok() {}
        peer.until_gone().await;
        None
    })
    .await;
    let mut config = config(engine.address);
    config.limits.stalled_after = Duration::from_secs(1);
    let proxy = start(config).await;
    let (mut sender, _task) = http2(&proxy).await;
    let frozen = sender.send_request(get("/flood")).await.expect("a response");
    engine.gone().await;
    assert!(frozen.into_body().collect().await.is_err(), "a reset");
    let fine = sender.send_request(get("/fine")).await.expect("the connection lives");
    assert_eq!(fine.into_body().collect().await.expect("a body").to_bytes(), "fine");
    drop(sender);
    proxy.is_empty().await;
}

/// Case 6: a HEAD hung and leaked.
#[tokio::test]
async fn answers_without_a_body_are_never_registered() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 120\r\nx-end: kept\r\n\r\n";
    for (method, answer, length) in [
        ("HEAD", head.to_owned(), Some("120")),
        ("GET", "HTTP/1.1 204 No Content\r\ncontent-type: text/event-stream\r\nx-end: kept\r\n\r\n".to_owned(), None),
        ("GET", "HTTP/1.1 304 Not Modified\r\netag: \"1\"\r\nx-end: kept\r\n\r\n".to_owned(), None),
    ] {
        let engine = Engine::answering(answer).await;
        let proxy = start(config(engine.address)).await;
        let mut client = proxy.connect().await;
        for _ in 0..2 {
            client.send(format!("{method} /v1/events HTTP/1.1\r\nhost: a\r\n\r\n")).await;
            let answer = soon(method, client.head()).await;
            assert_eq!((answer.field("x-end"), answer.field("content-length")), (Some("kept"), length), "{answer:?}");
            assert_eq!(answer.field("transfer-encoding"), None, "{answer:?}");
            assert_eq!(proxy.handle.state().streams, 0);
        }
        drop(client);
        proxy.is_empty().await;
    }
}

#[tokio::test]
async fn an_expected_continue_is_answered_here() {
    let mut engine = Engine::answering(plain("text/plain", "ok")).await;
    let proxy = start(config(engine.address)).await;
    let mut client = proxy.connect().await;
    client.send("POST / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 4\r\n\r\n").await;
    assert_eq!(client.head().await.status, 100);
    client.send("body").await;
    assert_eq!(client.answer().await.text(), "ok");
    assert!(!engine.request().await.contains("expect"));
}

#[tokio::test]
async fn answers_of_http_1_0_engines_pass() {
    let engine = Engine::start(|mut peer, _| async move {
        peer.send("HTTP/1.0 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: 1\n\n").await;
        peer.socket.shutdown().await.ok()?;
        peer.until_gone().await;
        None
    })
    .await;
    let proxy = start(config(engine.address)).await;
    let mut client = proxy.connect().await;
    assert_eq!(client.get("/v1/events").await.text(), "data: 1\n\n");
    assert_eq!(client.get("/v1/events").await.text(), "data: 1\n\n", "the client's connection lives on");
}

#[tokio::test]
async fn tls_in_with_http_2_and_http_1() {
    let engine = Engine::answering(plain("text/plain", "ok")).await;
    let mut config = config(engine.address);
    config.tls = Some(TlsFiles { certificate: file("certificate.pem"), key: file("key.pem") });
    let proxy = start(config).await;
    for alpn in ["h2", "http/1.1"] {
        let stream = connect(proxy.address, alpn).await;
        let text = match alpn {
            "h2" => {
                let (mut sender, connection) =
                    hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
                        .await
                        .expect("h2");
                let _task = JoinSet::from_iter([async { drop(connection.await) }]);
                let answer = sender.send_request(get("/")).await.expect("a response");
                answer.into_body().collect().await.expect("a body").to_bytes()
            }
            _ => {
                let (mut sender, connection) =
                    hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.expect("HTTP/1.1");
                let _task = JoinSet::from_iter([async { drop(connection.await) }]);
                let request =
                    Request::get("/").header("host", "localhost").body(Empty::<Bytes>::new()).expect("a request");
                let answer = sender.send_request(request).await.expect("a response");
                answer.into_body().collect().await.expect("a body").to_bytes()
            }
        };
        assert_eq!(text, "ok");
    }
    // And https out: this proxy is the engine of another one.
    let mut outer = super::support::config(engine.address);
    let url = format!("https://localhost:{}", proxy.address.port());
    outer.upstreams = vec![Upstream::new("engine", url.parse().expect("an address"))];
    engine_of(&mut outer).ca = Some(file("authority.pem"));
    let outer = start(outer).await;
    assert_eq!(outer.connect().await.get("/").await.text(), "ok");
}
