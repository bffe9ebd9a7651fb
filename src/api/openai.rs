//! OpenAI's chat completions and completions, which most engines speak.
//!
//! From the API's reference (chat streaming), Azure's (deployments in the path), OpenVINO Model Server's (`/v3`), Zhipu's
//! (`/v4`), Open WebUI's (`/api`), Vertex AI's (endpoints, and Mistral's models there) and Gemini's own (`/v1beta/openai`).
//! llama.cpp serves its own completion at `/completions` as well: its errors look alike.

use http::StatusCode;

use super::answer::{Answer, Part};
use super::endpoint::{Place, Streams};
use super::fault::{Closing, Fault, data_event, quoted, quoted_or_null};
use super::question::Ask;
use super::sign::Sign;
use super::spec::Spec;
use crate::forms::format::Format;

pub(crate) static CHAT: Spec = Spec {
    name: "openai-chat",
    label: "chat completion",
    path: "/v1/chat/completions",
    places: &[
        Place::new("**/v1/chat/completions", Streams::No),
        Place::new("/chat/completions", Streams::No),
        Place::new("**/v3/chat/completions", Streams::No),
        Place::new("**/v4/chat/completions", Streams::No),
        Place::new("/api/chat/completions", Streams::No),
        Place::new("**/openai/deployments/*/chat/completions", Streams::No),
        Place::new("**/v1beta/openai/chat/completions", Streams::No),
        Place::new("**/projects/*/locations/*/endpoints/*/chat/completions", Streams::No),
        Place::new("**/publishers/mistralai/models/*:streamRawPredict", Streams::No),
    ],
    near: &["/v1/", "/openai/"],
    ask: Ask {
        body: r#"{"model":$model,"stream":$stream,"messages":[{"role":"user","content":$text}]$limit}"#,
        limit: r#","max_tokens":$tokens"#,
        tokens_max: None,
        limits: &["/max_completion_tokens", "/max_tokens"],
    },
    answer: Answer {
        open: &[Part::data(
            r#"{"id":"chatcmpl-$id","object":"chat.completion.chunk","created":$created,"model":$model,"choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}"#,
        )],
        token: &[Part::data(
            r#"{"id":"chatcmpl-$id","object":"chat.completion.chunk","created":$created,"model":$model,"choices":[{"index":0,"delta":{"content":$text},"logprobs":null,"finish_reason":null}]}"#,
        )],
        close: &[
            Part::data(
                r#"{"id":"chatcmpl-$id","object":"chat.completion.chunk","created":$created,"model":$model,"choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"$stop"}]}"#,
            ),
            Part::usage(
                r#"{"id":"chatcmpl-$id","object":"chat.completion.chunk","created":$created,"model":$model,"choices":[],"usage":{"prompt_tokens":$prompt_tokens,"completion_tokens":$tokens,"total_tokens":$total_tokens}}"#,
            ),
            Part::data(DONE),
        ],
        document: r#"{"id":"chatcmpl-$id","object":"chat.completion","created":$created,"model":$model,"choices":[{"index":0,"message":{"role":"assistant","content":$text,"refusal":null},"logprobs":null,"finish_reason":"$stop"}],"usage":{"prompt_tokens":$prompt_tokens,"completion_tokens":$tokens,"total_tokens":$total_tokens}}"#,
        reasons: REASONS,
    },
    ..BASE
};

pub(crate) static COMPLETIONS: Spec = Spec {
    name: "openai-completions",
    label: "completion",
    path: "/v1/completions",
    places: &[
        Place::new("**/v1/completions", Streams::No),
        Place::new("/completions", Streams::No),
        Place::new("**/v3/completions", Streams::No),
        Place::new("**/openai/deployments/*/completions", Streams::No),
    ],
    ask: Ask {
        body: r#"{"model":$model,"stream":$stream,"prompt":$text$limit}"#,
        limit: r#","max_tokens":$tokens"#,
        tokens_max: None,
        limits: &["/max_tokens"],
    },
    answer: Answer {
        open: &[],
        token: &[Part::data(
            r#"{"id":"cmpl-$id","object":"text_completion","created":$created,"model":$model,"choices":[{"index":0,"text":$text,"logprobs":null,"finish_reason":null}]}"#,
        )],
        close: &[
            Part::data(
                r#"{"id":"cmpl-$id","object":"text_completion","created":$created,"model":$model,"choices":[{"index":0,"text":"","logprobs":null,"finish_reason":"$stop"}]}"#,
            ),
            Part::usage(
                r#"{"id":"cmpl-$id","object":"text_completion","created":$created,"model":$model,"choices":[],"usage":{"prompt_tokens":$prompt_tokens,"completion_tokens":$tokens,"total_tokens":$total_tokens}}"#,
            ),
            Part::data(DONE),
        ],
        document: r#"{"id":"cmpl-$id","object":"text_completion","created":$created,"model":$model,"choices":[{"index":0,"text":$text,"logprobs":null,"finish_reason":"$stop"}],"usage":{"prompt_tokens":$prompt_tokens,"completion_tokens":$tokens,"total_tokens":$total_tokens}}"#,
        reasons: REASONS,
    },
    ..BASE
};

/// What both have in common, and what the APIs that are modelled on them take over.
pub(super) const BASE: Spec = Spec {
    name: "",
    label: "",
    path: "",
    document_path: None,
    key_header: None,
    headers: &[],
    places: &[],
    near: &[],
    client_header: None,
    format: Format::EventStream,
    form: None,
    ends: &[Sign::Data(DONE)],
    failed_ends: &[],
    errors: &[Sign::Event("error"), Sign::Field("/error")],
    pings: &[],
    is_numbered: false,
    after_error: "data: [DONE]\n\n",
    document,
    event,
    ask: Ask { body: "", limit: "", tokens_max: None, limits: &[] },
    answer: Answer { open: &[], token: &[], close: &[], document: "", reasons: &[] },
};

pub(super) fn document(fault: &Fault<'_>) -> String {
    format!(r#"{{"error":{}}}"#, error(fault))
}

/// The error alone.
pub(super) fn error(fault: &Fault<'_>) -> String {
    format!(
        r#"{{"message":{},"type":{},"param":{},"code":{}{}}}"#,
        quoted(fault.message),
        quoted(fault.kind.unwrap_or(kind(fault.status))),
        quoted_or_null(fault.param),
        quoted(fault.code.unwrap_or(fault.status.as_str())),
        fault.late_members()
    )
}

pub(super) fn event(fault: &Fault<'_>, _: Closing) -> String {
    data_event(&document(fault))
}

/// OpenAI's word for the kind of error that a status stands for.
pub(super) fn kind(status: StatusCode) -> &'static str {
    match status.as_u16() {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        429 => "rate_limit_error",
        400..500 => "invalid_request_error",
        _ => "server_error",
    }
}

/// A list in a chunk that carries nothing of the answer: usage, and signs of life of gateways. Spaces may follow the key.
pub(crate) const NO_CONTENT: &str = "\"choices\":[]";

const DONE: &str = "[DONE]";
const REASONS: &[(&str, [&str; 2])] = &[("stop", ["stop", "length"])];
