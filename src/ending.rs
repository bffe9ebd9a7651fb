//! Why heartline ended a stream, and the error event its client is told so with (I8). Used by `body` and `error`.

use crate::format::Format;
use bytes::Bytes;
use std::fmt;
use std::sync::Arc;

/// Why a stream ended before its engine ended it well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ended {
    /// No content went out for [`max_silence`](crate::Builder::max_silence).
    MaxSilence,
    /// The stream lived for [`max_lifetime`](crate::Builder::max_lifetime).
    MaxLifetime,
    /// [`drain`](crate::Heartline::drain) ended what its grace period left.
    Drained,
    /// The inner body failed, and its client is told so ([`Failures`](crate::Failures)).
    Failed,
}

impl Ended {
    /// A stable word for logs, metrics and error codes: `max_silence`, `max_lifetime`, `drained` or `failed`.
    pub fn code(self) -> &'static str {
        match self {
            Self::MaxSilence => "max_silence",
            Self::MaxLifetime => "max_lifetime",
            Self::Drained => "drained",
            Self::Failed => "failed",
        }
    }

    /// The number that stands for this reason in a stream's channel (1 to 3); nobody orders a failure.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::MaxSilence => 1,
            Self::MaxLifetime => 2,
            Self::Drained | Self::Failed => 3,
        }
    }

    pub(crate) fn of_number(number: u8) -> Self {
        match number {
            1 => Self::MaxSilence,
            2 => Self::MaxLifetime,
            _ => Self::Drained,
        }
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MaxSilence => "the engine sent no content for the longest silence allowed",
            Self::MaxLifetime => "the stream reached the longest lifetime allowed",
            Self::Drained => "the server is shutting down",
            Self::Failed => "the engine failed before its answer was complete",
        })
    }
}

/// The shape of the error that a stream's client is sent when heartline ends the stream at an event boundary.
///
/// The default follows the stream's format: [`openai`](Self::openai) for event streams, [`ndjson`](Self::ndjson) for
/// NDJSON and a plain error object for JSON. None of the shapes sends the API's success terminator (such as `[DONE]`).
#[derive(Clone)]
pub struct ErrorShape(Shape);

#[derive(Clone)]
enum Shape {
    OpenAi,
    Anthropic,
    Responses,
    Ndjson,
    Json,
    Custom(Arc<dyn Fn(Ended) -> Bytes + Send + Sync>),
}

impl ErrorShape {
    /// `data: {"error":{"message":…,"type":…,"param":null,"code":…}}`, as OpenAI's chat and completion clients read it.
    pub fn openai() -> Self {
        Self(Shape::OpenAi)
    }

    /// `event: error` with `{"type":"error","error":{…}}`, as Anthropic's clients read it.
    pub fn anthropic() -> Self {
        Self(Shape::Anthropic)
    }

    /// `event: error` with a `sequence_number`, as clients of OpenAI's Responses API read it.
    ///
    /// The number is one more than the last that the stream sent whole in one frame.
    pub fn responses() -> Self {
        Self(Shape::Responses)
    }

    /// `{"error":"…"}` on a line of its own, as Ollama's clients read it.
    pub fn ndjson() -> Self {
        Self(Shape::Ndjson)
    }

    /// Whatever `make` returns: the bytes of exactly one complete event (or line, or document) of the stream's format.
    ///
    /// They are written at an event boundary and passed on unchecked. `make` runs on the task that polls the body.
    pub fn custom(make: impl Fn(Ended) -> Bytes + Send + Sync + 'static) -> Self {
        Self(Shape::Custom(Arc::new(make)))
    }

    /// The shape of a stream that was given none: what the clients of its format read most.
    pub fn of_format(format: Format) -> Self {
        Self(match format {
            Format::Ndjson => Shape::Ndjson,
            Format::Json => Shape::Json,
            _ => Shape::OpenAi,
        })
    }

    /// The number that an error after `data` has to carry, for a shape that numbers its events: one more than the last
    /// `sequence_number` that stands whole in `data`. `None` for every other shape.
    ///
    /// Heartline asks this of each frame itself; it is for those who write an error into a stream by themselves.
    #[inline]
    pub fn next_sequence(&self, data: &[u8]) -> Option<u32> {
        if matches!(self.0, Shape::Responses) { next_sequence(data) } else { None }
    }

