//! Which answers may be committed, and with which head.

use super::*;

fn finding(stream: Option<bool>) -> Finding {
    Finding { stream, is_over: true, ..Finding::default() }
}

#[test]
fn streams_and_json_have_a_switch_each() {
    let [soon, later] = [5, 20].map(Duration::from_secs);
    let mut upstream = Upstream::new("engine", "http://127.0.0.1:1".parse().unwrap());
    let (chat, ollama, gemini) =
        (endpoint(CHAT), endpoint("/api/chat"), endpoint("/v1/models/g:streamGenerateContent?alt=sse"));
    for endpoint in [chat, ollama, gemini] {
        for stream in [None, Some(true), Some(false)] {
            assert_eq!(plan(endpoint, &finding(stream), &upstream), None, "off by default");
        }
    }
    upstream.commit_after = Some(soon);
    let stream = |format| Some(Commit { after: soon, format });
    assert_eq!(plan(chat, &finding(Some(true)), &upstream), stream(Format::EventStream));
    assert_eq!(plan(chat, &finding(None), &upstream), None);
    assert_eq!(plan(ollama, &finding(None), &upstream), stream(Format::Ndjson));
    assert_eq!(plan(ollama, &finding(Some(false)), &upstream), None);
    assert_eq!(plan(gemini, &finding(Some(false)), &upstream), stream(Format::EventStream));
    upstream.heart.ndjson = Consent::Never;
    assert_eq!(plan(ollama, &finding(None), &upstream), None, "no heartbeats, no commit");
    upstream.commit_json_after = Some(later);
    let json = Some(Commit { after: later, format: Format::Json });
    assert_eq!(plan(chat, &finding(None), &upstream), json);
    assert_eq!(plan(ollama, &finding(Some(false)), &upstream), json);
    upstream.commit_after = None;
    assert_eq!(plan(chat, &finding(Some(true)), &upstream), None);
}

#[test]
fn a_body_that_was_not_read_is_never_committed() {
    let mut upstream = Upstream::new("engine", "http://127.0.0.1:1".parse().unwrap());
    (upstream.commit_after, upstream.commit_json_after) = (Some(Duration::ZERO), Some(Duration::ZERO));
    let unread = Finding { is_unread: true, ..finding(Some(true)) };
    let unfinished = Finding { is_over: false, ..finding(Some(true)) };
    for endpoint in [CHAT, "/api/chat", "/v1/models/g:streamGenerateContent?alt=sse"].map(endpoint) {
        assert_eq!(plan(endpoint, &unread, &upstream), None);
        assert_eq!(plan(endpoint, &unfinished, &upstream), None);
    }
}

#[test]
fn the_committed_head_says_what_the_body_is_and_promises_nothing_about_its_bytes() {
    let head = Commit { after: Duration::ZERO, format: Format::EventStream }.head();
    assert_eq!(head.status(), StatusCode::OK);
    assert_eq!(head.headers()[CONTENT_TYPE], "text/event-stream");
    assert_eq!(head.headers()["x-accel-buffering"], "no");
    assert_eq!(head.headers()["cache-control"], "no-cache, no-transform");
}
