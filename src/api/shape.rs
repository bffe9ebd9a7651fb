//! The error that a stream's client is sent when heartline ends the stream (I8): an API's own, or the user's. Asked by `live`.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use super::{Api, Closing, Fault};
use crate::ending::Ended;
use crate::format::Format;

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

    pub(crate) fn of_format(format: Format) -> Self {
        match format {
            Format::Ndjson => Self::ndjson(),
            _ => Self::of_api(Api::OPENAI_CHAT, format),
        }
    }

    /// Whether the shape needs the stream's last `sequence_number`.
    pub(crate) fn is_numbered(&self) -> bool {
        matches!(self.0, Shape::Api(api, _) if api.is_numbered())
    }

    /// The bytes of the error; `number` is the one it carries where the shape has one. None if nothing is to be written.
    pub(crate) fn error(&self, ended: Ended, number: u32) -> Bytes {
        match &self.0 {
            Shape::Api(api, format) => {
                let message = ended.to_string();
                api.error(&Fault::of_ended(ended, &message, number), *format, Closing::Abort).into()
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
