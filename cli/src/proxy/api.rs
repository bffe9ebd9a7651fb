//! Which known API a request belongs to: an allow-list of methods and paths. Asked by `exchange`.
//!
//! What is not on the list is passed on like anything else, but never answered before its engine has answered (`late`).

use bytes::Bytes;
use http::header::{CONTENT_RANGE, CONTENT_TYPE, RANGE};
use http::{HeaderMap, Method, Uri};

use heartline::{ErrorShape, Format};

/// What is known about an API.
#[derive(Clone, Debug)]
pub(super) struct Api {
    /// Who defined it.
    pub(super) family: Family,
    /// The format of its streams.
    pub(super) format: Format,
    /// Whether it streams when the request does not say.
    pub(super) streams_by_default: Streams,
    /// The error event of its streams.
    pub(super) error_shape: ErrorShape,
    /// The error document of its answers that do not stream.
    pub(super) json_error_shape: ErrorShape,
    /// What follows an error event with which the engine itself ended a stream; empty where the error event is the end.
    pub(super) terminator: &'static [u8],
}

/// Who defined an API: it decides how its errors look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    /// OpenAI's chat and completions, which most engines speak.
    OpenAi,
    /// OpenAI's Responses.
    Responses,
    /// Anthropic's Messages.
    Anthropic,
    /// Ollama's own.
    Ollama,
    /// Gemini.
    Gemini,
    /// llama.cpp's own.
    LlamaCpp,
}

/// Whether a request asks for a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Streams {
    /// It does when its body does not say.
    Yes,
    /// It does not when its body does not say.
    No,
    /// It does, whatever its body says: the path tells.
    Always,
    /// It does not, whatever its body says: the path tells.
    Never,
}

impl Streams {
    /// Whether a request streams whose body says `stream`.
    pub(super) fn decide(self, stream: Option<bool>) -> bool {
        match self {
            Self::Yes => stream.unwrap_or(true),
            Self::No => stream.unwrap_or(false),
            Self::Always => true,
            Self::Never => false,
        }
    }
}

impl Api {
    /// The API of a request; `None` for one that is not on the list, and for every multipart or range request.
    pub(super) fn of(method: &Method, uri: &Uri, headers: &HeaderMap) -> Option<Self> {
        let is_part = headers.contains_key(RANGE) || headers.contains_key(CONTENT_RANGE);
        if *method != Method::POST || is_part || is_multipart(headers) {
            return None;
        }
        let (family, streams_by_default) = of_path(uri.path(), uri.query())?;
        Some(Self::new(family, streams_by_default))
    }

