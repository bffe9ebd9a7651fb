//! The shapes: every path, streamed and not, refused requests, HTTP/2.

use crate::client::{Answer, STREAM, Served, events, quick, soon, text};
use heartline::api::Api;
use heartline_cli::sim::Settings;
use http::{Method, Request};
use serde_json::Value;

#[tokio::test]
async fn every_path_answers_its_expected_bytes_streamed_and_not() {
    let served = Served::start(quick()).await;
    for path in
        ["/v1/chat/completions", "/v1/completions", "/v1/messages", "/api/chat", "/api/generate", "/events", "/"]
    {
        for body in ["", STREAM, r#"{"stream":false,"model":"m\"1"}"#] {
            let answer = served.post(path, body).await;
            assert_eq!(answer.status, 200, "{path} {body}");
            assert_eq!(answer.bytes(), served.expected(path, body), "{path} {body}");
            assert!(!answer.bytes().is_empty() && !answer.broken);
        }
    }
    assert_eq!(served.stats.requests(), 21);
    assert_eq!((served.stats.completed(), served.stats.live(), served.stats.dropped()), (21, 0, 0));
}

#[tokio::test]
async fn openai_chunks_carry_the_text_and_end_with_done() {
    let served = Served::start(quick()).await;
    let body = r#"{"stream":true,"stream_options":{"include_usage":true}}"#;
    let answer = served.post("/v1/chat/completions", body).await;
    assert_eq!(answer.headers["content-type"], "text/event-stream; charset=utf-8");
    assert_eq!(answer.headers["cache-control"], "no-cache, no-transform");
    assert_eq!(answer.headers["x-accel-buffering"], "no");
    let events = events(&answer.text());
    let (done, chunks) = events.split_last().unwrap();
    assert_eq!(done.1, "[DONE]");
    let chunks: Vec<Value> = chunks.iter().map(|(_, data)| serde_json::from_str(data).unwrap()).collect();
    assert_eq!(chunks.len(), 1 + 12 + 1 + 1);
    assert_eq!(chunks[0]["choices"][0]["delta"]["role"], "assistant");
    assert_eq!(chunks[13]["choices"][0]["finish_reason"], "stop");
    assert_eq!(chunks[14]["usage"]["completion_tokens"], 12);
    let streamed: String =
        chunks[1..13].iter().map(|chunk| chunk["choices"][0]["delta"]["content"].as_str().unwrap()).collect();

    let whole = served.post("/v1/chat/completions", "{}").await;
    assert_eq!(whole.headers["content-type"], "application/json");
    assert!(whole.headers.contains_key("content-length"));
    assert_eq!(whole.json()["choices"][0]["message"]["content"], streamed.as_str());
    let completion = served.post("/v1/completions", "{}").await.json();
    assert_eq!(completion["choices"][0]["text"], streamed.as_str());
}

#[tokio::test]
async fn anthropic_events_run_from_message_start_to_message_stop() {
    let served = Served::start(quick()).await;
    let answer = served.post("/v1/messages?tokens=2", STREAM).await;
    let events = events(&answer.text());
    let names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "message_start",
            "content_block_start",
            "content_block_delta",
            "content_block_delta",
            "content_block_stop",
            "message_delta",
            "message_stop"
        ]
    );
    for (name, data) in &events {
        assert_eq!(serde_json::from_str::<Value>(data).unwrap()["type"], name.as_str());
    }
    let whole = served.post("/v1/messages", r#"{"max_tokens":3}"#).await.json();
    assert_eq!((&whole["stop_reason"], &whole["usage"]["output_tokens"]), (&"max_tokens".into(), &3.into()));
}

