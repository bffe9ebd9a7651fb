//! The endpoints an engine serves, and which API file writes for each.
//!
//! Called by the script for every part of an answer.

use http::StatusCode;

use super::call::Call;
use super::choices::Api;
use super::wire::Wire;
use super::{anthropic, ollama, openai, plain};

/// Where a request went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    OpenaiChat,
    OpenaiCompletions,
    AnthropicMessages,
    OllamaChat,
    OllamaGenerate,
    Events,
}

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

/// An error to put into the API's own shape.
#[derive(Debug)]
pub(crate) struct Fault<'a> {
    pub(crate) status: StatusCode,
    pub(crate) message: &'a str,
}

impl Endpoint {
    /// Every path, for the answer to a wrong one.
    pub(crate) const PATHS: &'static str =
        "/v1/chat/completions, /v1/completions, /v1/models, /v1/messages, /api/chat, /api/generate, /events and /";

    /// Finds the endpoint at a path; `/` is the one of `api`.
    pub(crate) fn at(path: &str, api: Api) -> Option<Self> {
        Some(match (path, api) {
            ("/v1/chat/completions", _) | ("/", Api::Openai) => Self::OpenaiChat,
            ("/v1/completions", _) => Self::OpenaiCompletions,
            ("/v1/messages", _) | ("/", Api::Anthropic) => Self::AnthropicMessages,
            ("/api/chat", _) | ("/", Api::Ollama) => Self::OllamaChat,
            ("/api/generate", _) => Self::OllamaGenerate,
            ("/events", _) | ("/", Api::Plain) => Self::Events,
            _ => return None,
        })
    }

    /// Whether a request without `stream` is answered by a stream.
    pub(crate) fn streams_by_default(self) -> bool {
        matches!(self, Self::OllamaChat | Self::OllamaGenerate | Self::Events)
    }

    /// Whether its streams are NDJSON; all others are event streams.
    pub(crate) fn is_ndjson(self) -> bool {
        matches!(self, Self::OllamaChat | Self::OllamaGenerate)
    }

    /// What a stream is called in a list of live ones.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::OpenaiChat => "chat completion",
            Self::OpenaiCompletions => "completion",
            Self::AnthropicMessages => "message",
            Self::OllamaChat => "chat",
            Self::OllamaGenerate => "generate",
            Self::Events => "events",
        }
    }

    /// Writes one part of a streamed answer.
    pub(crate) fn write(self, call: &Call, part: Part, wire: &mut Wire) {
        match self {
            Self::OpenaiChat | Self::OpenaiCompletions => openai::write(call, part, wire),
            Self::AnthropicMessages => anthropic::write(call, part, wire),
            Self::OllamaChat | Self::OllamaGenerate => ollama::write(call, part, wire),
            Self::Events => plain::write(call, part, wire),
        }
    }

    /// Writes a whole answer as one JSON document.
    pub(crate) fn document(self, call: &Call) -> String {
        match self {
            Self::OpenaiChat | Self::OpenaiCompletions => openai::document(call),
            Self::AnthropicMessages => anthropic::document(call),
            // `/events` always streams and never comes here.
            Self::OllamaChat | Self::OllamaGenerate | Self::Events => ollama::document(call),
        }
    }

    /// Writes an error as one JSON document.
    pub(crate) fn fault(self, fault: &Fault<'_>) -> String {
        match self {
            Self::OpenaiChat | Self::OpenaiCompletions | Self::Events => openai::fault(fault),
            Self::AnthropicMessages => anthropic::fault(fault),
            Self::OllamaChat | Self::OllamaGenerate => ollama::fault(fault),
        }
    }
}

/// The error of [`Script::LateError`](super::Script::LateError).
pub(crate) const LATE: Fault<'static> =
    Fault { status: StatusCode::INTERNAL_SERVER_ERROR, message: "the engine ran out of memory for its cache" };
