//! What every API's file must hold: that its paths are recognised and nothing else is, and that what it writes is valid.

use super::*;
use http::{HeaderMap, Method, StatusCode};
use serde_json::Value;

fn of(method: &str, uri: &str, fields: &[(&'static str, &'static str)]) -> Option<Endpoint> {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        headers.append(*name, value.parse().unwrap());
    }
    Endpoint::of_request(&method.parse().unwrap(), &uri.parse().unwrap(), &headers)
}

#[test]
fn each_api_has_its_own_format_and_default() {
    let events = Format::EventStream;
    for (uri, api, format, streams) in [
        ("/v1/chat/completions", Api::OPENAI_CHAT, events, Streams::No),
        ("/v1/chat/completions/", Api::OPENAI_CHAT, events, Streams::No),
        ("/openrouter/api/v1/chat/completions?x=1", Api::OPENAI_CHAT, events, Streams::No),
        ("/chat/completions", Api::OPENAI_CHAT, events, Streams::No),
        ("/v1/completions", Api::OPENAI_COMPLETIONS, events, Streams::No),
        ("/v1/responses", Api::RESPONSES, events, Streams::No),
        ("/v1/messages?beta=true", Api::ANTHROPIC, events, Streams::No),
        ("/anthropic/v1/messages", Api::ANTHROPIC, events, Streams::No),
        ("/api/chat", Api::OLLAMA, Format::Ndjson, Streams::Yes),
        ("/api/generate", Api::OLLAMA_GENERATE, Format::Ndjson, Streams::Yes),
        ("/completion", Api::LLAMA_CPP, events, Streams::No),
        ("/v1beta/models/gemini-9:streamGenerateContent?alt=sse", Api::GEMINI, events, Streams::Always),
        ("/v1beta/models/gemini-9:streamGenerateContent?key=1&alt=sse", Api::GEMINI, events, Streams::Always),
        ("/v1beta/models/gemini-9:generateContent", Api::GEMINI, events, Streams::Never),
    ] {
        let found = of("POST", uri, &[("content-type", "application/json")]);
        assert_eq!(found, Some(Endpoint::new(api, streams)), "{uri}");
        assert_eq!(api.format(), format, "{uri}");
        assert_eq!(of("GET", uri, &[]), None, "GET {uri}");
    }
}

/// The paths of real engines and gateways, from their own documents (named in each API's file).
#[test]
fn paths_of_other_servers_of_the_same_apis_are_recognised() {
    for (uri, api, streams) in [
        ("/openai/deployments/gpt-5/chat/completions?api-version=2026-01-01", Api::OPENAI_CHAT, Streams::No),
        ("/openai/deployments/gpt-5/completions", Api::OPENAI_COMPLETIONS, Streams::No),
        ("/openai/responses?api-version=2026-01-01", Api::RESPONSES, Streams::No),
        ("/openai/v1/responses", Api::RESPONSES, Streams::No),
        ("/api/chat/completions", Api::OPENAI_CHAT, Streams::No),
        ("/v3/chat/completions", Api::OPENAI_CHAT, Streams::No),
        ("/api/v3/chat/completions", Api::OPENAI_CHAT, Streams::No),
        ("/api/paas/v4/chat/completions", Api::OPENAI_CHAT, Streams::No),
        ("/v3/completions", Api::OPENAI_COMPLETIONS, Streams::No),
        ("/completions", Api::OPENAI_COMPLETIONS, Streams::No),
        ("/responses", Api::RESPONSES, Streams::No),
        ("/v1beta/openai/chat/completions", Api::OPENAI_CHAT, Streams::No),
        ("/v1/projects/p/locations/l/endpoints/openapi/chat/completions", Api::OPENAI_CHAT, Streams::No),
        (
            "/v1/projects/p/locations/l/publishers/google/models/g:streamGenerateContent?alt=sse",
            Api::GEMINI,
            Streams::Always,
        ),
        ("/v1/projects/p/locations/l/endpoints/7:streamGenerateContent?alt=sse", Api::GEMINI, Streams::Always),
        ("/v1/projects/p/locations/l/publishers/anthropic/models/c:streamRawPredict", Api::ANTHROPIC, Streams::No),
        ("/v1/projects/p/locations/l/publishers/mistralai/models/m:streamRawPredict", Api::OPENAI_CHAT, Streams::No),
        ("/generate", Api::SGLANG, Streams::No),
        ("/generate_stream", Api::TGI, Streams::Always),
        ("/v2/models/llama/generate_stream", Api::TRITON, Streams::Always),
        ("/v2/models/llama/versions/1/generate_stream", Api::TRITON, Streams::Always),
        ("/v2/models/llama/generate", Api::TRITON, Streams::Never),
    ] {
        assert_eq!(of("POST", uri, &[]), Some(Endpoint::new(api, streams)), "{uri}");
    }
}