    /// The bytes of the error: one complete event, line or document. `sequence` is the number it carries where the shape
    /// has one ([`next_sequence`](Self::next_sequence)), 0 where the stream has sent none.
    pub fn error(&self, ended: Ended, sequence: u32) -> Bytes {
        let (code, message) = (ended.code(), ended);
        match &self.0 {
            Shape::OpenAi => format!(
                "data: {{\"error\":{{\"message\":\"{message}\",\"type\":\"server_error\",\"param\":null,\"code\":\"{code}\"}}}}\n\n"
            )
            .into(),
            Shape::Anthropic => format!(
                "event: error\ndata: {{\"type\":\"error\",\"error\":{{\"type\":\"api_error\",\"message\":\"{message}\"}}}}\n\n"
            )
            .into(),
            Shape::Responses => format!(
                "event: error\ndata: {{\"type\":\"error\",\"code\":\"{code}\",\"message\":\"{message}\",\"param\":null,\"sequence_number\":{sequence}}}\n\n"
            )
            .into(),
            Shape::Ndjson => format!("{{\"error\":\"{message}\"}}\n").into(),
            Shape::Json => {
                format!("{{\"error\":{{\"message\":\"{message}\",\"type\":\"server_error\",\"code\":\"{code}\"}}}}\n").into()
            }
            Shape::Custom(make) => make(ended),
        }
    }
}

impl fmt::Debug for ErrorShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Shape::OpenAi => "ErrorShape::openai",
            Shape::Anthropic => "ErrorShape::anthropic",
            Shape::Responses => "ErrorShape::responses",
            Shape::Ndjson => "ErrorShape::ndjson",
            Shape::Json => "ErrorShape::json",
            Shape::Custom(_) => "ErrorShape::custom",
        })
    }
}

/// The number after the last `sequence_number` in `data`, if one stands whole in it.
fn next_sequence(data: &[u8]) -> Option<u32> {
    let at = memchr::memmem::rfind(data, SEQUENCE)? + SEQUENCE.len();
    let rest = data[at..].trim_ascii_start();
    let digits = rest.iter().position(|byte| !byte.is_ascii_digit())?; // a number that touches the end may be torn
    std::str::from_utf8(&rest[..digits]).ok()?.parse::<u32>().ok()?.checked_add(1)
}

const SEQUENCE: &[u8] = b"\"sequence_number\":";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_is_one_complete_event_or_line_of_valid_json() {
        for shape in [ErrorShape::openai(), ErrorShape::anthropic(), ErrorShape::responses()] {
            let bytes = shape.error(Ended::MaxSilence, 7);
            let text = std::str::from_utf8(&bytes).expect("UTF-8");
            assert!(text.ends_with("\n\n") && text.matches("\n\n").count() == 1);
            let data = text.lines().find_map(|line| line.strip_prefix("data: ")).expect("a data line");
            let value: serde_json::Value = serde_json::from_str(data).expect("JSON");
            assert!(value.get("error").is_some() || value["sequence_number"] == 7);
        }
        for shape in [ErrorShape::ndjson(), ErrorShape::of_format(Format::Json)] {
            let bytes = shape.error(Ended::Drained, 0);
            assert!(bytes.ends_with(b"\n"));
            serde_json::from_slice::<serde_json::Value>(&bytes).expect("JSON");
        }
        assert_eq!(ErrorShape::custom(|ended| ended.code().into()).error(Ended::MaxLifetime, 0), "max_lifetime");
    }

    #[test]
    fn the_next_sequence_number_ignores_a_torn_one() {
        assert_eq!(next_sequence(b"data: {\"sequence_number\":4,\"sequence_number\": 12}"), Some(13));
        assert_eq!(next_sequence(b"data: {\"sequence_number\":4"), None);
        assert_eq!(next_sequence(b"data: {}"), None);
    }

    #[test]
    fn reasons_survive_the_channel() {
        for ended in [Ended::MaxSilence, Ended::MaxLifetime, Ended::Drained] {
            assert_eq!(Ended::of_number(ended.number()), ended);
        }
    }
}
