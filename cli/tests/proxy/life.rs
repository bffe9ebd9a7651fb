//! A proxy's own life: drain, stop, reload, and counts that return to zero.

use std::time::Duration;

use heartline_cli::proxy::{Phase, Upstream};
use tokio::time::{sleep, timeout};

use super::support::{EVENTS, End, Engine, INTERVAL, PATIENCE, Running, chunk, config, engine_of, plain, soon, start};

/// An engine that sends an event, is silent for `silence`, and ends well.
async fn slow(silence: Duration) -> Engine {
    Engine::start(move |mut peer, head| async move {
        if head.starts_with("GET /plain") {
            peer.send(plain("text/plain", "ok")).await;
            return Some(peer);
        }
        if head.starts_with("GET /waits") {
            sleep(silence).await;
        }
        peer.send(EVENTS.to_owned() + &chunk("data: 1\n\n")).await;
        if timeout(silence, peer.socket.readable()).await.is_ok() {
            peer.until_gone().await;
            return None;
        }
        peer.send(chunk("data: [DONE]\n\n") + "0\r\n\r\n").await;
        Some(peer)
    })
    .await
}

async fn ended(proxy: &mut Running) -> usize {
    soon("the proxy ends", proxy.task.join_next()).await.expect("a task").expect("no panic")
}

/// Case 7: open event streams blocked a graceful shutdown for ever.
#[tokio::test]
async fn drain_lets_streams_go_on_with_heartbeats_and_takes_no_new_requests() {
    let engine = slow(4 * INTERVAL).await;
    let mut proxy = start(config(engine.address)).await;
    let (mut first, mut idle, mut waits) = (proxy.connect().await, proxy.connect().await, proxy.connect().await);
    first.send("GET /v1/events HTTP/1.1\r\nhost: a\r\n\r\n").await;
    first.until(b"data: 1\n\n").await.expect("an event");
    waits.send("GET /waits HTTP/1.1\r\nhost: a\r\n\r\n").await;
    assert_eq!(idle.get("/plain").await.status, 200);
    sleep(Duration::from_millis(10)).await;
    proxy.handle.drain();
    assert_eq!(idle.until(b"never").await, Err(End::Closed), "an idle connection is closed");
    assert_eq!(proxy.handle.state().phase, Phase::Draining);
    let refused = tokio::net::TcpStream::connect(proxy.address).await;
    assert!(refused.is_err(), "no new connections");
    let rest = first.until(b"data: [DONE]\n\n\r\n0\r\n\r\n").await.expect("the stream goes on to its own end");
    assert!(rest.windows(3).any(|window| window == b"1\r\n"), "heartbeats too: {rest:?}");
    // A request that was waiting for its engine is served too, and not ended by the drain as it begins.
    let answer = waits.answer().await;
    assert_eq!((answer.status, answer.end), (200, End::Whole));
    assert!(answer.text().ends_with("data: [DONE]\n\n") && !answer.text().contains("error"), "{answer:?}");
    assert_eq!(ended(&mut proxy).await, 0);
    proxy.is_empty().await;
}

#[tokio::test]
async fn drain_ends_streams_at_the_deadline_with_an_error_event() {
    let mut engine = slow(PATIENCE).await;
    let mut config = config(engine.address);
    config.drain_timeout = 2 * INTERVAL;
    let mut proxy = start(config).await;
    let mut client = proxy.connect().await;
    client.send("POST /v1/messages HTTP/1.1\r\nhost: a\r\ncontent-length: 15\r\n\r\n{\"stream\":true}").await;
    client.until(b"data: 1\n\n\r\n").await.expect("an event");
    let mut waits = proxy.connect().await;
    waits.send("GET /waits HTTP/1.1\r\nhost: a\r\n\r\n").await;
    sleep(Duration::from_millis(10)).await;
    proxy.handle.drain();
    let rest = client.until(b"0\r\n\r\n").await.expect("a clean end");
    let rest = String::from_utf8(rest).expect("text");
    assert!(rest.contains("\"error\""), "{rest}");
    assert_eq!(waits.answer().await.status, 503, "what had no answer yet gets one");
    assert_eq!(ended(&mut proxy).await, 0);
    engine.gone().await;
    proxy.is_empty().await;
}

#[tokio::test]
async fn drain_cuts_what_is_inside_an_event_after_its_deadline() {
    let engine = Engine::start(|mut peer, _| async move {
        peer.send(EVENTS.to_owned() + &chunk("data: {\"half")).await;
        peer.until_gone().await;
        None
    })
    .await;
    let mut config = config(engine.address);
    config.drain_timeout = Duration::from_millis(50);
    let mut proxy = start(config).await;
    let mut client = proxy.connect().await;
    client.send("GET /v1/events HTTP/1.1\r\nhost: a\r\n\r\n").await;
    client.until(b"half\r\n").await.expect("half an event");
    proxy.handle.drain();
    assert_eq!(client.until(b"error").await, Err(End::Reset), "nothing is written into a torn event");
    ended(&mut proxy).await;
    proxy.is_empty().await;
}