    fn new(family: Family, streams_by_default: Streams) -> Self {
        let (format, error_shape, terminator): (_, _, &[u8]) = match family {
            Family::OpenAi => (Format::EventStream, ErrorShape::openai(), DONE),
            Family::Responses => (Format::EventStream, ErrorShape::responses(), b""),
            Family::Anthropic => (Format::EventStream, ErrorShape::anthropic(), b""),
            Family::Ollama => (Format::Ndjson, ErrorShape::ndjson(), b""),
            Family::Gemini => (Format::EventStream, gemini_shape("data: ", "\n\n"), b""),
            Family::LlamaCpp => (Format::EventStream, ErrorShape::openai(), b""),
        };
        let json_error_shape = match family {
            Family::OpenAi | Family::Responses | Family::LlamaCpp => ErrorShape::of_format(Format::Json),
            Family::Anthropic => ErrorShape::custom(|ended| {
                let error = format!(r#"{{"type":"api_error","message":"{ended}"}}"#);
                Bytes::from(format!("{{\"type\":\"error\",\"error\":{error}}}\n"))
            }),
            Family::Ollama => ErrorShape::ndjson(),
            Family::Gemini => gemini_shape("", "\n"),
        };
        Self { family, format, streams_by_default, error_shape, json_error_shape, terminator }
    }

    /// The shape of an error in an answer of this format.
    pub(super) fn shape_in(&self, format: Format) -> &ErrorShape {
        if format == Format::Json { &self.json_error_shape } else { &self.error_shape }
    }
}

fn gemini_shape(before: &'static str, after: &'static str) -> ErrorShape {
    ErrorShape::custom(move |ended| {
        let error = format!(r#"{{"code":503,"message":"{ended}","status":"UNAVAILABLE"}}"#);
        Bytes::from(format!("{before}{{\"error\":{error}}}{after}"))
    })
}

/// The list. A prefix may stand before `/v1`, as gateways and mounted engines have one.
fn of_path(path: &str, query: Option<&str>) -> Option<(Family, Streams)> {
    let path = path.strip_suffix('/').unwrap_or(path);
    // Not on the list in any case: bodies there are files, and answers may be.
    if path.split('/').any(|segment| FILES.contains(&segment)) {
        return None;
    }
    if let Some(&(_, family, streams)) = EXACT.iter().find(|(known, ..)| path == *known) {
        return Some((family, streams));
    }
    if let Some(&(_, family)) = VERSIONED.iter().find(|(known, _)| path.ends_with(known)) {
        return Some((family, Streams::No));
    }
    let (collection, call) = path.rsplit_once('/')?;
    let (model, action) = call.split_once(':')?;
    if model.is_empty() || !collection.ends_with("/models") {
        return None;
    }
    let is_event_stream = query.is_some_and(|query| query.split('&').any(|field| field == "alt=sse"));
    match action {
        // Without `alt=sse` it streams one JSON array, which is no format of ours.
        "streamGenerateContent" if is_event_stream => Some((Family::Gemini, Streams::Always)),
        "generateContent" => Some((Family::Gemini, Streams::Never)),
        _ => None,
    }
}

fn is_multipart(headers: &HeaderMap) -> bool {
    headers.get_all(CONTENT_TYPE).iter().any(|value| {
        let start = value.as_bytes().trim_ascii_start();
        start.len() >= MULTIPART.len() && start[..MULTIPART.len()].eq_ignore_ascii_case(MULTIPART)
    })
}

/// Paths that are an API only when nothing stands before them: elsewhere anything may be called so.
const EXACT: [(&str, Family, Streams); 6] = [
    ("/api/chat", Family::Ollama, Streams::Yes),
    ("/api/generate", Family::Ollama, Streams::Yes),
    ("/ollama/api/chat", Family::Ollama, Streams::Yes),
    ("/ollama/api/generate", Family::Ollama, Streams::Yes),
    ("/chat/completions", Family::OpenAi, Streams::No),
    ("/completion", Family::LlamaCpp, Streams::No),
];
const VERSIONED: [(&str, Family); 4] = [
    ("/v1/chat/completions", Family::OpenAi),
    ("/v1/completions", Family::OpenAi),
    ("/v1/responses", Family::Responses),
    ("/v1/messages", Family::Anthropic),
];
const FILES: [&str; 7] = ["audio", "image", "images", "video", "videos", "files", "uploads"];
const MULTIPART: &[u8] = b"multipart/";
/// How OpenAI's chat and completions end.
const DONE: &[u8] = b"data: [DONE]\n\n";

#[cfg(test)]
mod tests {
    use super::*;

    fn of(method: &str, uri: &str, fields: &[(&'static str, &'static str)]) -> Option<(Family, Format, Streams)> {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, value.parse().unwrap());
        }
        let api = Api::of(&method.parse().unwrap(), &uri.parse().unwrap(), &headers)?;
        Some((api.family, api.format, api.streams_by_default))
    }

