//! The engine with the library in it: heartbeats in every format, none where they were not asked for.

use crate::client::{Answer, STREAM, Served, events, quick, soon, text, until};
use heartline_cli::sim::{Heartbeat, Script, Settings};
use http::{Method, Request};
use http_body_util::BodyExt;
use std::time::Duration;

fn beating(heartbeat: &str) -> Settings {
    Settings {
        heartbeat: heartbeat.parse().unwrap(),
        interval: Duration::from_millis(100), // the least that the library takes
        ttft: "350ms".parse().unwrap(),
        ..quick()
    }
}

#[tokio::test]
async fn heartbeats_fill_the_wait_and_change_no_event() {
    let served = Served::start(beating("newline")).await;
    let answer = served.post("/v1/chat/completions", STREAM).await;
    let (text, expected) = (answer.text(), served.expected("/v1/chat/completions", STREAM));
    let beats = text.find('d').unwrap();
    assert!(beats >= 2 && text.starts_with(&"\n".repeat(beats)), "{beats} heartbeats");
    assert_eq!(events(&text), events(std::str::from_utf8(&expected).unwrap()));
    assert_eq!(&text.as_bytes()[beats..], &expected[..]);
}

#[tokio::test]
async fn ndjson_gets_spaces_at_the_start_of_a_line() {
    let served = Served::start(beating("newline")).await;
    let text = served.post("/api/chat", "").await.text();
    assert!(text.starts_with("  "), "{text:?}");
    assert_eq!(text.trim_start_matches(' ').as_bytes(), &served.expected("/api/chat", "")[..]);
}

#[tokio::test]
async fn json_is_left_alone_unless_asked() {
    let served = Served::start(beating("newline")).await;
    let answer = served.post("/v1/messages", "{}").await;
    assert!(answer.headers.contains_key("content-length"));
    assert_eq!(answer.bytes(), served.expected("/v1/messages", "{}"));

    let asked = Served::start(Settings { heartbeat_json: true, ..beating("newline") }).await;
    let answer = asked.post("/v1/messages", "{}").await;
    let text = answer.text();
    assert!(text.starts_with("\n\n"), "{text:?}");
    assert_eq!(text.trim_start().as_bytes(), &asked.expected("/v1/messages", "{}")[..]);
    assert_eq!(answer.json()["type"], "message");
}

#[tokio::test]
async fn auto_chooses_the_form_for_each_request() {
    let served = Served::start(beating("auto")).await;
    let first = |target: &str, agent: &str| {
        let request =
            Request::post(target).header("host", "sim").header("user-agent", agent).body(text(STREAM)).unwrap();
        let served = &served;
        async move {
            let answer = Answer::read(served.send_request(request).await.unwrap()).await;
            answer.text().lines().next().unwrap().to_owned()
        }
    };
    let (browser, message, other) = tokio::join!(
        first("/v1/chat/completions", "Mozilla/5.0"),
        first("/v1/messages", "curl/8"),
        first("/v1/chat/completions", "curl/8")
    );
    assert_eq!((browser.as_str(), message.as_str(), other.as_str()), (":", "event: ping", ""));
}

#[tokio::test]
async fn a_kept_stream_is_listed_under_its_label_until_its_client_goes() {
    let served = Served::start(Settings { script: Script::Hang, ..beating("comment") }).await;
    let heart = served.heart.clone().unwrap();
    let mut body = served.send(Method::POST, "/v1/messages", STREAM).await.unwrap().into_body();
    assert_eq!(soon(body.frame()).await.unwrap().unwrap().data_ref().unwrap(), &b":\n"[..]);
    let streams = heart.streams();
    assert_eq!((streams.len(), streams[0].label.as_deref()), (1, Some("message")));
    drop(body);
    until(|| heart.active() == 0 && served.stats.live() == 0).await;
    assert_eq!(served.stats.dropped(), 1);
}

#[tokio::test]
async fn a_broken_connection_stays_broken_under_heartbeats() {
    let served = Served::start(Settings { script: Script::DisconnectInside, ..beating("newline") }).await;
    for target in ["/v1/messages", "/api/chat"] {
        let answer = served.post(&format!("{target}?ttft=0"), STREAM).await;
        assert!(answer.broken);
        assert_eq!(answer.bytes(), served.expected(target, STREAM));
    }
}

#[tokio::test]
async fn torn_streams_under_heartbeats_decode_to_the_same_events() {
    let served = Served::start(beating("newline")).await;
    let requests = (0..16).map(|seed| {
        let target = format!("/events?script=torn&seed={seed}&ttft=250ms&itl=uniform:0..60ms&tokens=8");
        let served = &served;
        async move { (served.post(&target, "").await.text(), served.expected(&target, "")) }
    });
    for (text, expected) in soon(futures::future::join_all(requests)).await {
        assert_eq!(events(&text), events(std::str::from_utf8(&expected).unwrap()));
        assert_ne!(text.as_bytes(), &expected[..]);
    }
}

#[tokio::test]
async fn without_heartbeats_there_is_no_broadcaster() {
    let served = Served::start(Settings { heartbeat: Heartbeat::Off, ..quick() }).await;
    assert!(served.heart.is_none());
}