#[tokio::test]
async fn a_second_signal_ends_everything_now() {
    let mut engine = slow(PATIENCE).await;
    let mut proxy = start(config(engine.address)).await;
    let mut client = proxy.connect().await;
    client.send("GET /v1/events HTTP/1.1\r\nhost: a\r\n\r\n").await;
    client.until(b"data: 1\n\n\r\n").await.expect("an event");
    proxy.handle.drain();
    sleep(Duration::from_millis(20)).await;
    proxy.handle.stop_now();
    assert_eq!(ended(&mut proxy).await, 1, "one was cut");
    assert_ne!(client.until(b"0\r\n\r\n").await.map(drop), Ok(()), "a cut is no clean end");
    engine.gone().await;
    proxy.is_empty().await;
}

#[tokio::test]
async fn reload_changes_requests_to_come_and_drops_no_stream() {
    let (old, new) = (slow(3 * INTERVAL).await, Engine::answering(plain("text/plain", "new")).await);
    let settings = config(old.address);
    let proxy = start(settings.clone()).await;
    let mut stream = proxy.connect().await;
    stream.send("GET /v1/events HTTP/1.1\r\nhost: a\r\n\r\n").await;
    stream.until(b"data: 1\n\n").await.expect("an event");
    let mut other = proxy.connect().await;
    assert_eq!(other.get("/plain").await.text(), "ok");
    let mut changed = settings.clone();
    changed.upstreams = vec![Upstream::new("engine", format!("http://{}", new.address).parse().expect("an address"))];
    engine_of(&mut changed).heart.interval = 2 * INTERVAL;
    proxy.handle.reload(changed).expect("a good config");
    assert_eq!(proxy.handle.state().reloads, 1);
    assert_eq!(other.get("/plain").await.text(), "new", "on the same connection");
    let rest = stream.until(b"data: [DONE]\n\n\r\n0\r\n\r\n").await.expect("the stream lives on");
    assert!(rest.windows(4).any(|window| window == b"\n\n\r\n"), "with its heartbeats");
    drop((stream, other));
    proxy.is_empty().await;
}

/// Its broadcaster has no stream yet when the settings no longer name it.
#[tokio::test]
async fn a_request_that_waits_through_a_reload_is_listed_and_drained_like_any_other() {
    let engine = slow(3 * INTERVAL).await;
    let mut settings = config(engine.address);
    settings.drain_timeout = Duration::ZERO;
    let mut proxy = start(settings.clone()).await;
    let mut waits = proxy.connect().await;
    waits.send("GET /waits HTTP/1.1\r\nhost: a\r\n\r\n").await;
    sleep(INTERVAL).await;
    engine_of(&mut settings).heart.interval = 2 * INTERVAL;
    proxy.handle.reload(settings).expect("a good config");
    waits.until(b"data: 1\n\n").await.expect("an event");
    assert_eq!(proxy.handle.state().streams, 1);
    proxy.handle.drain();
    let rest = waits.until(b"0\r\n\r\n").await.expect("an end at an event boundary");
    assert!(String::from_utf8_lossy(&rest).contains("\"drained\""), "{rest:?}");
    assert_eq!(ended(&mut proxy).await, 0);
}

#[tokio::test]
async fn a_bad_config_is_refused_and_the_old_one_stays() {
    let engine = slow(INTERVAL).await;
    let settings = config(engine.address);
    let proxy = start(settings.clone()).await;
    let mut none = settings.clone();
    none.upstreams.clear();
    let mut elsewhere = settings.clone();
    elsewhere.listen = "127.0.0.1:1".parse().expect("an address");
    let mut never = settings.clone();
    engine_of(&mut never).heart.interval = Duration::ZERO;
    let mut unknown = settings.clone();
    engine_of(&mut unknown).url = "ftp://127.0.0.1:1".parse().expect("an address");
    for bad in [none, elsewhere, never, unknown] {
        let error = proxy.handle.reload(bad).expect_err("a bad config");
        assert!(error.is_config() && !error.to_string().contains('\n'), "{error}");
    }
    assert_eq!(proxy.handle.state().reloads, 0);
    assert_eq!(proxy.connect().await.get("/plain").await.text(), "ok");
}

#[tokio::test]
async fn a_stream_is_listed_as_long_as_it_lives() {
    let engine = slow(3 * INTERVAL).await;
    let proxy = start(config(engine.address)).await;
    let mut client = proxy.connect().await;
    client.send("GET /v1/events?key=secret HTTP/1.1\r\nhost: a\r\n\r\n").await;
    client.until(b"data: 1\n\n\r\n").await.expect("an event");
    client.until(b"\n\r\n").await.expect("a heartbeat");
    let streams = proxy.handle.streams();
    let [stream] = &streams[..] else { panic!("{streams:?}") };
    assert_eq!((stream.path.as_str(), &*stream.upstream, stream.bytes), ("/v1/events", "engine", 9));
    assert_eq!((stream.form.as_str(), stream.interval), ("newline-between", INTERVAL));
    assert!(stream.heartbeats >= 1 && stream.age > Duration::ZERO, "{stream:?}");
    client.until(b"0\r\n\r\n").await.expect("the end");
    drop(client);
    proxy.is_empty().await;
}
