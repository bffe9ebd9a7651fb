//! Both ways of dying: the client goes, or the engine does.

use std::time::{Duration, SystemTime};

use heartline_cli::proxy::HalfClose;
use tokio::io::AsyncWriteExt;
use tokio::time::sleep;

use super::support::{Client, EVENTS, End, Engine, INTERVAL, Peer, chunk, config, engine_of, plain, soon, start};

/// An engine that sends `first` and is silent until its client has gone.
async fn silent(first: String) -> Engine {
    Engine::start(move |mut peer, _| {
        let first = first.clone();
        async move {
            peer.send(first).await;
            peer.until_gone().await;
            None
        }
    })
    .await
}

const GET: &str = "GET /v1/events HTTP/1.1\r\nhost: a\r\n\r\n";
/// The most that may pass between a client's going and the engine's learning of it.
const AT_ONCE: Duration = Duration::from_millis(100);

fn since(then: SystemTime, now: SystemTime) -> Duration {
    now.duration_since(then).unwrap_or_default()
}

/// Case 15: the engine worked on until its next token.
#[tokio::test]
async fn client_gone_while_the_engine_is_silent_drops_the_request_at_once() {
    let mut engine = silent(EVENTS.to_owned() + &chunk("data: 1\n\n")).await;
    let mut config = config(engine.address);
    engine_of(&mut config).heart.interval = Duration::from_secs(60); // no heartbeat helps to notice
    let proxy = start(config).await;
    let mut client = proxy.connect().await;
    client.send(GET).await;
    client.until(b"data: 1\n\n").await.expect("an event");
    let left = SystemTime::now();
    drop(client);
    let took = since(left, engine.gone().await);
    assert!(took < AT_ONCE, "{took:?}");
    proxy.is_empty().await;
}

#[tokio::test]
async fn client_gone_before_the_headers_drops_the_request_at_once() {
    let mut engine = silent(String::new()).await;
    let proxy = start(config(engine.address)).await;
    let mut client = proxy.connect().await;
    client.send(GET).await;
    engine.request().await;
    let left = SystemTime::now();
    drop(client);
    let took = since(left, engine.gone().await);
    assert!(took < AT_ONCE, "{took:?}");
    proxy.is_empty().await;
}

/// hyper does not see a FIN behind bytes that it has read ahead; the proxy does.
#[tokio::test]
async fn client_gone_behind_pipelined_bytes_drops_the_request_at_once() {
    let mut engine = silent(EVENTS.to_owned() + &chunk("data: 1\n\n")).await;
    let mut config = config(engine.address);
    engine_of(&mut config).heart.interval = Duration::from_secs(60);
    let proxy = start(config).await;
    let mut client = proxy.connect().await;
    client.send(GET.repeat(2)).await;
    client.until(b"data: 1\n\n").await.expect("an event");
    let left = SystemTime::now();
    drop(client);
    let took = since(left, engine.gone().await);
    assert!(took < AT_ONCE, "{took:?}");
    proxy.is_empty().await;
}

/// With bytes that stay in the kernel nothing can be seen: the failed heartbeat tells.
#[tokio::test]
async fn client_gone_behind_a_mass_of_pipelined_bytes_is_found_by_the_failed_heartbeat() {
    let mut engine = silent(EVENTS.to_owned() + &chunk("data: 1\n\n")).await;
    let proxy = start(config(engine.address)).await;
    let mut client = proxy.connect().await;
    client.send(GET).await;
    client.until(b"data: 1\n\n").await.expect("an event");
    client.send(GET.repeat(4_000)).await;
    let left = SystemTime::now();
    drop(client);
    let took = since(left, engine.gone().await);
    assert!(took < 3 * INTERVAL, "{took:?}");
    proxy.is_empty().await;
}

/// Case 39: a half-closing client is taken for gone, which is the documented default.
#[tokio::test]
async fn half_close_means_gone_by_default() {
    let mut engine = silent(EVENTS.to_owned() + &chunk("data: 1\n\n")).await;
    let proxy = start(config(engine.address)).await;
    let mut client = proxy.connect().await;
    client.send(GET).await;
    client.until(b"data: 1\n\n").await.expect("an event");
    client.socket.shutdown().await.expect("a socket");
    engine.gone().await;
    proxy.is_empty().await;
}

/// Case 39: or it is served to the end, where the operator says so.
#[tokio::test]
async fn half_close_is_served_to_the_end_where_the_operator_says_so() {
    let engine = Engine::start(|mut peer, _| async move {
        peer.send(EVENTS.to_owned() + &chunk("data: 1\n\n")).await;
        sleep(2 * INTERVAL).await;
        peer.send(chunk("data: 2\n\n") + "0\r\n\r\n").await;
        Some(peer)
    })
    .await;
    let mut config = config(engine.address);
    config.half_close = HalfClose::Serve;
    let proxy = start(config).await;
    let mut client = proxy.connect().await;
    client.send(GET).await;
    client.socket.shutdown().await.expect("a socket");
    let answer = client.answer().await;
    assert_eq!(answer.end, End::Whole);
    assert!(answer.text().starts_with("data: 1\n\n") && answer.text().contains("data: 2\n\n"), "{answer:?}");
    proxy.is_empty().await;
}

