//! The admin listener on real sockets: health, metrics, live streams, the page and its feed.

use std::net::SocketAddr;
use std::time::Duration;

use heartline_cli::proxy::{Config, Proxy};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::support::{Answer, Client, EVENTS, Engine, INTERVAL, Running, chunk, config, engine_of, plain, soon, start};

/// A proxy with an admin listener, and where that is.
async fn start_with_admin(mut config: Config) -> (Running, SocketAddr) {
    config.admin = Some("127.0.0.1:0".parse().expect("an address"));
    let proxy = Proxy::bind(config).await.expect("a proxy");
    let (address, admin, handle) = (proxy.local_addr(), proxy.admin_addr().expect("asked for"), proxy.handle());
    let mut task = JoinSet::new();
    task.spawn(proxy.run());
    (Running { address, handle, task }, admin)
}

/// An engine that begins an event stream and then is silent until the proxy lets go.
async fn silent() -> Engine {
    Engine::start(|mut peer, head| async move {
        if head.starts_with("GET /plain") {
            peer.send(plain("text/plain", "ok")).await;
            return Some(peer);
        }
        peer.send(EVENTS.to_owned() + &chunk("data: 1\n\n")).await;
        peer.until_gone().await;
        None
    })
    .await
}

/// Asks for `path` by the name of `host`.
async fn get(client: &mut Client, host: &str, path: &str) -> Answer {
    client.send(format!("GET {path} HTTP/1.1\r\nhost: {host}\r\n\r\n")).await;
    client.answer().await
}

async fn json(admin: SocketAddr, path: &str) -> serde_json::Value {
    let answer = get(&mut Client::to(admin).await, "localhost", path).await;
    assert_eq!((answer.status, answer.field("content-type")), (200, Some("application/json")));
    serde_json::from_slice(&answer.body).expect("JSON")
}

/// The data of the next event.
async fn event(client: &mut Client) -> serde_json::Value {
    let event = client.until(b"\n\n").await.expect("an event");
    let event = String::from_utf8(event).expect("text");
    let data = event.lines().find_map(|line| line.strip_prefix("data: "));
    serde_json::from_str(data.expect("data")).expect("JSON")
}

#[tokio::test]
async fn health_is_told_through_a_drain() {
    let engine = silent().await;
    let (proxy, admin) = start_with_admin(config(engine.address)).await;
    let mut client = proxy.connect().await;
    client.send("GET /v1/events HTTP/1.1\r\nhost: a\r\n\r\n").await;
    client.until(b"data: 1\n\n").await.expect("an event");
    let mut operator = Client::to(admin).await;
    for (path, status, text) in [("/healthz", 200, "alive\n"), ("/readyz", 200, "ready\n"), ("/nothing", 404, "try /")]
    {
        let answer = get(&mut operator, "127.0.0.1", path).await;
        assert_eq!((answer.status, answer.text().starts_with(text)), (status, true), "{path}: {}", answer.text());
    }
    proxy.handle.drain();
    for (path, status, text) in [("/healthz", 200, "alive\n"), ("/readyz", 503, "draining")] {
        let answer = get(&mut operator, "127.0.0.1", path).await;
        assert_eq!((answer.status, answer.text()), (status, text));
    }
}

#[tokio::test]
async fn live_streams_are_listed_with_what_is_known_of_them() {
    let engine = silent().await;
    let (proxy, admin) = start_with_admin(config(engine.address)).await;
    let mut client = proxy.connect().await;
    client.send("GET /v1/chat%3Cb%3E?key=secret HTTP/1.1\r\nhost: a\r\nuser-agent: curl/8\r\n\r\n").await;
    client.until(b"data: 1\n\n").await.expect("an event");
    client.until(b"1\r\n\n\r\n").await.expect("a heartbeat");
    client.until(b"1\r\n\n\r\n").await.expect("another");

    let listed = json(admin, "/streams").await;
    assert_eq!(listed["total"], 1);
    let stream = &listed["streams"][0];
    assert_eq!(stream["path"], "/v1/chat%3Cb%3E", "as it came, without the query");
    assert_eq!((&stream["upstream"], &stream["form"]), (&"engine".into(), &"newline-between".into()));
    assert_eq!((&stream["bytes"], &stream["format"]), (&9.into(), &"text/event-stream".into()));
    assert!(stream["heartbeats"].as_u64() >= Some(2) && stream["age_ms"].as_u64() >= Some(100), "{stream}");
    assert!(stream["bridged_ms"].as_u64() >= Some(75) && stream["silence_ms"].as_u64() < Some(1_000), "{stream}");

    assert_eq!(json(admin, "/streams?limit=0").await["streams"].as_array().map(Vec::len), Some(0));
    let answer = get(&mut Client::to(admin).await, "localhost", "/streams?limit=all").await;
    assert_eq!(answer.status, 400);
    drop(client);
    proxy.is_empty().await;
    assert_eq!(json(admin, "/streams").await["total"], 0);
    let totals = proxy.handle.totals();
    assert_eq!((totals.len(), totals[0].interval, totals[0].totals.streams), (1, INTERVAL, 1));
    assert!(totals[0].is_in_use && totals[0].totals.heartbeats >= 2);
}

