//! Ollama's own API: JSON lines, a stream unless the request says no. From its API document.

use super::answer::{Answer, Part};
use super::endpoint::{Place, Streams};
use super::fault::{Closing, Fault, data_event, quoted};
use super::openai;
use super::question::Ask;
use super::sign::Sign;
use super::spec::Spec;
use crate::forms::format::Format;

pub(crate) static CHAT: Spec = Spec {
    name: "ollama",
    label: "chat",
    path: "/api/chat",
    places: &[Place::new("/api/chat", Streams::Yes), Place::new("/ollama/api/chat", Streams::Yes)],
    near: &["/api/"],
    ask: Ask { body: r#"{"model":$model,"stream":$stream,"messages":[{"role":"user","content":$text}]$limit}"#, ..ASK },
    answer: Answer {
        token: &[Part::data(
            r#"{"model":$model,"created_at":"$created_at","message":{"role":"assistant","content":$text},"done":false}"#,
        )],
        close: &[Part::data(
            r#"{"model":$model,"created_at":"$created_at","message":{"role":"assistant","content":""},"done_reason":"$stop","done":true,"total_duration":0,"load_duration":0,"prompt_eval_count":$prompt_tokens,"prompt_eval_duration":0,"eval_count":$tokens,"eval_duration":0}"#,
        )],
        document: r#"{"model":$model,"created_at":"$created_at","message":{"role":"assistant","content":$text},"done_reason":"$stop","done":true,"total_duration":0,"load_duration":0,"prompt_eval_count":$prompt_tokens,"prompt_eval_duration":0,"eval_count":$tokens,"eval_duration":0}"#,
        open: &[],
        reasons: REASONS,
    },
    ..BASE
};

pub(crate) static GENERATE: Spec = Spec {
    name: "ollama-generate",
    label: "generate",
    path: "/api/generate",
    places: &[Place::new("/api/generate", Streams::Yes), Place::new("/ollama/api/generate", Streams::Yes)],
    ask: Ask { body: r#"{"model":$model,"stream":$stream,"prompt":$text$limit}"#, ..ASK },
    answer: Answer {
        token: &[Part::data(r#"{"model":$model,"created_at":"$created_at","response":$text,"done":false}"#)],
        close: &[Part::data(
            r#"{"model":$model,"created_at":"$created_at","response":"","done_reason":"$stop","done":true,"total_duration":0,"load_duration":0,"prompt_eval_count":$prompt_tokens,"prompt_eval_duration":0,"eval_count":$tokens,"eval_duration":0}"#,
        )],
        document: r#"{"model":$model,"created_at":"$created_at","response":$text,"done_reason":"$stop","done":true,"total_duration":0,"load_duration":0,"prompt_eval_count":$prompt_tokens,"prompt_eval_duration":0,"eval_count":$tokens,"eval_duration":0}"#,
        open: &[],
        reasons: REASONS,
    },
    ..BASE
};

const BASE: Spec = Spec {
    format: Format::Ndjson,
    ends: &[Sign::Field(DONE_AT)],
    errors: &[Sign::Field("/error")],
    after_error: "",
    document,
    event,
    ..openai::BASE
};

const ASK: Ask = Ask {
    body: "",
    limit: r#","options":{"num_predict":$tokens}"#,
    tokens_max: None,
    // Negative numbers mean no limit.
    limits: &["/options/num_predict"],
};

fn document(fault: &Fault<'_>) -> String {
    format!(r#"{{"error":{}}}"#, quoted(fault.message))
}

fn event(fault: &Fault<'_>, _: Closing) -> String {
    data_event(&document(fault))
}

/// The member of the topmost object whose `true` announces the last line.
pub(crate) const DONE: &str = DONE_AT.split_at(1).1;
const DONE_AT: &str = "/done";

const REASONS: &[(&str, [&str; 2])] = &[("stop", ["stop", "length"])];