/// What a client reads when an engine sends `sent` and dies.
async fn after(sent: String, path: &str, version: &str) -> super::support::Answer {
    let engine = Engine::start(move |mut peer: Peer, _| {
        let sent = sent.clone();
        async move {
            peer.send(sent).await;
            sleep(Duration::from_millis(20)).await; // a reset must not overtake what was sent
            peer.reset();
            None
        }
    })
    .await;
    let proxy = start(config(engine.address)).await;
    let mut client = proxy.connect().await;
    client.send(format!("POST {path} {version}\r\nhost: a\r\ncontent-length: 15\r\n\r\n{{\"stream\":true}}")).await;
    let answer = soon(path, client.answer()).await;
    drop(client);
    proxy.is_empty().await;
    answer
}

/// Case 31, and case 14: the error arrives in the stream, then the stream is aborted, without a `[DONE]`.
#[tokio::test]
async fn engine_dies_between_events_and_the_client_reads_an_error_and_an_abort() {
    let answer = after(EVENTS.to_owned() + &chunk("data: 1\n\n"), "/v1/chat/completions", "HTTP/1.1").await;
    let (first, rest) = answer.text().split_at("data: 1\n\n".len());
    assert_eq!(first, "data: 1\n\n");
    assert!(rest.starts_with("data: {\"error\":{\"message\":") && rest.ends_with("}\n\n"), "{rest}");
    assert!(!rest.contains("[DONE]"));
    assert_eq!(answer.end, End::Closed, "an abort of chunks is a missing last one");
}

/// Case 31: an error must not be glued onto half an event.
#[tokio::test]
async fn engine_dies_inside_an_event_and_nothing_is_written_into_it() {
    let answer =
        after(EVENTS.to_owned() + &chunk("data: 1\n\ndata: {\"half"), "/v1/chat/completions", "HTTP/1.1").await;
    // A reset, which every SDK takes for a lost connection; a close in the middle of chunks is a protocol error to some.
    assert_eq!((answer.text(), answer.end), ("data: 1\n\ndata: {\"half", End::Reset));
}

/// Case 40: nginx up to 1.29.6 speaks HTTP/1.0, and takes a FIN for a whole answer.
#[tokio::test]
async fn an_abort_towards_http_1_0_is_a_reset() {
    for sent in ["data: 1\n\n", "data: 1\n\ndata: {\"half"] {
        let answer = after(EVENTS.to_owned() + &chunk(sent), "/v1/chat/completions", "HTTP/1.0").await;
        assert!(answer.text().starts_with(sent), "{answer:?}");
        assert_eq!(answer.end, End::Reset);
    }
}

#[tokio::test]
async fn a_whole_answer_towards_http_1_0_ends_with_a_fin() {
    let engine = Engine::answering(EVENTS.to_owned() + &chunk("data: [DONE]\n\n") + "0\r\n\r\n").await;
    let proxy = start(config(engine.address)).await;
    let mut client = proxy.connect().await;
    client.send("GET / HTTP/1.0\r\n\r\n").await;
    let answer = client.answer().await;
    assert_eq!((answer.text(), answer.end), ("data: [DONE]\n\n", End::Closed));
}

#[tokio::test]
async fn a_plain_answer_that_breaks_off_is_short_of_its_length() {
    let sent = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 100\r\n\r\nhalf".to_owned();
    let answer = after(sent, "/file", "HTTP/1.1").await;
    assert_eq!((answer.text(), answer.end), ("half", End::Closed));
}

#[tokio::test]
async fn engine_down_is_a_502_in_the_apis_own_shape() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let proxy = start(config(address)).await;
    let mut client = proxy.connect().await;
    for (path, key) in
        [("/v1/chat/completions", "/error/code"), ("/v1/messages", "/error/type"), ("/api/chat", "/error")]
    {
        let answer = client.get(path).await;
        assert_eq!((answer.status, answer.field("content-type")), (502, Some("application/json")));
        let json: serde_json::Value = serde_json::from_slice(&answer.body).expect("JSON");
        assert!(json.pointer(key).is_some_and(serde_json::Value::is_string), "{path}: {json}");
    }
    drop(client);
    proxy.is_empty().await;
}

