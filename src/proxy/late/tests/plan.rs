//! When a commit happens, and what its head says.

use super::*;

fn finding(stream: Option<bool>) -> Finding {
    Finding { stream, is_over: true, ..Finding::default() }
}

#[test]
fn streams_and_json_have_a_switch_each() {
    let [soon, later] = [5, 20].map(Duration::from_secs);
    let mut upstream = Upstream::new("engine", "http://127.0.0.1:1".parse().unwrap());
    let (chat, ollama, gemini) = (api(CHAT), api("/api/chat"), api("/v1/models/g:streamGenerateContent?alt=sse"));
    for api in [&chat, &ollama, &gemini] {
        for stream in [None, Some(true), Some(false)] {
            assert_eq!(plan(api, &finding(stream), &upstream), None, "off by default");
        }
    }
    upstream.commit_after = Some(soon);
    let stream = |format| Some(Commit { after: soon, format });
    assert_eq!(plan(&chat, &finding(Some(true)), &upstream), stream(Format::EventStream));
    assert_eq!(plan(&chat, &finding(None), &upstream), None);
    assert_eq!(plan(&ollama, &finding(None), &upstream), stream(Format::Ndjson));
    assert_eq!(plan(&ollama, &finding(Some(false)), &upstream), None);
    assert_eq!(plan(&gemini, &finding(Some(false)), &upstream), stream(Format::EventStream));
    upstream.commit_json_after = Some(later);
    let json = Some(Commit { after: later, format: Format::Json });
    assert_eq!(plan(&chat, &finding(None), &upstream), json);
    assert_eq!(plan(&ollama, &finding(Some(false)), &upstream), json);
    upstream.commit_after = None;
    assert_eq!(plan(&chat, &finding(Some(true)), &upstream), None);
}

#[test]
fn a_body_that_was_not_read_is_never_committed() {
    let mut upstream = Upstream::new("engine", "http://127.0.0.1:1".parse().unwrap());
    (upstream.commit_after, upstream.commit_json_after) = (Some(Duration::ZERO), Some(Duration::ZERO));
    let unread = Finding { is_unread: true, ..finding(Some(true)) };
    let unfinished = Finding { is_over: false, ..finding(Some(true)) };
    for api in [api(CHAT), api("/api/chat"), api("/v1/models/g:streamGenerateContent?alt=sse")] {
        assert_eq!(plan(&api, &unread, &upstream), None);
        assert_eq!(plan(&api, &unfinished, &upstream), None);
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

#[tokio::test(start_paused = true)]
async fn the_clock_starts_when_the_whole_request_is_forwarded() {
    let started = tokio::time::Instant::now();
    let (_engine, mut response) = oneshot::channel::<()>();
    let (forwarded, wait) = oneshot::channel::<()>();
    let clock = tokio::spawn(async move {
        let committed = in_time(&mut response, wait.map(drop), Duration::from_secs(20)).await.is_none();
        (committed, started.elapsed())
    });
    pass(300).await;
    assert!(!clock.is_finished(), "a slow upload is no silence of the engine");
    forwarded.send(()).unwrap();
    pass(19).await;
    assert!(!clock.is_finished());
    pass(1).await;
    assert_eq!(clock.await.unwrap(), (true, Duration::from_secs(320)));
}

#[tokio::test(start_paused = true)]
async fn an_answer_in_time_is_no_commit_and_stays_when_the_wait_is_dropped() {
    let (engine, mut response) = oneshot::channel::<u8>();
    let wait = in_time(&mut response, std::future::pending::<()>(), Duration::ZERO);
    assert!(wait.now_or_never().is_none(), "not forwarded");
    let wait = in_time(&mut response, async {}, Duration::from_secs(1));
    assert!(wait.now_or_never().is_none());
    engine.send(7).unwrap();
    assert_eq!(in_time(&mut response, async {}, Duration::ZERO).await, Some(Ok(7)));
}
