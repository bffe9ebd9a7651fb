//! What a hop changes in a message's fields, and what it leaves: requests as the engine reads them, responses as the client
//! does.

use std::time::Duration;

use heartline::Form;
use heartline_cli::proxy::{Consent, FormChoice, HostHeader, Upstream};

use super::support::{EVENTS, Engine, INTERVAL, Peer, chunk, config, engine_of, plain, start};

fn lines(head: &str) -> Vec<String> {
    head.lines().skip(1).filter(|line| !line.is_empty()).map(str::to_ascii_lowercase).collect()
}

fn field<'a>(lines: &'a [String], name: &str) -> Vec<&'a str> {
    lines.iter().filter_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).collect()
}

#[tokio::test]
async fn hop_by_hop_fields_stop_here_and_end_to_end_fields_pass() {
    let answer = "HTTP/1.1 200 OK\r\nconnection: keep-alive, x-hop\r\nx-hop: 1\r\nkeep-alive: timeout=5\r\n\
                  set-cookie: a=1\r\nset-cookie: b=2\r\nx-end: kept\r\ncontent-length: 2\r\n\r\nok";
    let mut engine = Engine::answering(answer).await;
    let proxy = start(config(engine.address)).await;
    let mut client = proxy.connect().await;
    client
        .send(
            "GET /a?b=%20c HTTP/1.1\r\nHost: chat.example\r\nConnection: X-One\r\nConnection: x-two , close\r\nX-One: 1\r\n\
             X-Two: 2\r\nX-Three: 3\r\nTE: trailers\r\nProxy-Authorization: basic secret\r\nUpgrade: h2c\r\n\
             X-Same: 1\r\nX-Same: 2\r\ntraceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n\r\n",
        )
        .await;
    let answer = client.answer().await;
    let head = engine.request().await;
    assert!(head.starts_with("GET /a?b=%20c HTTP/1.1\r\n"), "{head}");
    let asked = lines(&head);
    for gone in ["x-one", "x-two", "proxy-authorization", "upgrade"] {
        assert_eq!(field(&asked, gone), [""; 0], "{gone}");
    }
    assert_eq!(field(&asked, "x-three"), ["3"]);
    assert_eq!(field(&asked, "x-same"), ["1", "2"]);
    assert_eq!((field(&asked, "te"), field(&asked, "connection")), (vec!["trailers"], vec!["te"]));
    assert_eq!(field(&asked, "traceparent").len(), 1);
    assert_eq!(field(&asked, "x-forwarded-for"), ["127.0.0.1"]);
    assert_eq!(field(&asked, "x-forwarded-proto"), ["http"]);
    assert_eq!(field(&asked, "x-forwarded-host"), ["chat.example"]);
    assert!(field(&asked, "via")[0].starts_with("1.1 heartline-"));
    assert_eq!(answer.fields("set-cookie"), ["a=1", "b=2"]);
    assert_eq!((answer.field("x-end"), answer.field("x-hop"), answer.field("keep-alive")), (Some("kept"), None, None));
    assert_eq!(answer.text(), "ok");
}

#[tokio::test]
async fn the_engine_is_told_its_own_host_unless_the_operator_says_otherwise() {
    let mut engine = Engine::answering(plain("text/plain", "ok")).await;
    let own = engine.address.to_string();
    for (host, expected) in [
        (HostHeader::Upstream, own.as_str()),
        (HostHeader::Preserve, "chat.example"),
        (HostHeader::Name("ollama.internal".into()), "ollama.internal"),
    ] {
        let mut config = config(engine.address);
        engine_of(&mut config).host = host;
        let proxy = start(config).await;
        proxy.connect().await.get("/").await;
        let asked = lines(&engine.request().await);
        assert_eq!((field(&asked, "host"), field(&asked, "x-forwarded-host")), (vec![expected], vec!["chat.example"]));
    }
}

#[tokio::test]
async fn forwarded_fields_are_appended_for_trusted_peers_only() {
    let mut engine = Engine::answering(plain("text/plain", "ok")).await;
    for (trusted, expected) in [(vec![], "127.0.0.1"), (vec!["127.0.0.0/8".parse().unwrap()], "9.9.9.9, 127.0.0.1")] {
        let mut config = config(engine.address);
        config.trusted = trusted;
        let proxy = start(config).await;
        let mut client = proxy.connect().await;
        client.send("GET / HTTP/1.1\r\nhost: a\r\nx-forwarded-for: 9.9.9.9\r\n\r\n").await;
        client.answer().await;
        assert_eq!(field(&lines(&engine.request().await), "x-forwarded-for"), [expected]);
    }
}