#[tokio::test]
async fn an_engine_that_dies_before_it_answers_is_a_502() {
    let engine = Engine::start(|_, _| async { None }).await;
    let proxy = start(config(engine.address)).await;
    let answer = proxy.connect().await.get("/v1/models").await;
    assert_eq!(answer.status, 502);
}

#[tokio::test]
async fn an_engine_that_speaks_no_http_is_a_502() {
    let engine = Engine::answering("SSH-2.0-OpenSSH_9.9\r\n\r\n").await;
    let proxy = start(config(engine.address)).await;
    let answer = proxy.connect().await.get("/").await;
    assert_eq!(answer.status, 502);
    assert!(answer.text().contains("engine_protocol"), "{answer:?}");
}

#[tokio::test]
async fn an_engine_that_is_too_slow_is_a_504_where_the_operator_sets_a_limit() {
    let mut engine = silent(String::new()).await;
    let mut config = config(engine.address);
    engine_of(&mut config).response_timeout = Some(Duration::from_millis(100));
    let proxy = start(config).await;
    let mut client = proxy.connect().await;
    let answer = client.get("/v1/chat/completions").await;
    assert_eq!(answer.status, 504);
    engine.gone().await;
    // The connection is still good.
    assert_eq!(client.get("/v1/chat/completions").await.status, 504);
}

#[tokio::test]
async fn a_body_that_falls_silent_is_ended_where_the_operator_sets_a_limit() {
    let mut engine = silent(EVENTS.to_owned() + &chunk("data: 1\n\n")).await;
    let mut config = config(engine.address);
    engine_of(&mut config).body_idle = Some(3 * INTERVAL);
    let proxy = start(config).await;
    let mut client = proxy.connect().await;
    client.send(GET).await;
    let answer = client.answer().await;
    assert!(answer.text().contains("\"error\""), "{answer:?}");
    assert_eq!(answer.end, End::Closed);
    engine.gone().await;
}

/// Case 29: a limit on idleness acted as one on the whole, and killed a live stream.
#[tokio::test]
async fn limits_on_idleness_never_act_as_totals() {
    let engine = Engine::start(|mut peer, _| async move {
        peer.send(EVENTS).await;
        for _ in 0..8 {
            sleep(INTERVAL / 2).await;
            peer.send(chunk("data: 1\n\n")).await;
        }
        peer.send("0\r\n\r\n").await;
        Some(peer)
    })
    .await;
    let mut config = config(engine.address);
    config.limits.header_timeout = Duration::from_millis(150);
    let heart = engine_of(&mut config);
    (heart.body_idle, heart.response_timeout) = (Some(2 * INTERVAL), Some(2 * INTERVAL));
    heart.heart.max_silence = Some(2 * INTERVAL);
    let proxy = start(config).await;
    let answer = proxy.connect().await.get("/v1/events").await;
    assert_eq!((answer.text().matches("data: 1").count(), answer.end), (8, End::Whole), "{answer:?}");
}

/// Case 33, and case 18: the engine's own comments and pings passed for progress for ever.
#[tokio::test]
async fn only_content_keeps_a_stream_from_its_longest_silence() {
    let engine = Engine::start(|mut peer, _| async move {
        peer.send(EVENTS.to_owned() + &chunk("data: {\"choices\":[{}]}\n\n")).await;
        for _ in 0..100 {
            peer.socket.write_all(chunk(": keep-alive\n\n").as_bytes()).await.ok()?;
            sleep(INTERVAL / 4).await;
        }
        None
    })
    .await;
    let mut config = config(engine.address);
    engine_of(&mut config).heart.max_silence = Some(4 * INTERVAL);
    let proxy = start(config).await;
    let mut client = Client::to(proxy.address).await;
    client.send(GET).await;
    let answer = client.answer().await;
    assert!(answer.text().contains("max_silence"), "{answer:?}");
    drop(client);
    proxy.is_empty().await;
}

/// Case 30: an event was passed only when the next one came.
#[tokio::test]
async fn an_event_is_passed_whole_at_once() {
    let engine = silent(EVENTS.to_owned() + &chunk("data: 1\r\r")).await;
    let mut config = config(engine.address);
    engine_of(&mut config).heart.interval = Duration::from_secs(60);
    let proxy = start(config).await;
    let mut client = proxy.connect().await;
    client.send(GET).await;
    client.until(b"data: 1\r\r").await.expect("the event");
}

/// Case 20: a `102 Processing` does not stop a cut; only body bytes count, and they do not come from it.
#[tokio::test]
async fn interim_answers_do_not_pass_for_the_answer() {
    let interim = "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n";
    let engine = Engine::answering(format!("{interim}{}", plain("text/plain", "done"))).await;
    let proxy = start(config(engine.address)).await;
    let answer = proxy.connect().await.get("/").await;
    assert_eq!((answer.status, answer.text()), (200, "done"));
}