#[test]
fn what_is_not_on_the_list_is_no_api() {
    for uri in [
        "/",
        "/v1/models",
        "/v1/embeddings",
        "/v1/chat/completions/chatcmpl-1",
        "/v1/messages/count_tokens",
        "/v1/messages/batches",
        "/xv1/chat/completions",
        "/V1/chat/completions",
        "/v1/audio/transcriptions",
        "/v1/audio/v1/chat/completions",
        "/v1/images/generations",
        "/files/v1/responses",
        "/app/api/chat",
        "/api/chats",
        "/api/pull",
        "/v1beta/models/gemini-9:streamGenerateContent",
        "/v1beta/models/gemini-9:streamGenerateContent?alt=json",
        "/v1beta/models/gemini-9:countTokens?alt=sse",
        "/v1beta/:streamGenerateContent?alt=sse",
        "/app/generate",
        "/app/completions",
        "/v1/responses/resp_1",
        "/v2/models/llama/infer",
        "/v2/models/generate_stream",
        "/v5/chat/completions",
        "/v1/projects/p/locations/l/publishers/anthropic/models/count-tokens:rawPredict",
        "/v1/projects/p/locations/l/publishers/other/models/m:streamRawPredict",
        "/events",
        "/mcp",
    ] {
        assert_eq!(of("POST", uri, &[]), None, "{uri}");
    }
}

#[test]
fn multipart_and_ranges_are_no_api() {
    for field in [
        ("content-type", "multipart/form-data; boundary=x"),
        ("content-type", " Multipart/Mixed"),
        ("range", "bytes=0-1"),
        ("content-range", "bytes 0-1/2"),
    ] {
        assert_eq!(of("POST", "/v1/chat/completions", &[field]), None, "{field:?}");
    }
}

#[test]
fn the_body_decides_where_the_path_does_not() {
    let said = |streams| [None, Some(false), Some(true)].map(|says| Endpoint::new(Api::EVENTS, streams).streams(says));
    assert_eq!(said(Streams::Yes), [true, false, true]);
    assert_eq!(said(Streams::No), [false, false, true]);
    assert_eq!(said(Streams::Always), [true; 3]);
    assert_eq!(said(Streams::Never), [false; 3]);
}

#[test]
fn an_endpoint_that_is_none_of_the_list_is_told_errors_in_the_shape_of_its_neighbours() {
    for (path, api) in [
        ("/api/v1/chat/completions", Api::OPENAI_CHAT),
        ("/api/v1/models", Api::OPENAI_CHAT),
        ("/v1/completions", Api::OPENAI_COMPLETIONS),
        ("/v1/messages/count_tokens", Api::ANTHROPIC),
        ("/v1/responses/resp_1", Api::RESPONSES),
        ("/api/tags", Api::OLLAMA),
        ("/app/api/tags", Api::OLLAMA),
        ("/v1beta/models", Api::GEMINI),
        ("/v1/models/g:streamGenerateContent", Api::GEMINI),
        ("/v1/projects/p/locations/l/publishers/google/models/g:countTokens", Api::GEMINI),
        ("/v2/models/m/infer", Api::TRITON),
        ("/", Api::EVENTS),
        ("/health", Api::EVENTS),
    ] {
        assert_eq!(Api::nearest(path, None), api, "{path}");
    }
    let stream = "/v1beta/models/g:streamGenerateContent";
    assert_eq!(Api::nearest(stream, Some("alt=sse")), Api::GEMINI);
}

#[test]
fn every_api_is_read_by_its_name_and_found_at_its_path() {
    for &api in Api::ALL {
        assert_eq!(api.name().parse::<Api>().unwrap(), api);
        assert!(Api::ALL.iter().filter(|other| other.name() == api.name()).count() == 1);
        let mut question = Question::new("m", "");
        let found = |question: &Question<'_>| {
            let uri: http::Uri = api.request_path(question).parse().unwrap();
            Endpoint::of_request(&Method::POST, &uri, &HeaderMap::new())
        };
        assert_eq!(found(&question).map(Endpoint::api), (api != Api::EVENTS).then_some(api));
        assert!(found(&question).is_none_or(|endpoint| endpoint.streams(Some(true))), "{api}");
        question.is_streamed = false;
        assert!(found(&question).is_none_or(|endpoint| !endpoint.streams(Some(false))), "{api}");
        for place in api.0.places {
            assert!(Pattern::new(place.path()).is_ok(), "{}", place.path());
        }
    }
    assert!("openai".parse::<Api>().unwrap_err().to_string().contains("openai-chat, openai-completions"));
}

