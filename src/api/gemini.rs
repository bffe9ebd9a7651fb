//! Gemini's `generateContent` and `streamGenerateContent`: the path names the model and says whether the answer streams.
//! From the API's reference and the calls of google-genai 3.6; on Vertex AI the same below `projects/…`.
//!
//! Without `alt=sse` a stream is one JSON array, which is no format of ours: unknown.

use http::StatusCode;

use super::answer::{Answer, Part};
use super::endpoint::{Place, Streams};
use super::fault::{Closing, Fault, data_event, quoted};
use super::openai;
use super::question::Ask;
use super::sign::Sign;
use super::spec::Spec;
use crate::heartbeat::Form;

pub(crate) static SPEC: Spec = Spec {
    name: "gemini",
    label: "content",
    path: "/v1beta/models/$model:streamGenerateContent?alt=sse",
    document_path: Some("/v1beta/models/$model:generateContent"),
    key_header: Some("x-goog-api-key"),
    places: &[
        Place::with_field("**/models/*:streamGenerateContent", SSE, Streams::Always),
        Place::with_field("**/tunedModels/*:streamGenerateContent", SSE, Streams::Always),
        Place::with_field("**/endpoints/*:streamGenerateContent", SSE, Streams::Always),
        Place::new("**/models/*:generateContent", Streams::Never),
        Place::new("**/tunedModels/*:generateContent", Streams::Never),
        Place::new("**/endpoints/*:generateContent", Streams::Never),
    ],
    near: &["/v1beta/", "/publishers/google/", ":streamGenerateContent"],
    client_header: Some("x-goog-api-client"),
    // Its SDKs lose the event after a comment, or fail at it.
    form: Some(Form::newline_between),
    ends: &[Sign::Field("/candidates/0/finishReason"), Sign::Field("/promptFeedback/blockReason")],
    errors: &[Sign::Field("/error")],
    after_error: "",
    document,
    event,
    ask: Ask {
        body: r#"{"contents":[{"role":"user","parts":[{"text":$text}]}]$limit}"#,
        limit: r#","generationConfig":{"maxOutputTokens":$tokens}"#,
        tokens_max: None,
        limits: &["/generationConfig/maxOutputTokens"],
    },
    answer: Answer {
        open: &[],
        token: &[Part::data(
            r#"{"candidates":[{"content":{"parts":[{"text":$text}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":$prompt_tokens,"totalTokenCount":$prompt_tokens},"modelVersion":$model,"responseId":"$id"}"#,
        )],
        close: &[Part::data(
            r#"{"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":"$stop","index":0}],"usageMetadata":{"promptTokenCount":$prompt_tokens,"candidatesTokenCount":$tokens,"totalTokenCount":$total_tokens},"modelVersion":$model,"responseId":"$id"}"#,
        )],
        document: r#"{"candidates":[{"content":{"parts":[{"text":$text}],"role":"model"},"finishReason":"$stop","index":0}],"usageMetadata":{"promptTokenCount":$prompt_tokens,"candidatesTokenCount":$tokens,"totalTokenCount":$total_tokens},"modelVersion":$model,"responseId":"$id"}"#,
        reasons: &[("stop", ["STOP", "MAX_TOKENS"])],
    },
    ..openai::BASE
};

const SSE: &str = "alt=sse";

fn document(fault: &Fault<'_>) -> String {
    let details = fault.retry_after_seconds().map_or_else(String::new, |seconds| {
        format!(r#","details":[{{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"{seconds}s"}}]"#)
    });
    format!(
        r#"{{"error":{{"code":{},"message":{},"status":"{}"{details}}}}}"#,
        fault.status.as_u16(),
        quoted(fault.message),
        kind(fault.status)
    )
}

fn event(fault: &Fault<'_>, _: Closing) -> String {
    data_event(&document(fault))
}

/// The canonical names of google.rpc.Code for the statuses they map to.
fn kind(status: StatusCode) -> &'static str {
    match status.as_u16() {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        409 => "ABORTED",
        429 => "RESOURCE_EXHAUSTED",
        400..500 => "INVALID_ARGUMENT",
        501 => "UNIMPLEMENTED",
        504 => "DEADLINE_EXCEEDED",
        500 => "INTERNAL",
        _ => "UNAVAILABLE",
    }
}
