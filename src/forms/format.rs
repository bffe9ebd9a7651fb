//! The formats of a live stream, and how a `Content-Type` names them. The layer and the proxy ask which one a response has.

use http::HeaderValue;

/// The format of a live stream: it decides where a heartbeat may stand and which bytes it may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// A `text/event-stream` (server-sent events). Heartbeats have the stream's form.
    #[default]
    EventStream,
    /// One JSON value a line. A heartbeat is one space at the start of a line; where the end of such a stream is
    /// not announced by `"done":true`, a space may remain after the last line.
    Ndjson,
    /// One JSON document. A heartbeat is a `\n` before its first byte; none follows.
    Json,
}

impl Format {
    /// The format a `Content-Type` names, `None` for any other type.
    ///
    /// The type itself must match exactly, in any case; parameters such as `charset` are ignored. Types with the
    /// suffix `+json` are not taken for JSON.
    #[must_use]
    pub fn of_content_type(value: &HeaderValue) -> Option<Self> {
        let bytes = value.as_bytes();
        let end = memchr::memchr(b';', bytes).unwrap_or(bytes.len());
        let essence = bytes[..end].trim_ascii();
        CONTENT_TYPES.iter().find(|(name, _)| essence.eq_ignore_ascii_case(name.as_bytes())).map(|&(_, format)| format)
    }

    /// The `Content-Type` to send with this format.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::EventStream => "text/event-stream",
            Self::Ndjson => "application/x-ndjson",
            Self::Json => "application/json",
        }
    }
}

/// Names seen in the wild for each format; none of the line-based ones is registered.
const CONTENT_TYPES: [(&str, Format); 7] = [
    ("text/event-stream", Format::EventStream),
    ("application/json", Format::Json),
    ("application/x-ndjson", Format::Ndjson),
    ("application/ndjson", Format::Ndjson),
    ("application/jsonl", Format::Ndjson),
    ("application/jsonlines", Format::Ndjson),
    ("application/x-jsonlines", Format::Ndjson),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &'static str) -> Option<Format> {
        Format::of_content_type(&HeaderValue::from_static(text))
    }

    #[test]
    fn any_case_and_any_parameters_name_the_format() {
        assert_eq!(of("Text/Event-Stream;charset=UTF-8"), Some(Format::EventStream));
        assert_eq!(of("text/event-stream ; x=1"), Some(Format::EventStream));
        assert_eq!(of("APPLICATION/JSON"), Some(Format::Json));
        assert_eq!(of("application/jsonl"), Some(Format::Ndjson));
    }

    #[test]
    fn near_misses_are_no_live_stream() {
        for text in ["text/event-stream2", "text/html", "application/problem+json", "application/json-seq", "", ";"] {
            assert_eq!(of(text), None, "{text}");
        }
    }

    #[test]
    fn a_format_recognises_its_own_content_type() {
        for format in [Format::EventStream, Format::Ndjson, Format::Json] {
            assert_eq!(of(format.content_type()), Some(format));
        }
    }
}
