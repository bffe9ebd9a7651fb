//! The error that a stream's client is sent when heartline ends the stream (I8): an API's own, or the user's. Asked by `live`.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use super::{Api, Closing, Fault};
use crate::ending::Ended;
use crate::forms::format::Format;

/// The shape of the error that a stream's client is sent when heartline ends the stream at an event boundary.
///
/// The default follows the stream's format: [`openai`](Self::openai) for event streams, [`ndjson`](Self::ndjson) for
/// NDJSON and a plain error object for JSON. None of the shapes sends the API's success terminator (such as `[DONE]`).
/// Those of all known APIs: [`Api::error_shape`].
#[derive(Clone)]
pub struct ErrorShape(Shape);

#[derive(Clone)]
enum Shape {
    /// The API's own, in an answer of this format.
    Api(Api, Format),
    /// Nothing is written.
    None,
    Custom(Arc<dyn Fn(Ended) -> Bytes + Send + Sync>),
}

impl ErrorShape {
    /// `data: {"error":{"message":…,"type":…,"param":null,"code":…}}`, as OpenAI's chat and completion clients read it.
    pub fn openai() -> Self {
        Self::of_api(Api::OPENAI_CHAT, Format::EventStream)
    }

    /// `event: error` with `{"type":"error","error":{…}}`, as Anthropic's clients read it.
    pub fn anthropic() -> Self {
        Self::of_api(Api::ANTHROPIC, Format::EventStream)
    }

    /// `event: error` with a `sequence_number`, as clients of OpenAI's Responses API read it.
    ///
    /// The number is one more than the last that the stream sent whole in one frame.
    pub fn responses() -> Self {
        Self::of_api(Api::RESPONSES, Format::EventStream)
    }

    /// `{"error":"…"}` on a line of its own, as Ollama's clients read it.
    pub fn ndjson() -> Self {
        Self::of_api(Api::OLLAMA, Format::Ndjson)
    }

    /// Whatever `make` returns: the bytes of exactly one complete event (or line, or document) of the stream's format.
    ///
    /// They are written at an event boundary and passed on unchecked; none at all are what [`none`](Self::none) is. `make`
    /// runs on the task that polls the body.
    pub fn custom(make: impl Fn(Ended) -> Bytes + Send + Sync + 'static) -> Self {
        Self(Shape::Custom(Arc::new(make)))
    }

    /// Nothing: a stream that heartline ends is aborted, so that its client sees a broken response and no foreign message.
    pub const fn none() -> Self {
        Self(Shape::None)
    }

    pub(super) const fn of_api(api: Api, format: Format) -> Self {
        Self(Shape::Api(api, format))
    }

    /// The shape of a stream that was given none: what the clients of its format read most.
    pub const fn of_format(format: Format) -> Self {
        match format {
            Format::Ndjson => Self::of_api(Api::OLLAMA, format),
            _ => Self::of_api(Api::OPENAI_CHAT, format),
        }
    }

    /// The number that an error after `data` has to carry, for a shape that numbers its events: one more than the last
    /// `sequence_number` that stands whole in `data`. `None` for every other shape.
    ///
    /// Heartline asks this of each frame itself; it is for those who write an error into a stream by themselves.
    #[inline]
    pub fn next_sequence(&self, data: &[u8]) -> Option<u32> {
        match self.0 {
            Shape::Api(api, _) if api.is_numbered() => next_sequence(data),
            _ => None,
        }
    }

    /// The bytes of the error: one complete event, line or document, or nothing where the shape writes nothing. `sequence`
    /// is the number it carries where the shape has one ([`next_sequence`](Self::next_sequence)), 0 where the stream has
    /// sent none.
    pub fn error(&self, ended: Ended, sequence: u32) -> Bytes {
        match &self.0 {
            Shape::Api(api, format) => {
                let message = ended.to_string();
                api.error(&Fault::of_ended(ended, &message, sequence), *format, Closing::Abort).into()
            }
            Shape::None => Bytes::new(),
            Shape::Custom(make) => make(ended),
        }
    }
}

impl fmt::Debug for ErrorShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Shape::Api(api, format) => write!(f, "ErrorShape({api}, {format:?})"),
            Shape::None => f.write_str("ErrorShape(none)"),
            Shape::Custom(_) => f.write_str("ErrorShape(custom)"),
        }
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
    fn the_next_sequence_number_ignores_a_torn_one() {
        assert_eq!(next_sequence(b"data: {\"sequence_number\":4,\"sequence_number\": 12}"), Some(13));
        assert_eq!(next_sequence(b"data: {\"sequence_number\":4"), None);
        assert_eq!(next_sequence(b"data: {}"), None);
    }
}