#[tokio::test]
async fn ollama_streams_lines_of_json_whose_last_one_is_done() {
    let served = Served::start(quick()).await;
    for path in ["/api/chat", "/api/generate"] {
        let answer = served.post(path, "{}").await;
        assert_eq!(answer.headers["content-type"], "application/x-ndjson");
        let lines: Vec<Value> = answer.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 13);
        let (last, rest) = lines.split_last().unwrap();
        assert!(rest.iter().all(|line| line["done"] == false));
        assert_eq!((&last["done"], &last["eval_count"]), (&true.into(), &12.into()));
        assert_eq!(served.post(path, r#"{"stream":false}"#).await.json()["done"], true);
    }
}

#[tokio::test]
async fn the_root_streams_the_api_of_the_settings_to_any_method() {
    for (api, start) in [
        (Api::OPENAI_CHAT, "data: {"),
        (Api::ANTHROPIC, "event: message_start"),
        (Api::OLLAMA, "{"),
        (Api::EVENTS, "data: "),
    ] {
        let served = Served::start(Settings { api, ..quick() }).await;
        let got = Answer::read(served.send(Method::GET, "/?seed=3", "").await.unwrap()).await;
        assert!(got.text().starts_with(start), "{api}");
        assert_eq!(got.bytes(), served.post("/?seed=3", "").await.bytes());
    }
}

#[tokio::test]
async fn plain_events_carry_ids_and_several_lines_when_asked() {
    let served = Served::start(quick()).await;
    let answer = served.post("/events?ids=on&tokens=40", "").await;
    assert!(answer.text().contains("id: 39\ndata: "));
    assert!(answer.text().contains("data: \ndata: event: message_stop\ndata: \n\n"));
    assert_eq!(events(&answer.text()).last().unwrap(), &("end".to_owned(), "40".to_owned()));
}

#[tokio::test]
async fn models_are_listed() {
    let served = Served::start(quick()).await;
    let answer = Answer::read(served.send(Method::GET, "/v1/models", "").await.unwrap()).await;
    assert_eq!(answer.json()["data"][0]["object"], "model");
    assert_eq!(answer.bytes(), served.expected("/v1/models", ""));
}

#[tokio::test]
async fn head_gets_the_headers_of_the_stream_and_no_body() {
    let served = Served::start(quick()).await;
    let answer = Answer::read(served.send(Method::HEAD, "/events", "").await.unwrap()).await;
    assert_eq!(answer.headers["content-type"], "text/event-stream; charset=utf-8");
    assert!(answer.bytes().is_empty());
    assert_eq!(served.stats.live(), 0);
}

#[tokio::test]
async fn a_bad_request_is_answered_in_the_shape_of_its_api() {
    let served = Served::start(quick()).await;
    for (target, body, status, place) in [
        ("/v1/chat/completions?ttft=soon", STREAM, 400, "/error/message"),
        ("/v1/messages?script=boom", STREAM, 400, "/error/message"),
        ("/api/chat?nonsense=1", "", 400, "/error"),
        ("/events?tokens=many", "", 400, "/error/message"),
        ("/v1/completions", "{\"stream\":", 400, "/error/message"),
        ("/v1/models", "", 405, "/error/message"),
        ("/nowhere", "", 404, "/error/message"),
    ] {
        let answer = served.post(target, body).await;
        assert_eq!(answer.status, status, "{target}");
        assert_eq!(answer.headers["content-type"], "application/json");
        assert!(answer.json().pointer(place).unwrap().as_str().unwrap().len() > 20, "{target}");
    }
    assert_eq!(served.post("/v1/messages?ttft=x", "").await.json()["type"], "error");
    let wrong = served.send(Method::GET, "/v1/messages", "").await.unwrap();
    assert_eq!((wrong.status().as_u16(), &wrong.headers()["allow"]), (405, &"POST".parse().unwrap()));
    let packed = Request::post("/v1/messages").header("host", "sim").header("content-encoding", "zstd");
    assert_eq!(served.send_request(packed.body(text("x")).unwrap()).await.unwrap().status(), 415);
    assert_eq!(served.post("/v1/messages", &"x".repeat(4 * 1024 * 1024 + 1)).await.status, 413);
    assert_eq!((served.stats.requests(), served.stats.refused()), (11, 11));
}

#[tokio::test]
async fn http2_carries_many_answers_on_one_connection() {
    let served = Served::start(quick()).await;
    let sender = served.http2().await;
    let requests = (0..40).map(|seed| {
        let (mut sender, target) = (sender.clone(), format!("/v1/messages?itl=1ms&seed={seed}"));
        let request = Request::post(format!("http://sim{target}")).body(text(STREAM)).unwrap();
        async move { (target, Answer::read(sender.send_request(request).await.unwrap()).await) }
    });
    for (target, answer) in soon(futures::future::join_all(requests)).await {
        assert_eq!(answer.bytes(), served.expected(&target, STREAM));
    }
}

#[tokio::test]
async fn the_same_seed_gives_the_same_bytes_on_another_engine() {
    let (one, two) = (Served::start(quick()).await, Served::start(quick()).await);
    let other = Served::start(Settings { seed: 1, ..quick() }).await;
    two.post("/events", "").await; // what came before does not matter
    for target in ["/v1/chat/completions?script=torn&itl=exp:1ms", "/events", "/api/chat"] {
        let bytes = one.post(target, STREAM).await.bytes();
        assert_eq!(bytes, two.post(target, STREAM).await.bytes(), "{target}");
        assert_ne!(bytes, other.post(target, STREAM).await.bytes(), "{target}");
        let seeded = format!("{target}{}seed=1", if target.contains('?') { '&' } else { '?' });
        assert_eq!(one.post(&seeded, STREAM).await.bytes(), other.post(target, STREAM).await.bytes(), "{target}");
    }
}