/// A balancer passes on what its own clients wrote.
#[tokio::test]
async fn a_trusted_peers_malformed_fields_go_no_further() {
    let mut engine = Engine::answering(plain("text/plain", "ok")).await;
    let mut config = config(engine.address);
    config.trusted = vec!["127.0.0.0/8".parse().unwrap()];
    let proxy = start(config).await;
    let mut client = proxy.connect().await;
    client
        .send(
            "GET / HTTP/1.1\r\nhost: a\r\nx-forwarded-for: 1.1.1.1, <script>, 9.9.9.9\r\nx-forwarded-proto: file\r\n\
             x-forwarded-host: evil@b\r\nx-forwarded-port: 443\r\nforwarded: for=::1\r\nx-real-ip: me\r\n\r\n",
        )
        .await;
    assert_eq!(client.answer().await.text(), "ok");
    let asked = lines(&engine.request().await);
    let said: Vec<_> = asked.iter().filter(|line| line.contains("forwarded") || line.contains("real")).collect();
    assert_eq!(said.len(), 4, "{said:?}");
    assert_eq!(field(&asked, "x-forwarded-for"), ["9.9.9.9, 127.0.0.1"]);
    assert_eq!((field(&asked, "x-forwarded-proto"), field(&asked, "x-forwarded-host")), (vec!["http"], vec!["a"]));
    assert_eq!(field(&asked, "x-forwarded-port"), ["443"]);
}

#[tokio::test]
async fn an_absolute_target_reaches_the_configured_engine_only() {
    let mut engine = Engine::answering(plain("text/plain", "ok")).await;
    let proxy = start(config(engine.address)).await;
    let mut client = proxy.connect().await;
    client.send("GET http://169.254.169.254/latest/meta-data HTTP/1.1\r\nhost: a\r\n\r\n").await;
    assert_eq!(client.answer().await.text(), "ok");
    let head = engine.request().await;
    assert!(head.starts_with("GET /latest/meta-data HTTP/1.1\r\n"), "{head}");
    assert_eq!(field(&lines(&head), "x-forwarded-host"), ["169.254.169.254"]);
}

#[tokio::test]
async fn an_engines_own_path_is_put_before_each_requests() {
    let mut engine = Engine::answering(plain("text/plain", "ok")).await;
    let mut config = config(engine.address);
    config.upstreams = vec![Upstream::new("engine", format!("http://{}/base/", engine.address).parse().unwrap())];
    let proxy = start(config).await;
    proxy.connect().await.get("/v1/models?x=1").await;
    assert!(engine.request().await.starts_with("GET /base/v1/models?x=1 HTTP/1.1\r\n"));
}

#[tokio::test]
async fn a_request_that_has_passed_before_is_a_loop() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    // Two proxies, each the other's engine; one that is its own is refused at the start.
    let other = start(config(address)).await;
    let mut config = config(other.address);
    config.listen = address;
    let proxy = start(config).await;
    let answer = proxy.connect().await.get("/").await;
    assert_eq!(answer.status, 508);
}

/// Case 37: a content type in another case, `Connection` towards HTTP/2, `private` lost.
#[tokio::test]
async fn a_kept_answer_changes_in_exactly_its_promises() {
    let answer = "HTTP/1.1 200 OK\r\ncontent-type: Text/Event-Stream;charset=UTF-8\r\ncontent-length: 9\r\netag: \"1\"\r\n\
                  accept-ranges: bytes\r\ncache-control: private\r\nx-request-id: 7\r\n\r\ndata: 1\n\n";
    let engine = Engine::answering(answer).await;
    let proxy = start(config(engine.address)).await;
    let answer = proxy.connect().await.get("/v1/events").await;
    assert_eq!(answer.text(), "data: 1\n\n");
    let kept = lines(&answer.head);
    for gone in ["content-length", "etag", "accept-ranges"] {
        assert_eq!(field(&kept, gone), [""; 0], "{gone}");
    }
    assert_eq!(field(&kept, "content-type"), ["text/event-stream;charset=utf-8"]);
    assert_eq!(field(&kept, "cache-control"), ["private, no-transform"]);
    assert_eq!(field(&kept, "x-accel-buffering"), ["no"]);
    assert_eq!(field(&kept, "x-request-id"), ["7"]);
}

/// Case 16: compression held events and heartbeats back.
#[tokio::test]
async fn an_encoded_answer_is_left_alone_and_the_engine_is_asked_for_none() {
    let answer = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip\r\ncontent-length: 4\r\n\r\n\x1f\x08\x08\x08";
    let mut engine = Engine::answering(answer).await;
    let proxy = start(config(engine.address)).await;
    let mut client = proxy.connect().await;
    client.send("POST /x HTTP/1.1\r\nhost: a\r\naccept: text/event-stream\r\naccept-encoding: gzip, br\r\ncontent-length: 0\r\n\r\n").await;
    let answer = client.answer().await;
    assert_eq!(answer.body, b"\x1f\x08\x08\x08");
    assert_eq!(answer.field("content-length"), Some("4"));
    assert_eq!(answer.field("x-accel-buffering"), None);
    assert_eq!(field(&lines(&engine.request().await), "accept-encoding"), ["identity"]);
    // Not where nothing streams.
    client.send("GET /logo.svg HTTP/1.1\r\nhost: a\r\naccept-encoding: gzip, br\r\n\r\n").await;
    client.answer().await;
    assert_eq!(field(&lines(&engine.request().await), "accept-encoding"), ["gzip, br"]);
}