#[tokio::test]
async fn metrics_of_the_library_and_of_the_proxy_are_described_and_rendered() {
    let engine = silent().await;
    let (proxy, admin) = start_with_admin(config(engine.address)).await;
    assert_eq!(proxy.connect().await.get("/plain").await.status, 200);
    let mut client = proxy.connect().await;
    client.send("GET /v1/events HTTP/1.1\r\nhost: a\r\n\r\n").await;
    client.until(b"1\r\n\n\r\n").await.expect("a heartbeat");
    client.until(b"1\r\n\n\r\n").await.expect("another, so that the first is told");

    let answer = get(&mut Client::to(admin).await, "localhost", "/metrics").await;
    assert_eq!(answer.field("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    let text = answer.text();
    let names = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    let undescribed: Vec<_> = names.filter(|name| !text.contains(&format!("# HELP {name} "))).collect();
    assert!(undescribed.is_empty(), "{undescribed:?}");
    for part in [
        "heartline_streams_active ",
        "heartline_heartbeats_total{result=\"sent\"} ",
        "heartline_silence_seconds_bucket{le=\"30\"} ",
        "heartline_sweep_lag_seconds_count ",
        "heartline_proxy_ready ",
        "heartline_proxy_connections ",
        "heartline_proxy_exchanges ",
        "heartline_proxy_tunnels ",
        "heartline_proxy_reloads_total ",
        "heartline_proxy_exchanges_total{status=\"2xx\"} ",
        "heartline_proxy_bytes_total ",
        "heartline_proxy_cuts_avoided_total{limit_seconds=\"100\"} ",
    ] {
        assert!(text.lines().any(|line| line.starts_with(part)), "no {part} in\n{text}");
    }
    assert!(!text.contains("/plain"), "no series for a path");
}

#[tokio::test]
async fn the_page_is_served_whole_and_may_load_nothing_else() {
    let engine = silent().await;
    let (_proxy, admin) = start_with_admin(config(engine.address)).await;
    let mut operator = Client::to(admin).await;
    for (path, content_type) in [
        ("/", "text/html; charset=utf-8"),
        ("/page.css", "text/css; charset=utf-8"),
        ("/page.js", "text/javascript; charset=utf-8"),
        ("/icon.svg", "image/svg+xml"),
    ] {
        let answer = get(&mut operator, "localhost", path).await;
        assert_eq!((answer.status, answer.field("content-type")), (200, Some(content_type)), "{path}");
        let policy = answer.field("content-security-policy").expect("a policy");
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        let text = answer.text().replace("http://www.w3.org/2000/svg", "");
        assert!(!text.contains("://"), "{path} names another place");
        for forbidden in
            ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", " style=", " onclick="]
        {
            assert!(!text.contains(forbidden), "{path} has {forbidden}");
        }
    }
}

#[tokio::test]
async fn the_feed_sends_a_snapshot_at_once_and_one_a_second() {
    let engine = silent().await;
    let (proxy, admin) = start_with_admin(config(engine.address)).await;
    let mut watcher = Client::to(admin).await;
    watcher.send("GET /events HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    assert_eq!(watcher.head().await.field("content-type"), Some("text/event-stream"));
    let first = event(&mut watcher).await;
    assert_eq!(
        (&first["streams"], &first["phase"], &first["interval_ms"]),
        (&0.into(), &"serving".into(), &100.into())
    );

    let mut client = proxy.connect().await;
    client.send("GET /v1/events HTTP/1.1\r\nhost: a\r\n\r\n").await;
    client.until(b"1\r\n\n\r\n").await.expect("a heartbeat");
    let second = event(&mut watcher).await;
    assert_eq!((&second["streams"], &second["worst"][0]["path"]), (&1.into(), &"/v1/events".into()));
    assert!(second["heartbeats"].as_u64() >= Some(1) && second["bridged_ms_max"].as_u64() >= Some(75), "{second}");
    let sum: u64 =
        second["silence"]["wire"].as_array().expect("slots").iter().filter_map(serde_json::Value::as_u64).sum();
    assert_eq!((sum, second["hops"].as_array().map(Vec::len)), (1, Some(heartline::hops::limits().len())));

    proxy.handle.drain();
    let third = event(&mut watcher).await;
    assert_eq!(third["phase"], "draining", "operators see the end too");
}

#[tokio::test]
async fn watchers_are_bounded_and_make_room_when_they_leave() {
    let engine = silent().await;
    let (_proxy, admin) = start_with_admin(config(engine.address)).await;
    let subscribe = async || {
        let mut watcher = Client::to(admin).await;
        watcher.send("GET /events HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
        let status = watcher.head().await.status;
        (watcher, status)
    };
    let mut watchers = Vec::new();
    let refused = loop {
        let (watcher, status) = subscribe().await;
        match status {
            200 => watchers.push(watcher),
            status => break status,
        }
        assert!(watchers.len() < 100, "no bound");
    };
    assert_eq!((refused, watchers.len()), (503, 32));
    watchers.clear();
    let taken_again = async {
        while subscribe().await.1 != 200 {
            sleep(Duration::from_millis(5)).await;
        }
    };
    soon("a place for a new page", taken_again).await;
}

#[tokio::test]
async fn only_looking_is_allowed_and_only_by_who_means_this_machine() {
    let engine = silent().await;
    let (_proxy, admin) = start_with_admin(config(engine.address)).await;
    let mut operator = Client::to(admin).await;
    operator.send("POST /readyz HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n").await;
    let answer = operator.answer().await;
    assert_eq!((answer.status, answer.field("allow")), (405, Some("GET, HEAD")));
    assert_eq!(get(&mut operator, "rebound.example", "/streams").await.status, 403);
    assert_eq!(get(&mut operator, "[::1]:9900", "/streams").await.status, 200);
}

#[tokio::test]
async fn without_an_admin_address_nothing_listens() {
    let engine = silent().await;
    let mut settings = config(engine.address);
    engine_of(&mut settings).heart.interval = INTERVAL;
    assert_eq!(Proxy::bind(settings.clone()).await.expect("a proxy").admin_addr(), None);
    assert_eq!(start(settings).await.connect().await.get("/plain").await.status, 200);
}
