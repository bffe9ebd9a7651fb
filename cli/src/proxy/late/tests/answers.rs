//! Answers that come late: what was committed, errors, and what is neither.

use super::*;

#[tokio::test(start_paused = true)]
async fn an_answer_of_the_committed_type_passes_after_the_heartbeats() {
    for (path, format, content_type, beat, bytes) in [
        (CHAT, Format::EventStream, EVENTS, "\n", "data: {}\n\ndata: [DONE]\n\n"),
        (
            "/v1/messages",
            Format::EventStream,
            ("content-type", "TEXT/EVENT-STREAM"),
            "\n",
            "event: message_stop\ndata: {}\n\n",
        ),
        ("/api/chat", Format::Ndjson, LINES, " ", "{\"done\":true}\n"),
        ("/api/chat", Format::Ndjson, ("content-type", "application/jsonl"), " ", "{\"done\":true}\n"),
        (CHAT, Format::Json, JSON, "\n", "{\"choices\":[]}"),
    ] {
        let (mut engine, mut body) = commit_as(path, format);
        assert_eq!(ready(&mut body), "");
        pass(10).await;
        pass(10).await;
        assert_eq!(ready(&mut body), beat, "one heartbeat however long nobody asked");
        pass(10).await;
        assert_eq!(ready(&mut body), beat);
        engine.answer(200, &[content_type, ("content-length", "9999")], bytes);
        assert_eq!(to_clean_end(&mut body), bytes, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_goes_into_an_event_of_openais_shape_with_its_status_and_retry_after() {
    let (mut engine, mut body) = commit(CHAT);
    let fields = [JSON, ("retry-after", "30")];
    engine.answer(503, &fields, r#"{"error":{"message":"loading","type":"overloaded","param":null,"code":"busy"}}"#);
    let text = to_clean_end(&mut body);
    assert!(text.ends_with("\n\ndata: [DONE]\n\n") && text.matches("\n\n").count() == 2, "{text}");
    assert_eq!(
        first(&text),
        json!({ "error": {
            "message": "the engine answered 503 Service Unavailable: loading (retry after 30 s)",
            "type": "overloaded", "param": null, "code": "busy", "status": 503, "retry_after": "30",
        }})
    );
    assert!(engine.is_dropped());
}

#[tokio::test(start_paused = true)]
async fn an_error_goes_into_an_event_of_anthropics_shape() {
    let (mut engine, mut body) = commit("/v1/messages");
    engine.answer(
        429,
        &[JSON, ("retry-after", "7")],
        r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}"#,
    );
    let text = to_clean_end(&mut body);
    assert!(text.starts_with("event: error\ndata: {") && !text.contains("message_stop"), "{text}");
    let message = "the engine answered 429 Too Many Requests: slow (retry after 7 s)";
    let error = json!({ "type": "rate_limit_error", "message": message, "status": 429, "retry_after": "7" });
    assert_eq!(first(&text), json!({ "type": "error", "error": error }));
}

#[tokio::test(start_paused = true)]
async fn an_error_of_responses_is_numbered_and_followed_by_its_last_event() {
    let (mut engine, mut body) = commit("/v1/responses");
    engine.answer(500, &[], "");
    let text = to_clean_end(&mut body);
    let events: Vec<Value> = text.split_terminator("\n\n").map(first).collect();
    assert_eq!(events.len(), 2);
    assert_eq!((&events[0]["type"], &events[0]["sequence_number"]), (&json!("error"), &json!(0)));
    assert_eq!(events[0]["error"]["message"], "the engine answered 500 Internal Server Error");
    assert_eq!((&events[1]["type"], &events[1]["sequence_number"]), (&json!("response.failed"), &json!(1)));
    assert_eq!(events[1]["response"]["status"], "failed");
}

#[tokio::test(start_paused = true)]
async fn an_error_goes_into_a_line_of_ollamas_shape() {
    let (mut engine, mut body) = commit("/api/chat");
    engine.answer(404, &[JSON], r#"{"error":"model 'x' not found"}"#);
    let text = to_clean_end(&mut body);
    assert!(text.ends_with('\n') && text.lines().count() == 1);
    assert_eq!(first(&text), json!({ "error": "the engine answered 404 Not Found: model 'x' not found" }));
}

#[tokio::test(start_paused = true)]
async fn an_error_goes_into_an_event_of_geminis_shape() {
    let (mut engine, mut body) = commit("/v1beta/models/g:streamGenerateContent?alt=sse");
    engine.answer(429, &[JSON, ("retry-after", "9")], r#"[{"error":{"code":429,"message":"quota","status":"X"}}]"#);
    let error = first(&to_clean_end(&mut body));
    assert_eq!((&error["error"]["code"], &error["error"]["status"]), (&json!(429), &json!("RESOURCE_EXHAUSTED")));
    assert_eq!(error["error"]["details"][0]["retryDelay"], "9s");
}

#[tokio::test(start_paused = true)]
async fn an_error_of_llama_cpp_has_no_terminator() {
    let (mut engine, mut body) = commit("/completion");
    engine.answer(400, &[("content-type", "text/plain")], "bad grammar\n");
    let text = to_clean_end(&mut body);
    assert_eq!(first(&text)["error"]["message"], "the engine answered 400 Bad Request: bad grammar");
    assert!(!text.contains("[DONE]"));
}

#[tokio::test(start_paused = true)]
async fn an_error_after_committed_json_is_its_body_then_an_abort() {
    for (path, pointer) in [
        (CHAT, "/error/message"),
        ("/v1/responses", "/error/message"),
        ("/v1/messages", "/error/message"),
        ("/api/generate", "/error"),
        ("/v1beta/models/g:generateContent", "/error/message"),
    ] {
        let (mut engine, mut body) = commit_as(path, Format::Json);
        pass(20).await;
        assert_eq!(ready(&mut body), "\n");
        engine.answer(503, &[JSON, ("retry-after", "30")], r#"{"error":{"message":"loading"}}"#);
        let text = to_abort(&mut body);
        let words = "the engine answered 503 Service Unavailable: loading (retry after 30 s)";
        assert_eq!(first(&text).pointer(pointer), Some(&json!(words)), "{path}");
        assert!(!text.contains("data:") && !text.contains("[DONE]"), "{text}");
    }
}

/// Answers that are no error and still not what was committed, as a stream and as JSON.
async fn unusable(status: u16, fields: &[(&str, &str)], bytes: &'static str, words: &str) {
    let (mut engine, mut body) = commit(CHAT);
    engine.answer(status, fields, bytes);
    let text = to_clean_end(&mut body);
    let error = &first(&text)["error"];
    assert_eq!((error["message"].as_str(), &error["status"]), (Some(words), &json!(502)));
    assert!(text.ends_with("data: [DONE]\n\n"));
    assert!(engine.is_dropped());

    let fields: Vec<_> = fields.iter().map(|field| if *field == EVENTS { JSON } else { *field }).collect();
    let (mut engine, mut body) = commit_as(CHAT, Format::Json);
    engine.answer(status, &fields, bytes);
    assert_eq!(first(&to_abort(&mut body))["error"]["message"], words);
}

#[tokio::test(start_paused = true)]
async fn an_answer_of_another_type_is_an_error() {
    let words = "the engine answered 200 OK with another content type than was asked for";
    unusable(200, &[("content-type", "text/html")], "<p>", words).await;
    unusable(200, &[], "", words).await;
    for (committed, answered) in [(Format::EventStream, JSON), (Format::Json, EVENTS)] {
        let (mut engine, mut body) = commit_as(CHAT, committed);
        engine.answer(200, &[answered], r#"{"error":"out of memory"}"#);
        let text = if committed == Format::Json { to_abort(&mut body) } else { to_clean_end(&mut body) };
        let message = first(&text)["error"]["message"].as_str().unwrap().to_owned();
        assert_eq!(message.contains(": out of memory"), answered == JSON, "{message}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_encoded_answer_is_an_error() {
    let words = "the engine answered 200 OK encoded or in part, which the client was not told";
    unusable(200, &[EVENTS, ("content-encoding", "gzip")], "\x1F", words).await;
    let (mut engine, mut body) = commit(CHAT);
    engine.answer(200, &[EVENTS, ("content-encoding", "identity")], "data: 1\n\n");
    assert_eq!(to_clean_end(&mut body), "data: 1\n\n");
    // An encoded error is told by its status.
    let (mut engine, mut body) = commit(CHAT);
    engine.answer(500, &[JSON, ("content-encoding", "gzip")], "\x1F");
    assert_eq!(first(&to_clean_end(&mut body))["error"]["message"], "the engine answered 500 Internal Server Error");
}

#[tokio::test(start_paused = true)]
async fn an_answer_without_content_is_an_error() {
    unusable(204, &[], "", "the engine answered 204 No Content instead of 200").await;
    unusable(206, &[EVENTS], "data: 1\n\n", "the engine answered 206 Partial Content instead of 200").await;
}

#[tokio::test(start_paused = true)]
async fn a_redirection_is_an_error_and_its_place_is_not_told() {
    let fields = [("location", "http://elsewhere.example/secret")];
    let words = "the engine answered 307 Temporary Redirect with a redirection, which is not followed";
    unusable(307, &fields, "", words).await;
}