/// A stream without any heartbeat, since its encoding is called `none`.
#[tokio::test]
async fn an_encoding_called_none_is_none_and_the_stream_is_kept_alive() {
    for encoding in ["none", "None", "Identity", ","] {
        let head = EVENTS.replace("\r\n\r\n", &format!("\r\ncontent-encoding: {encoding}\r\n\r\n"));
        let engine = Engine::start(move |mut peer: Peer, _| {
            let sent = head.clone() + &chunk("data: 1\n\n");
            async move {
                peer.send(sent).await;
                tokio::time::sleep(Duration::from_millis(250)).await;
                peer.send(chunk("data: 2\n\n") + "0\r\n\r\n").await;
                Some(peer)
            }
        })
        .await;
        let proxy = start(config(engine.address)).await;
        let answer = proxy.connect().await.get("/events").await;
        let between = answer.text().strip_prefix("data: 1\n\n").and_then(|rest| rest.strip_suffix("data: 2\n\n"));
        assert!(between.is_some_and(|beats| !beats.is_empty() && beats.trim().is_empty()), "{encoding}: {answer:?}");
        assert_eq!(answer.field("content-encoding"), Some(encoding), "what the engine says is passed on");
    }
}

#[tokio::test]
async fn neighbours_of_the_known_types_are_left_alone() {
    for content_type in [
        "application/grpc-web+json",
        "multipart/x-mixed-replace; boundary=a",
        "application/json-seq",
        "application/problem+json",
    ] {
        let engine = Engine::answering(plain(content_type, "{}")).await;
        let proxy = start(config(engine.address)).await;
        let answer = proxy.connect().await.get("/").await;
        assert_eq!((answer.text(), answer.field("content-length")), ("{}", Some("2")), "{content_type}");
        assert_eq!(answer.field("x-accel-buffering"), None, "{content_type}");
    }
}

/// Case 32: whitespace before JSON is for those who ask for it, never before one interval, never inside.
#[tokio::test]
async fn json_gets_heartbeats_only_where_the_operator_asks_for_them() {
    let engine = Engine::start(|mut peer, _| async move {
        peer.send("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n").await;
        tokio::time::sleep(4 * INTERVAL).await;
        peer.send(chunk("{\"a\":")).await;
        tokio::time::sleep(2 * INTERVAL).await;
        peer.send(chunk("1}") + "0\r\n\r\n").await;
        Some(peer)
    })
    .await;
    for (consent, expected) in [(Consent::Never, "{\"a\":1}"), (Consent::Always, "\n\n{\"a\":1}")] {
        let mut config = config(engine.address);
        engine_of(&mut config).heart.json = consent;
        let proxy = start(config).await;
        let answer = proxy.connect().await.get("/").await;
        assert!(answer.text().ends_with(expected), "{answer:?}");
        assert!(consent == Consent::Always || answer.text() == expected, "{answer:?}");
    }
}

/// The form: the route's own, or the request's where the operator allows it, and that field goes no further.
#[tokio::test]
async fn the_form_is_the_routes_and_the_requests_where_it_may() {
    let mut engine = Engine::start(|mut peer, _| async move {
        peer.send(EVENTS).await;
        tokio::time::sleep(3 * INTERVAL).await;
        peer.send(chunk("data: 1\n\n") + "0\r\n\r\n").await;
        Some(peer)
    })
    .await;
    let mut config = config(engine.address);
    engine_of(&mut config).heart.heartbeat = FormChoice::Form(Form::comment());
    engine_of(&mut config).heart.heartbeat_header = Some("x-heartbeat".parse().unwrap());
    let proxy = start(config).await;
    for (asked, expected) in
        [("", ":\n"), ("x-heartbeat: block:still here\r\n", ": still here\n\n"), ("x-heartbeat: nonsense\r\n", ":\n")]
    {
        let mut client = proxy.connect().await;
        client.send(format!("GET /v1/events HTTP/1.1\r\nhost: a\r\n{asked}\r\n")).await;
        let answer = client.answer().await;
        assert!(answer.text().starts_with(expected), "{asked}: {answer:?}");
        assert!(!engine.request().await.contains("x-heartbeat"));
    }
}
