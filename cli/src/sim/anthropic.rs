//! Anthropic's shapes: the events of `/v1/messages` from `message_start` to `message_stop`, the whole message, errors.
//!
//! Called through [`Endpoint`](super::endpoint::Endpoint).

use http::StatusCode;

use super::call::{Call, quoted};
use super::endpoint::{Fault, LATE, Part};
use super::wire::Wire;
use super::words::{identifier, text, word};

/// Writes one part of a stream.
pub(crate) fn write(call: &Call, part: Part, wire: &mut Wire) {
    match part {
        Part::Open => {
            let message = message(call, "", "null", 1);
            wire.event(Some("message_start"), &format!(r#"{{"type":"message_start","message":{message}}}"#));
            wire.event(
                Some("content_block_start"),
                r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
            );
        }
        Part::Token(index) => {
            let word = quoted(word(call.terms.seed, index));
            wire.event(
                Some("content_block_delta"),
                &format!(r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":{word}}}}}"#),
            );
        }
        Part::Close => {
            wire.event(Some("content_block_stop"), r#"{"type":"content_block_stop","index":0}"#);
            let (reason, tokens) = (stop_reason(call), call.tokens);
            wire.event(
                Some("message_delta"),
                &format!(
                    r#"{{"type":"message_delta","delta":{{"stop_reason":{reason},"stop_sequence":null}},"usage":{{"output_tokens":{tokens}}}}}"#
                ),
            );
            wire.event(Some("message_stop"), r#"{"type":"message_stop"}"#);
        }
        Part::Error => wire.event(Some("error"), &fault(&LATE)),
    }
}

/// Writes a whole answer.
pub(crate) fn document(call: &Call) -> String {
    let block = format!(r#"{{"type":"text","text":{}}}"#, quoted(&text(call.terms.seed, call.tokens)));
    message(call, &block, stop_reason(call), call.tokens)
}

/// Writes an error.
pub(crate) fn fault(fault: &Fault<'_>) -> String {
    let kind = match fault.status {
        StatusCode::NOT_FOUND => "not_found_error",
        status if status.is_server_error() => "api_error",
        _ => "invalid_request_error",
    };
    format!(r#"{{"type":"error","error":{{"type":"{kind}","message":{}}}}}"#, quoted(fault.message))
}

fn message(call: &Call, block: &str, stop_reason: &str, output_tokens: u32) -> String {
    format!(
        r#"{{"id":"msg_{}","type":"message","role":"assistant","model":{},"content":[{block}],"stop_reason":{stop_reason},"stop_sequence":null,"usage":{{"input_tokens":{},"output_tokens":{output_tokens}}}}}"#,
        identifier(call.terms.seed),
        call.model,
        call.prompt_tokens
    )
}

fn stop_reason(call: &Call) -> &'static str {
    if call.cut_short { r#""max_tokens""# } else { r#""end_turn""# }
}
