//! Engines whose answers say their length in two ways, or in one that no proxy can pass on: the client gets what the engine
//! sent, whole, or an error that says so.

use http_body_util::{BodyExt, Empty};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::support::{Answer, End, Engine, chunk, config, soon, start};

/// An engine's answer with these fields and bytes behind them, as a client of HTTP/1.1 gets it; nothing may be left of it.
async fn answer_to(request: &str, fields: &str, body: &str) -> Answer {
    let engine = Engine::answering(format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n{body}")).await;
    let proxy = start(config(engine.address)).await;
    let mut client = proxy.connect().await;
    client.send(request).await;
    let answer = client.answer().await;
    drop(client);
    proxy.is_empty().await;
    answer
}

const GET: &str = "GET /v1/models HTTP/1.1\r\nhost: a\r\n\r\n";

/// The client got as many bytes as the length said (5 of 11, silently), or nothing beside a log that said complete.
#[tokio::test]
async fn an_answer_with_a_length_and_a_coding_has_no_length() {
    let body = chunk("hello world") + "0\r\n\r\n";
    for content_type in ["text/plain", "text/event-stream", "application/json"] {
        for framing in [
            "content-length: 5\r\ntransfer-encoding: chunked",
            "transfer-encoding: chunked\r\ncontent-length: 5",
            "content-length: 50\r\ntransfer-encoding: chunked",
            "content-length: 11\r\nTransfer-Encoding: Chunked",
            "content-length: 5\r\ncontent-length: 50\r\ntransfer-encoding: chunked",
            "content-length: x\r\ntransfer-encoding: chunked",
        ] {
            let fields = format!("content-type: {content_type}\r\n{framing}");
            let answer = answer_to(GET, &fields, &body).await;
            assert_eq!((answer.status, answer.text(), answer.end), (200, "hello world", End::Whole), "{fields}");
            assert_eq!(answer.field("content-length"), None, "{fields}");
            assert_eq!(answer.fields("transfer-encoding"), ["chunked"], "{fields}");
        }
    }
}

#[tokio::test]
async fn such_an_answer_is_whole_for_clients_of_http_1_0_and_for_head() {
    let fields = "content-length: 5\r\ntransfer-encoding: chunked";
    let old = answer_to("GET / HTTP/1.0\r\n\r\n", fields, &(chunk("hello world") + "0\r\n\r\n")).await;
    assert_eq!((old.text(), old.field("content-length"), old.end), ("hello world", None, End::Closed));
    let engine = Engine::answering(format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n")).await;
    let proxy = start(config(engine.address)).await;
    let mut client = proxy.connect().await;
    client.send("HEAD / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    let head = client.head().await;
    assert_eq!((head.status, head.field("content-length")), (200, None));
}

#[tokio::test]
async fn such_an_answer_is_whole_for_clients_of_http_2() {
    let body = chunk("hello world") + "0\r\n\r\n";
    let engine =
        Engine::answering(format!("HTTP/1.1 200 OK\r\ncontent-length: 50\r\ntransfer-encoding: chunked\r\n\r\n{body}"))
            .await;
    let proxy = start(config(engine.address)).await;
    let socket = TcpStream::connect(proxy.address).await.expect("the proxy listens");
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(socket)).await.expect("HTTP/2");
    let mut task = JoinSet::new();
    task.spawn(async { drop(connection.await) });
    let request = http::Request::get("http://a/").body(Empty::<bytes::Bytes>::new()).expect("a request");
    let response = soon("a response", sender.send_request(request)).await.expect("a response");
    assert!(!response.headers().contains_key("content-length"));
    let body = soon("the body", response.into_body().collect()).await.expect("a whole body").to_bytes();
    assert_eq!(body, "hello world");
}

/// Its bytes are in a coding that ends here: passed on without its name they would be taken for the text itself.
#[tokio::test]
async fn an_answer_in_another_transfer_coding_is_a_502() {
    for framing in [
        "transfer-encoding: gzip, chunked",
        "transfer-encoding: gzip\r\ntransfer-encoding: chunked",
        "transfer-encoding: gzip",
        "transfer-encoding: chunked, identity",
        "transfer-encoding: chunked, chunked",
        "transfer-encoding: xchunked",
        "transfer-encoding: gzip\r\ncontent-length: 11",
    ] {
        let answer = answer_to(GET, framing, &(chunk("hello world") + "0\r\n\r\n")).await;
        assert_eq!((answer.status, answer.end), (502, End::Whole), "{framing}");
        assert!(answer.text().contains("engine_protocol"), "{framing}: {answer:?}");
    }
}

/// What follows an answer is no answer to the next request.
#[tokio::test]
async fn bytes_behind_an_answers_end_are_dropped_with_their_connection() {
    for answer in [
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nagain",
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\ncontent-length: 5, 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\nlo",
    ] {
        let engine = Engine::answering(answer).await;
        let proxy = start(config(engine.address)).await;
        let mut client = proxy.connect().await;
        for _ in 0..3 {
            let got = client.get("/").await;
            assert_eq!((got.text(), got.end), ("hello", End::Whole), "{answer:?}");
            assert!(matches!(&*got.fields("content-length"), [] | ["5"]), "{got:?}");
        }
    }
}

#[tokio::test]
async fn an_answer_whose_length_is_no_number_is_a_502() {
    for framing in [
        "content-length: 5\r\ncontent-length: 6",
        "content-length: 5, 6",
        "content-length: +5",
        "content-length: 0x5",
        "content-length: -1",
        "content-length: ",
        "content-length: 18446744073709551616",
    ] {
        let answer = answer_to(GET, framing, "hello").await;
        assert_eq!((answer.status, answer.end), (502, End::Whole), "{framing}");
    }
}
