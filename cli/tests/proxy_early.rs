//! Waiting for headers through real sockets: engines that hold back their head, and a proxy that answers in their place. The
//! table of late answers is tested row by row beside `cli/src/proxy/late.rs`; here is what only a connection shows.
#[allow(dead_code, reason = "shared with the proxy's other tests")]
#[path = "proxy/support.rs"]
mod support;

use std::io::Write;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures::future::join_all;
use http_body_util::{BodyExt, Full};
use support::{Answer, Client, EVENTS, End, Engine, INTERVAL, Running, chunk, config, engine_of, plain, soon, start};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

/// When an answer is committed here: the shortest time there is.
const COMMIT_AFTER: Duration = Duration::from_millis(100);
/// When the engines here answer: after a commit and a heartbeat.
const LATE: Duration = Duration::from_millis(450);

const CHAT: &str = "/v1/chat/completions";
const STREAM: &[u8] = br#"{"model":"m","messages":[],"stream":true}"#;
const WHOLE: &[u8] = br#"{"model":"m","messages":[]}"#;
const BUSY: &str = "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 30\r\n\
                    x-request-id: 7\r\ncontent-length: 32\r\n\r\n{\"error\":{\"message\":\"loading!\"}}";

/// An engine that sends `answer` after `wait`, whatever it is asked.
async fn engine(wait: Duration, answer: impl Into<String>) -> Engine {
    let answer = answer.into();
    Engine::start(move |mut peer, _| {
        let answer = answer.clone();
        async move {
            sleep(wait).await;
            peer.send(answer).await;
            Some(peer)
        }
    })
    .await
}

/// A proxy before `engine` that commits streams and JSON.
async fn proxy(engine: &Engine) -> Running {
    let mut config = config(engine.address);
    engine_of(&mut config).commit_after = Some(COMMIT_AFTER);
    engine_of(&mut config).commit_json_after = Some(COMMIT_AFTER);
    start(config).await
}

