//! OpenAI's shapes: chat completions, completions, the list of models, errors.
//!
//! Called through [`Endpoint`].

use super::call::{Call, Reply, quoted};
use super::endpoint::{Endpoint, Fault, LATE, Part};
use super::wire::Wire;
use super::words::{identifier, text, word};

/// Writes one part of a stream.
pub(crate) fn write(call: &Call, part: Part, wire: &mut Wire) {
    let chat = call.endpoint == Endpoint::OpenaiChat;
    match part {
        Part::Open if chat => wire.event(None, &chunk(call, r#""delta":{"role":"assistant","content":""}"#, "null")),
        Part::Open => {}
        Part::Token(index) => {
            let word = quoted(word(call.terms.seed, index));
            let piece = if chat { format!(r#""delta":{{"content":{word}}}"#) } else { format!(r#""text":{word}"#) };
            wire.event(None, &chunk(call, &piece, "null"));
        }
        Part::Close => {
            let piece = if chat { r#""delta":{}"# } else { r#""text":"""# };
            wire.event(None, &chunk(call, piece, finish_reason(call)));
            if call.usage {
                wire.event(None, &format!(r#"{},"choices":[],"usage":{}}}"#, head(call, Reply::Stream), usage(call)));
            }
            wire.event(None, DONE);
        }
        Part::Error => {
            wire.event(None, &fault(&LATE));
            wire.event(None, DONE);
        }
    }
}

/// Writes a whole answer.
pub(crate) fn document(call: &Call) -> String {
    let text = quoted(&text(call.terms.seed, call.tokens));
    let piece = if call.endpoint == Endpoint::OpenaiChat {
        format!(r#""message":{{"role":"assistant","content":{text},"refusal":null}}"#)
    } else {
        format!(r#""text":{text}"#)
    };
    format!(
        r#"{},"choices":[{}],"usage":{}}}"#,
        head(call, Reply::Document),
        choice(&piece, finish_reason(call)),
        usage(call)
    )
}

/// Writes an error.
pub(crate) fn fault(fault: &Fault<'_>) -> String {
    let kind = if fault.status.is_server_error() { "server_error" } else { "invalid_request_error" };
    format!(
        r#"{{"error":{{"message":{},"type":"{kind}","param":null,"code":{}}}}}"#,
        quoted(fault.message),
        fault.status.as_u16()
    )
}

/// Writes the list of models.
pub(crate) fn models() -> String {
    format!(
        r#"{{"object":"list","data":[{{"id":"{MODEL}","object":"model","created":{CREATED},"owned_by":"heartline"}}]}}"#
    )
}

fn chunk(call: &Call, piece: &str, finish_reason: &str) -> String {
    format!(r#"{},"choices":[{}]}}"#, head(call, Reply::Stream), choice(piece, finish_reason))
}

fn choice(piece: &str, finish_reason: &str) -> String {
    format!(r#"{{"index":0,{piece},"logprobs":null,"finish_reason":{finish_reason}}}"#)
}

/// The members that every chunk and every whole answer begin with, without the closing brace.
fn head(call: &Call, reply: Reply) -> String {
    let (prefix, object) = match (call.endpoint, reply) {
        (Endpoint::OpenaiChat, Reply::Stream) => ("chatcmpl", "chat.completion.chunk"),
        (Endpoint::OpenaiChat, Reply::Document) => ("chatcmpl", "chat.completion"),
        _ => ("cmpl", "text_completion"),
    };
    format!(
        r#"{{"id":"{prefix}-{}","object":"{object}","created":{CREATED},"model":{}"#,
        identifier(call.terms.seed),
        call.model
    )
}

fn finish_reason(call: &Call) -> &'static str {
    if call.cut_short { r#""length""# } else { r#""stop""# }
}

fn usage(call: &Call) -> String {
    let (prompt, completion) = (call.prompt_tokens, call.tokens);
    let total = prompt + completion as usize;
    format!(r#"{{"prompt_tokens":{prompt},"completion_tokens":{completion},"total_tokens":{total}}}"#)
}

/// The only model there is; a request's own name for it is repeated in the answer.
pub(crate) const MODEL: &str = "heartline-sim";

/// A fixed moment (2026-01-01 UTC, in seconds), so that equal seeds give equal bytes.
const CREATED: u64 = 1_767_225_600;

const DONE: &str = "[DONE]";