/// All that a fault may carry.
fn fault(message: &str) -> Fault<'_> {
    let status = StatusCode::SERVICE_UNAVAILABLE;
    Fault { retry_after: Some("7"), is_late: true, number: 41, ..Fault::new(status, message) }
}

#[test]
fn every_api_reports_an_error_in_each_format_as_one_valid_document() {
    let message = "no \"quotes\",\n\r\tno \\ lines\u{2028}\u{0}\u{1b} é 猫";
    for &api in Api::ALL {
        for format in [Format::Json, Format::Ndjson] {
            for closing in [Closing::End, Closing::Abort] {
                let text = api.error(&fault(message), format, closing);
                assert_eq!(text.lines().count(), 1, "{api} {text}");
                let document: Value = serde_json::from_str(&text).unwrap();
                let error = &document["error"];
                let said = error.get("message").unwrap_or(error);
                assert_eq!(said, message, "{api}");
            }
        }
        let event = api.error(&fault(message), Format::EventStream, Closing::Abort);
        if api == Api::EVENTS {
            assert_eq!(event, "", "nothing may be written into it");
            continue;
        }
        assert!(event.ends_with("\n\n") && event.matches("\n\n").count() == 1, "{api} {event}");
        let data = event.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
        let document: Value = serde_json::from_str(data).unwrap();
        assert!(document.get("error").is_some(), "{api} {event}");
        assert_eq!(document.get("sequence_number").is_some(), api.is_numbered());
        let ended = api.error(&fault(message), Format::EventStream, Closing::End);
        assert!(ended.starts_with(&event) && ended.ends_with(api.after_error()), "{api} {ended}");
    }
}

#[test]
fn every_answer_and_question_is_json_when_filled_in() {
    let mut question = Question::new("m\"1", "what\n?");
    question.tokens_max = Some(9);
    for &api in Api::ALL.iter().filter(|api| **api != Api::EVENTS) {
        let body: Value = serde_json::from_str(&api.request_body(&question)).unwrap();
        let limit = api.token_limits().iter().find_map(|place| body.pointer(place));
        assert_eq!(limit, Some(&9.into()), "{api} {body}");
        assert!(body.to_string().contains("what"), "{api}");
        let answer = api.answer();
        let parts = [answer.open, answer.token, answer.close].concat();
        for data in parts.iter().map(|part| part.data).chain([answer.document]).filter(|data| *data != "[DONE]") {
            let filled = fill(data, |place| {
                let reason = answer.reasons.iter().find(|(name, _)| *name == place).map(|(_, words)| words[0]);
                Some(match (place, reason) {
                    (_, Some(reason)) => reason.to_owned(),
                    ("model" | "text" | "whole", _) => "\"x\"".to_owned(),
                    ("id" | "created_at", _) => "x".to_owned(),
                    ("created" | "index" | "number" | "prompt_tokens" | "tokens" | "total_tokens", _) => "1".to_owned(),
                    _ => panic!("{api}: ${place} is no place"),
                })
            });
            assert!(serde_json::from_str::<Value>(&filled).is_ok(), "{api} {filled}");
        }
    }
}

#[test]
fn a_place_is_filled_in_once_and_what_is_none_stays() {
    let value = |name: &str| (name == "a").then(|| "$a$b".to_owned());
    assert_eq!(fill("$a $b $ a$", value), "$a$b $b $ a$");
}

#[test]
fn every_shape_is_one_complete_event_or_line_of_valid_json() {
    use crate::ending::Ended;
    for shape in [ErrorShape::openai(), ErrorShape::anthropic(), ErrorShape::responses()] {
        let bytes = shape.error(Ended::MaxSilence, 7);
        let text = std::str::from_utf8(&bytes).expect("UTF-8");
        assert!(text.ends_with("\n\n") && text.matches("\n\n").count() == 1);
        let data = text.lines().find_map(|line| line.strip_prefix("data: ")).expect("a data line");
        let value: Value = serde_json::from_str(data).expect("JSON");
        assert!(value.get("error").is_some() || value["sequence_number"] == 7);
    }
    for shape in [ErrorShape::ndjson(), ErrorShape::of_format(Format::Json)] {
        let bytes = shape.error(Ended::Drained, 0);
        assert!(bytes.ends_with(b"\n"));
        serde_json::from_slice::<Value>(&bytes).expect("JSON");
    }
    assert_eq!(ErrorShape::custom(|ended| ended.code().into()).error(Ended::MaxLifetime, 0), "max_lifetime");
    assert!(ErrorShape::none().error(Ended::Failed, 0).is_empty());
}
