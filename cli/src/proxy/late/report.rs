//! Writes a failure in an API's own shape: an event, a line or a document. Called by `late`.

use bytes::Bytes;
use http::StatusCode;
use serde_json::{Value, json};

use super::failure::Failure;
use crate::proxy::api::{Api, Family};
use heartline::Format;

/// What follows the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Closing {
    /// The API's terminator and a clean end: the engine reported the error itself, whole.
    End,
    /// An abort, so no terminator: the engine is gone. The error has this number where the API counts events.
    Abort {
        /// The next number of the stream.
        sequence: u32,
    },
}

/// The bytes that tell of `failure` in an answer of this format.
pub(super) fn error(failure: &Failure, api: &Api, format: Format, closing: Closing) -> Bytes {
    let document = document(failure, api.family);
    let text = match (format, api.family) {
        (Format::Json | Format::Ndjson, _) => format!("{document}\n"),
        (_, Family::Anthropic) => format!("event: error\ndata: {document}\n\n"),
        (_, Family::Responses) => responses(failure, document, closing),
        _ => format!("data: {document}\n\n"),
    };
    let mut bytes = text.into_bytes();
    if closing == Closing::End && format == api.format {
        bytes.extend_from_slice(api.terminator);
    }
    bytes.into()
}

fn document(failure: &Failure, family: Family) -> Value {
    let (message, status) = (failure.sentence(), failure.status);
    let mut error = match family {
        Family::Ollama => return json!({ "error": message }),
        Family::Gemini => {
            let details = failure.retry_after_seconds().map(|seconds| {
                json!([{ "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": format!("{seconds}s") }])
            });
            let name = gemini_name(status);
            let mut error = json!({ "code": status.as_u16(), "message": message, "status": name });
            if let Some(details) = details {
                error["details"] = details;
            }
            return json!({ "error": error });
        }
        Family::Anthropic => {
            json!({ "type": failure.kind.as_deref().unwrap_or(anthropic_name(status)), "message": message })
        }
        Family::OpenAi | Family::Responses | Family::LlamaCpp => json!({
            "message": message,
            "type": failure.kind.as_deref().unwrap_or(openai_name(status)),
            "param": failure.param,
            "code": failure.code.as_deref().unwrap_or(status.as_str()),
        }),
    };
    error["status"] = status.as_u16().into();
    if let Some(retry_after) = &failure.retry_after {
        error["retry_after"] = retry_after.as_str().into();
    }
    match family {
        Family::Anthropic => json!({ "type": "error", "error": error }),
        _ => json!({ "error": error }),
    }
}

/// Responses counts its events and has one that ends a failed stream.
///
/// The error is in the event twice: as the API's reference has it, and under `error`, where OpenAI's own SDKs look.
fn responses(failure: &Failure, document: Value, closing: Closing) -> String {
    let number = match closing {
        Closing::End => 0,
        Closing::Abort { sequence } => sequence,
    };
    let error = &document["error"];
    let event = json!({
        "type": "error",
        "code": error["code"],
        "message": error["message"],
        "param": error["param"],
        "sequence_number": number,
        "error": error,
    });
    let event = format!("event: error\ndata: {event}\n\n");
    if closing != Closing::End {
        return event;
    }
    let failed = json!({
        "type": "response.failed",
        "sequence_number": number + 1,
        "response": {
            "id": "resp_failed",
            "object": "response",
            "created_at": 0,
            "status": "failed",
            "error": { "code": openai_name(failure.status), "message": error["message"] },
            "output": [],
        },
    });
    format!("{event}event: response.failed\ndata: {failed}\n\n")
}

fn openai_name(status: StatusCode) -> &'static str {
    match status.as_u16() {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        429 => "rate_limit_error",
        400..500 => "invalid_request_error",
        _ => "server_error",
    }
}

fn anthropic_name(status: StatusCode) -> &'static str {
    match status.as_u16() {
        413 => "request_too_large",
        503 | 529 => "overloaded_error",
        504 => "timeout_error",
        400..500 => openai_name(status),
        _ => "api_error",
    }
}

/// The canonical names of google.rpc.Code for the statuses they map to.
fn gemini_name(status: StatusCode) -> &'static str {
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
