//! Anthropic's Messages: named events from `message_start` to `message_stop`, `ping` between them. From the API's reference
//! (streaming messages); on Vertex AI as its own SDK asks there.

use http::StatusCode;

use super::answer::{Answer, Part};
use super::endpoint::{Place, Streams};
use super::fault::{Closing, Fault, quoted};
use super::openai;
use super::question::Ask;
use super::sign::Sign;
use super::spec::Spec;
use crate::forms::heartbeat::Form;

pub(crate) static SPEC: Spec = Spec {
    name: "anthropic",
    label: "message",
    path: "/v1/messages",
    key_header: Some("x-api-key"),
    headers: &[("anthropic-version", "2023-06-01")],
    places: &[
        Place::new("**/v1/messages", Streams::No),
        Place::new("**/publishers/anthropic/models/*:streamRawPredict", Streams::No),
    ],
    near: &["/v1/messages", "/publishers/anthropic/"],
    form: Some(Form::anthropic_ping),
    ends: &[Sign::Event("message_stop")],
    errors: &[Sign::Event("error")],
    pings: &[Sign::Event("ping")],
    after_error: "",
    document,
    event,
    ask: Ask {
        body: r#"{"model":$model,"stream":$stream,"messages":[{"role":"user","content":$text}]$limit}"#,
        limit: r#","max_tokens":$tokens"#,
        // The API wants a number; this one bounds no usual answer.
        tokens_max: Some(4_096),
        limits: &["/max_tokens"],
    },
    answer: Answer {
        open: &[
            Part::named(
                "message_start",
                r#"{"type":"message_start","message":{"id":"msg_$id","type":"message","role":"assistant","model":$model,"content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":$prompt_tokens,"output_tokens":1}}}"#,
            ),
            Part::named(
                "content_block_start",
                r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
            ),
        ],
        token: &[Part::named(
            "content_block_delta",
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":$text}}"#,
        )],
        close: &[
            Part::named("content_block_stop", r#"{"type":"content_block_stop","index":0}"#),
            Part::named(
                "message_delta",
                r#"{"type":"message_delta","delta":{"stop_reason":"$stop","stop_sequence":null},"usage":{"output_tokens":$tokens}}"#,
            ),
            Part::named("message_stop", r#"{"type":"message_stop"}"#),
        ],
        document: r#"{"id":"msg_$id","type":"message","role":"assistant","model":$model,"content":[{"type":"text","text":$text}],"stop_reason":"$stop","stop_sequence":null,"usage":{"input_tokens":$prompt_tokens,"output_tokens":$tokens}}"#,
        reasons: &[("stop", ["end_turn", "max_tokens"])],
    },
    ..openai::BASE
};

fn document(fault: &Fault<'_>) -> String {
    format!(
        r#"{{"type":"error","error":{{"type":{},"message":{}{}}}}}"#,
        quoted(fault.kind.unwrap_or(kind(fault.status))),
        quoted(fault.message),
        fault.late_members()
    )
}

fn event(fault: &Fault<'_>, _: Closing) -> String {
    format!("event: error\ndata: {}\n\n", document(fault))
}

fn kind(status: StatusCode) -> &'static str {
    match status.as_u16() {
        413 => "request_too_large",
        503 | 529 => "overloaded_error",
        504 => "timeout_error",
        400..500 => openai::kind(status),
        _ => "api_error",
    }
}