    #[test]
    fn each_api_has_its_own_format_and_default() {
        let events = Format::EventStream;
        for (uri, expected) in [
            ("/v1/chat/completions", (Family::OpenAi, events, Streams::No)),
            ("/v1/chat/completions/", (Family::OpenAi, events, Streams::No)),
            ("/openrouter/api/v1/chat/completions?x=1", (Family::OpenAi, events, Streams::No)),
            ("/chat/completions", (Family::OpenAi, events, Streams::No)),
            ("/v1/completions", (Family::OpenAi, events, Streams::No)),
            ("/v1/responses", (Family::Responses, events, Streams::No)),
            ("/v1/messages?beta=true", (Family::Anthropic, events, Streams::No)),
            ("/anthropic/v1/messages", (Family::Anthropic, events, Streams::No)),
            ("/api/chat", (Family::Ollama, Format::Ndjson, Streams::Yes)),
            ("/api/generate", (Family::Ollama, Format::Ndjson, Streams::Yes)),
            ("/completion", (Family::LlamaCpp, events, Streams::No)),
            ("/v1beta/models/gemini-9:streamGenerateContent?alt=sse", (Family::Gemini, events, Streams::Always)),
            ("/v1beta/models/gemini-9:streamGenerateContent?key=1&alt=sse", (Family::Gemini, events, Streams::Always)),
            ("/v1beta/models/gemini-9:generateContent", (Family::Gemini, events, Streams::Never)),
        ] {
            assert_eq!(of("POST", uri, &[("content-type", "application/json")]), Some(expected), "{uri}");
            assert_eq!(of("GET", uri, &[]), None, "GET {uri}");
        }
    }

    #[test]
    fn what_is_not_on_the_list_is_no_api() {
        for uri in [
            "/",
            "/v1/models",
            "/v1/embeddings",
            "/v1/chat/completions/chatcmpl-1",
            "/v1/messages/count_tokens",
            "/v1/messages/batches",
            "/xv1/chat/completions",
            "/V1/chat/completions",
            "/v1/audio/transcriptions",
            "/v1/audio/v1/chat/completions",
            "/v1/images/generations",
            "/files/v1/responses",
            "/app/api/chat",
            "/api/chats",
            "/api/pull",
            "/v1beta/models/gemini-9:streamGenerateContent",
            "/v1beta/models/gemini-9:streamGenerateContent?alt=json",
            "/v1beta/models/gemini-9:countTokens?alt=sse",
            "/v1beta/:streamGenerateContent?alt=sse",
        ] {
            assert_eq!(of("POST", uri, &[]), None, "{uri}");
        }
    }

    #[test]
    fn multipart_and_ranges_are_no_api() {
        for field in [
            ("content-type", "multipart/form-data; boundary=x"),
            ("content-type", " Multipart/Mixed"),
            ("range", "bytes=0-1"),
            ("content-range", "bytes 0-1/2"),
        ] {
            assert_eq!(of("POST", "/v1/chat/completions", &[field]), None, "{field:?}");
        }
    }

    #[test]
    fn the_body_decides_where_the_path_does_not() {
        let said = |streams: Streams| [None, Some(false), Some(true)].map(|stream| streams.decide(stream));
        assert_eq!(said(Streams::Yes), [true, false, true]);
        assert_eq!(said(Streams::No), [false, false, true]);
        assert_eq!(said(Streams::Always), [true; 3]);
        assert_eq!(said(Streams::Never), [false; 3]);
    }

    #[test]
    fn every_family_reports_an_end_in_each_format_as_one_valid_document() {
        for family in
            [Family::OpenAi, Family::Responses, Family::Anthropic, Family::Ollama, Family::Gemini, Family::LlamaCpp]
        {
            let api = Api::new(family, Streams::No);
            let document = api.shape_in(Format::Json).error(heartline::Ended::Failed, 0);
            let document: serde_json::Value = serde_json::from_slice(&document).unwrap();
            assert!(document.get("error").is_some(), "{family:?}");
            let event = api.shape_in(api.format).error(heartline::Ended::Failed, 0);
            let is_line = api.format == Format::Ndjson;
            assert!(event.ends_with(if is_line { b"\n" } else { b"\n\n" }), "{family:?}");
        }
    }
}
