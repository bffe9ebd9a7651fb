//! Ollama's shapes: the NDJSON lines of `/api/chat` and `/api/generate`, the whole answer, errors.
//!
//! Called through [`Endpoint`]. The last line has a top-level `"done":true`; a line with an error ends the stream too.

use super::call::{Call, quoted};
use super::endpoint::{Endpoint, Fault, LATE, Part};
use super::wire::Wire;
use super::words::{text, word};

/// Writes one part of a stream.
pub(crate) fn write(call: &Call, part: Part, wire: &mut Wire) {
    match part {
        Part::Open => {}
        Part::Token(index) => {
            wire.json_line(&format!(r#"{},"done":false}}"#, head(call, word(call.terms.seed, index))))
        }
        Part::Close => wire.json_line(&last(call, "")),
        Part::Error => wire.json_line(&fault(&LATE)),
    }
}

/// Writes a whole answer.
pub(crate) fn document(call: &Call) -> String {
    last(call, &text(call.terms.seed, call.tokens))
}

/// Writes an error.
pub(crate) fn fault(fault: &Fault<'_>) -> String {
    format!(r#"{{"error":{}}}"#, quoted(fault.message))
}

fn head(call: &Call, text: &str) -> String {
    // As Ollama's encoder does: clients that split text into lines take U+2028 for a line end.
    let text = quoted(text).replace('\u{2028}', r"\u2028");
    let content = if call.endpoint == Endpoint::OllamaGenerate {
        format!(r#""response":{text}"#)
    } else {
        format!(r#""message":{{"role":"assistant","content":{text}}}"#)
    };
    format!(r#"{{"model":{},"created_at":"{CREATED_AT}",{content}"#, call.model)
}

fn last(call: &Call, text: &str) -> String {
    let reason = if call.cut_short { "length" } else { "stop" };
    format!(
        r#"{},"done_reason":"{reason}","done":true,"total_duration":0,"load_duration":0,"prompt_eval_count":{},"prompt_eval_duration":0,"eval_count":{},"eval_duration":0}}"#,
        head(call, text),
        call.prompt_tokens,
        call.tokens
    )
}

/// A fixed moment, so that equal seeds give equal bytes.
const CREATED_AT: &str = "2026-01-01T00:00:00Z";

#[cfg(test)]
mod tests {
    use crate::sim::{Settings, expected_body};

    #[test]
    fn no_line_holds_what_a_client_may_take_for_a_line_end() {
        let stream = expected_body(&Settings::default(), "/api/chat?tokens=500", b"");
        let text = String::from_utf8(stream.to_vec()).unwrap();
        assert!(text.contains(r"\u2028") && !text.contains('\u{2028}'));
        assert_eq!(text.lines().count(), 501);
    }
}
