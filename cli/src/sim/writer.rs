//! Writes an answer in the shape of its API: the API's own templates, filled in with the words of the seed.
//!
//! Called by the script for every part of an answer; knows no API by name, but for the `id:` fields of plain events.

use http::StatusCode;

use super::call::{Call, quoted};
use super::wire::Wire;
use super::words::{identifier, text, word};
use heartline::Format;
use heartline::api::{Api, Closing, Fault, fill};

/// A part of a streamed answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// What comes before the first token; several APIs have nothing there.
    Open,
    /// The token with this number.
    Token(u32),
    /// All that follows the last token, the API's own terminator included.
    Close,
    /// An error after some tokens, and what the API lets follow it.
    Error,
}

/// Writes the events of one answer, and counts them.
#[derive(Debug)]
pub(crate) struct Writer {
    wire: Wire,
    /// The number of the next event.
    number: u32,
}

impl Writer {
    pub(crate) fn new(wire: Wire) -> Self {
        Self { wire, number: 0 }
    }

    /// Writes one part of a streamed answer.
    pub(crate) fn write(&mut self, call: &Call, part: Part) -> Vec<u8> {
        let answer = call.api.answer();
        let (events, index) = match part {
            Part::Open => (answer.open, 0),
            Part::Token(index) => (answer.token, index),
            Part::Close => (answer.close, call.tokens),
            Part::Error => {
                self.fail(call);
                return self.wire.take();
            }
        };
        if call.terms.ids && call.api == Api::EVENTS && part == Part::Token(index) {
            self.wire.field("id: ", &index.to_string());
        }
        for event in events.iter().filter(|event| call.usage || !event.is_usage) {
            let filled = |template: &str| fill(template, |place| value(call, place, index, self.number));
            let (name, data) = (event.name.map(filled), filled(event.data));
            self.event(call, name.as_deref(), &data);
        }
        self.wire.take()
    }

    /// Writes the error of [`Script::LateError`](super::Script::LateError).
    fn fail(&mut self, call: &Call) {
        let mut fault = late();
        fault.number = self.number;
        let text = call.api.error(&fault, call.api.format(), Closing::End);
        if text.is_empty() {
            return self.event(call, Some("error"), fault.message);
        }
        for event in text.split_terminator(if is_ndjson(call) { "\n" } else { "\n\n" }) {
            let line = |name| event.lines().find_map(|line| line.strip_prefix(name));
            let data = if is_ndjson(call) { Some(event) } else { line("data: ") };
            self.event(call, line("event: "), data.unwrap_or_default());
        }
    }

    fn event(&mut self, call: &Call, name: Option<&str>, data: &str) {
        match is_ndjson(call) {
            true => self.wire.json_line(data),
            false => self.wire.event(name, data),
        }
        self.number += 1;
    }
}

/// Writes a whole answer as one JSON document.
pub(crate) fn document(call: &Call) -> String {
    let whole = |place: &str| if place == "text" { "whole".to_owned() } else { place.to_owned() };
    fill(call.api.answer().document, |place| value(call, &whole(place), call.tokens, 0))
}

/// The error of [`Script::LateError`](super::Script::LateError).
pub(crate) fn late() -> Fault<'static> {
    Fault::new(StatusCode::INTERNAL_SERVER_ERROR, "the engine ran out of memory for its cache")
}

/// Writes the list of models.
pub(crate) fn models() -> String {
    format!(
        r#"{{"object":"list","data":[{{"id":"{MODEL}","object":"model","created":{CREATED},"owned_by":"heartline"}}]}}"#
    )
}

/// What stands at a place of a template.
fn value(call: &Call, place: &str, index: u32, number: u32) -> Option<String> {
    let (seed, total) = (call.terms.seed, call.prompt_tokens + call.tokens as usize);
    Some(match place {
        "model" => call.model.clone(),
        "text" => json(call, word(seed, index)),
        "whole" => json(call, &text(seed, call.tokens)),
        "plain" => word(seed, index).to_owned(),
        "id" => identifier(seed),
        "created" => CREATED.to_string(),
        "created_at" => CREATED_AT.to_owned(),
        "index" => index.to_string(),
        "number" => number.to_string(),
        "prompt_tokens" => call.prompt_tokens.to_string(),
        "tokens" => call.tokens.to_string(),
        "total_tokens" => total.to_string(),
        _ => {
            let reason = call.api.answer().reasons.iter().find(|(name, _)| *name == place);
            return reason.map(|(_, words)| words[usize::from(call.cut_short)].to_owned());
        }
    })
}

/// A text as JSON; of lines as Ollama's encoder does, since clients that split text into lines take U+2028 for a line end.
fn json(call: &Call, text: &str) -> String {
    match is_ndjson(call) {
        true => quoted(text).replace('\u{2028}', r"\u2028"),
        false => quoted(text),
    }
}

fn is_ndjson(call: &Call) -> bool {
    call.api.format() == Format::Ndjson
}

/// The only model there is; a request's own name for it is repeated in the answer.
pub(crate) const MODEL: &str = "heartline-sim";

/// A fixed moment (2026-01-01 UTC), so that equal seeds give equal bytes.
const CREATED: u64 = 1_767_225_600;
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

    #[test]
    fn responses_numbers_every_event_up_to_its_last_and_its_error() {
        for (target, last) in [
            ("/v1/responses?tokens=3", "response.completed"),
            ("/v1/responses?tokens=3&script=late-error", "response.failed"),
        ] {
            let stream = expected_body(&Settings::default(), target, br#"{"stream":true}"#);
            let text = String::from_utf8(stream.to_vec()).unwrap();
            for (number, event) in text.split_terminator("\n\n").enumerate() {
                let (name, data) = event.split_once('\n').unwrap();
                let data: serde_json::Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
                assert_eq!(data["sequence_number"], number);
                assert_eq!(name.strip_prefix("event: "), data["type"].as_str());
            }
            assert!(text.trim_end().rsplit("\n\n").next().unwrap().starts_with(&format!("event: {last}\n")), "{text}");
        }
        let cut = expected_body(&Settings::default(), "/v1/responses", br#"{"stream":true,"max_output_tokens":2}"#);
        let text = String::from_utf8(cut.to_vec()).unwrap();
        assert!(text.contains("event: response.incomplete\n") && text.contains(r#"{"reason":"max_output_tokens"}"#));
    }
}