fn post(path: &str, fields: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("POST {path} HTTP/1.1\r\nhost: a\r\n{fields}content-length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// The answer to one request.
async fn ask(proxy: &Running, path: &str, fields: &str, body: &[u8]) -> Answer {
    let mut client = proxy.connect().await;
    client.send(post(path, fields, body)).await;
    let answer = soon(path, client.answer()).await;
    drop(client);
    proxy.is_empty().await;
    answer
}

/// The answer of a proxy that commits, before an engine that is late with `answer`.
async fn late(answer: &str, path: &str, body: &[u8]) -> Answer {
    let engine = engine(LATE, answer).await;
    ask(&proxy(&engine).await, path, "", body).await
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text:?}"))
}

async fn is_silent(client: &Client, time: Duration) {
    assert!(timeout(time, client.socket.readable()).await.is_err(), "bytes before their time");
}

/// Case 13: nothing was sent before the first token, so that a hop answered 524.
#[tokio::test]
async fn a_late_event_stream_is_committed_kept_alive_and_passed_on() {
    let events = "data: {\"choices\":[]}\n\ndata: [DONE]\n\n";
    let answer = late(&(EVENTS.to_owned() + &chunk(events) + "0\r\n\r\n"), CHAT, STREAM).await;
    assert_eq!((answer.status, answer.end), (200, End::Whole));
    assert_eq!(answer.field("content-type"), Some("text/event-stream"));
    assert_eq!(answer.field("x-accel-buffering"), Some("no"));
    assert!(answer.field("cache-control").is_some_and(|value| value.contains("no-transform")), "{answer:?}");
    let heartbeats = answer.text().strip_suffix(events).expect("the engine's exact bytes");
    assert!(!heartbeats.is_empty() && heartbeats.chars().all(|beat| beat == '\n'), "{heartbeats:?}");
}

#[tokio::test]
async fn each_api_is_committed_in_its_own_format() {
    let line = "{\"done\":true}\n";
    let lines = format!("HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\n\r\n{line}");
    let engine = Engine::start(move |mut peer, _| {
        let lines = lines.clone();
        async move {
            sleep(LATE).await;
            peer.send(lines).await;
            None
        }
    })
    .await;
    let answer = ask(&proxy(&engine).await, "/api/chat", "", br#"{"model":"m"}"#).await;
    assert_eq!(answer.field("content-type"), Some("application/x-ndjson"), "it streams when nothing is said");
    let heartbeats = answer.text().strip_suffix(line).expect("the engine's exact bytes");
    assert!(!heartbeats.is_empty() && heartbeats.chars().all(|beat| beat == ' '), "{heartbeats:?}");

    let event = "data: {\"candidates\":[]}\n\n";
    let events = EVENTS.to_owned() + &chunk(event) + "0\r\n\r\n";
    let answer = late(&events, "/v1beta/models/g:streamGenerateContent?alt=sse", b"{}").await;
    assert!(answer.text().ends_with(event) && answer.text().starts_with('\n'), "{answer:?}");

    let answer = late(&plain("application/json", "{\"choices\":[]}"), CHAT, WHOLE).await;
    assert_eq!((answer.field("content-type"), answer.end), (Some("application/json"), End::Whole));
    assert_eq!((answer.text().trim_start(), answer.field("content-length")), ("{\"choices\":[]}", None));
}

/// Case 14: the error after a committed 200 was swallowed and the client hung.
#[tokio::test]
async fn a_late_error_arrives_inside_the_stream_which_then_ends_well() {
    let answer = late(BUSY, CHAT, STREAM).await;
    assert_eq!((answer.status, answer.end), (200, End::Whole));
    let text = answer.text().trim_start();
    let (event, rest) = text.split_once("\n\n").expect("an event");
    let error = &json(event.strip_prefix("data: ").expect("data"))["error"];
    assert_eq!((error["status"].as_u64(), error["retry_after"].as_str()), (Some(503), Some("30")));
    assert!(error["message"].as_str().expect("text").contains("loading!"), "{error}");
    assert_eq!(rest, "data: [DONE]\n\n");
}

#[tokio::test]
async fn a_late_error_of_json_arrives_whole_and_is_then_torn() {
    let answer = late(BUSY, CHAT, WHOLE).await;
    assert_eq!(answer.status, 200);
    assert_ne!(answer.end, End::Whole, "never a clean end: {answer:?}");
    let error = &json(answer.text().trim())["error"];
    assert_eq!((error["status"].as_u64(), error["retry_after"].as_str()), (Some(503), Some("30")));
}

/// Nginx speaks HTTP/1.0 by default, and there an orderly close is a good end (case 40).
#[tokio::test]
async fn a_late_error_of_json_to_an_http_1_0_client_is_a_reset() {
    let engine = engine(LATE, BUSY).await;
    let proxy = proxy(&engine).await;
    let mut client = proxy.connect().await;
    let request = String::from_utf8(post(CHAT, "", WHOLE)).expect("text").replace("HTTP/1.1", "HTTP/1.0");
    client.send(request).await;
    let answer = soon("an answer", client.answer()).await;
    assert_eq!((answer.status, answer.end), (200, End::Reset));
}

#[tokio::test]
async fn an_answer_in_time_keeps_its_status_and_fields() {
    let engine = engine(Duration::ZERO, BUSY).await;
    for body in [STREAM, WHOLE] {
        let mut config = config(engine.address);
        engine_of(&mut config).commit_after = Some(Duration::from_secs(60));
        engine_of(&mut config).commit_json_after = Some(Duration::from_secs(60));
        let answer = ask(&start(config).await, CHAT, "", body).await;
        assert_eq!((answer.status, answer.end), (503, End::Whole));
        assert_eq!((answer.field("retry-after"), answer.field("x-request-id")), (Some("30"), Some("7")));
    }
}

#[tokio::test]
async fn without_its_switch_nothing_is_committed() {
    let engine = engine(LATE, BUSY).await;
    let mut streams_only = config(engine.address);
    engine_of(&mut streams_only).commit_after = Some(COMMIT_AFTER);
    let mut json_only = config(engine.address);
    engine_of(&mut json_only).commit_json_after = Some(COMMIT_AFTER);
    let off = config(engine.address);
    let requests = [(off, STREAM), (streams_only, WHOLE), (json_only, STREAM)];
    let answers =
        requests.map(|(config, body)| Box::pin(async move { ask(&start(config).await, CHAT, "", body).await.status }));
    assert_eq!(join_all(answers).await, [503; 3]);
}

#[tokio::test]
async fn what_is_not_on_the_list_is_waited_for() {
    let engine = engine(LATE, BUSY).await;
    let proxy = proxy(&engine).await;
    let requests = [
        ("/v1/embeddings", ""),
        ("/v1/audio/transcriptions", ""),
        ("/v1/images/edits", ""),
        ("/v1beta/models/g:streamGenerateContent", ""),
        (CHAT, "content-type: multipart/form-data; boundary=x\r\n"),
        (CHAT, "range: bytes=0-1\r\n"),
    ];
    let answers = join_all(requests.map(|(path, fields)| Box::pin(ask(&proxy, path, fields, STREAM)))).await;
    for (request, answer) in requests.iter().zip(answers) {
        assert_eq!((answer.status, answer.field("x-request-id")), (503, Some("7")), "{request:?}");
    }
}

#[tokio::test]
async fn a_body_that_cannot_be_read_is_passed_on_and_waited_for() {
    let engine = engine(LATE, BUSY).await;
    let mut config = config(engine.address);
    engine_of(&mut config).commit_after = Some(COMMIT_AFTER);
    config.limits.look_bytes = 1_024;
    let proxy = start(config).await;
    let long = format!("{{\"stream\":true,\"prompt\":\"{}\"}}", "x".repeat(2_000));
    let requests: [(&str, &[u8]); 6] = [
        ("", long.as_bytes()),
        ("", b"{\"stream\":true"),
        ("", b"{\"stream\":\"true\"}"),
        ("", b"stream=true"),
        ("content-encoding: gzip\r\n", STREAM),
        ("content-encoding: br\r\n", STREAM),
    ];
    let answers = join_all(requests.map(|(fields, body)| Box::pin(ask(&proxy, CHAT, fields, body)))).await;
    for (request, answer) in requests.iter().zip(answers) {
        assert_eq!(answer.status, 503, "{request:?}");
    }
}

#[tokio::test]
async fn a_compressed_body_is_read_for_the_look_and_passed_on_as_it_came() {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(STREAM).expect("memory");
    let encoded = encoder.finish().expect("memory");
    let mut engine = engine(LATE, BUSY).await;
    let answer = ask(&proxy(&engine).await, CHAT, "content-encoding: gzip\r\n", &encoded).await;
    assert_eq!(answer.status, 200, "committed");
    let request = engine.request().await.to_ascii_lowercase();
    let length = format!("content-length: {}\r\n", encoded.len());
    assert!(request.contains("content-encoding: gzip\r\n") && request.contains(&length), "{request}");
}

#[tokio::test]
async fn the_clock_starts_when_the_whole_body_is_forwarded() {
    let engine = engine(Duration::from_secs(60), BUSY).await;
    let proxy = proxy(&engine).await;
    let mut client = proxy.connect().await;
    let request = post(CHAT, "", STREAM);
    let (most, last) = request.split_at(request.len() - 1);
    client.send(most).await;
    is_silent(&client, 3 * COMMIT_AFTER).await;
    let whole = SystemTime::now();
    client.send(last).await;
    assert_eq!(client.head().await.status, 200);
    let took = whole.elapsed().unwrap_or_default();
    assert!(took >= COMMIT_AFTER, "{took:?}");
}

#[tokio::test]
async fn an_engine_that_dies_before_it_answers_is_reported_then_aborted() {
    let engine = Engine::start(|peer, _| async move {
        sleep(LATE).await;
        peer.reset();
        None
    })
    .await;
    let proxy = proxy(&engine).await;
    let requests = [(CHAT, STREAM), ("/v1/messages", STREAM), (CHAT, WHOLE)];
    let answers = join_all(requests.map(|(path, body)| Box::pin(ask(&proxy, path, "", body)))).await;
    for ((path, _), answer) in requests.iter().zip(answers) {
        assert_eq!(answer.status, 200);
        assert_ne!(answer.end, End::Whole, "{path}: {answer:?}");
        let text = answer.text().trim();
        let text = text.rsplit_once("data: ").map_or(text, |(_, data)| data);
        assert_eq!(json(text)["error"]["status"], 502, "{path}");
        assert!(!text.contains("[DONE]"));
    }
}

#[tokio::test]
async fn an_engine_that_takes_too_long_is_reported_as_504_then_aborted() {
    let engine = engine(Duration::from_secs(60), BUSY).await;
    let mut config = config(engine.address);
    engine_of(&mut config).commit_after = Some(COMMIT_AFTER);
    engine_of(&mut config).response_timeout = Some(LATE);
    let answer = ask(&start(config).await, CHAT, "", STREAM).await;
    assert_ne!(answer.end, End::Whole);
    let event = answer.text().trim().strip_prefix("data: ").expect("an event");
    assert_eq!(json(event)["error"]["status"], 504);
}

/// Case 15, while a committed answer waits.
#[tokio::test]
async fn a_client_that_goes_after_the_commit_frees_the_engine_at_once() {
    let mut engine = Engine::start(|peer, _| async move {
        peer.until_gone().await;
        None
    })
    .await;
    let proxy = proxy(&engine).await;
    let mut client = proxy.connect().await;
    client.send(post(CHAT, "", STREAM)).await;
    assert_eq!(client.head().await.status, 200);
    client.until(b"\n").await.expect("a heartbeat");
    let left = SystemTime::now();
    drop(client);
    let took = engine.gone().await.duration_since(left).unwrap_or_default();
    assert!(took < INTERVAL, "{took:?}");
    proxy.is_empty().await;
}

/// The data frames of an answer over HTTP/2, and whether they ended well.
async fn ask_http2(proxy: &Running, body: &'static [u8]) -> (u16, String, bool) {
    let socket = TcpStream::connect(proxy.address).await.expect("the proxy listens");
    let executor = hyper_util::rt::TokioExecutor::new();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(executor, hyper_util::rt::TokioIo::new(socket)).await.expect("HTTP/2");
    let connection = tokio::spawn(connection);
    let request = http::Request::post(format!("http://a{CHAT}")).body(Full::new(Bytes::from_static(body)));
    let answer = soon("a head", sender.send_request(request.expect("a request"))).await.expect("an answer");
    let (head, mut body) = answer.into_parts();
    let mut text = String::new();
    let is_whole = loop {
        match soon("a frame", body.frame()).await {
            Some(Ok(frame)) => text += std::str::from_utf8(&frame.into_data().unwrap_or_default()).expect("text"),
            Some(Err(_)) => break false,
            None => break true,
        }
    };
    connection.abort();
    (head.status.as_u16(), text, is_whole)
}

#[tokio::test]
async fn over_http_2_a_late_error_ends_streams_well_and_json_by_a_reset() {
    let engine = engine(LATE, BUSY).await;
    let proxy = proxy(&engine).await;
    let ((status, text, is_whole), (json_status, _, is_json_whole)) =
        Box::pin(async { tokio::join!(ask_http2(&proxy, STREAM), ask_http2(&proxy, WHOLE)) }).await;
    assert_eq!((status, is_whole), (200, true));
    assert!(text.trim_start().starts_with("data: {\"error\"") && text.ends_with("data: [DONE]\n\n"), "{text}");
    assert_eq!((json_status, is_json_whole), (200, false), "never a clean end");
}

#[tokio::test]
async fn over_http_2_an_engine_that_dies_is_reported_then_ended() {
    let engine = Engine::start(|peer, _| async move {
        sleep(LATE).await;
        peer.reset();
        None
    })
    .await;
    let (status, text, is_whole) = Box::pin(ask_http2(&proxy(&engine).await, STREAM)).await;
    assert_eq!((status, is_whole), (200, true));
    assert!(text.contains("\"status\":502") && !text.contains("[DONE]"), "{text}");
}
