//! The APIs whose streams are understood: where they are asked, how a stream ends, how it tells of an error.

use std::str::FromStr;

use super::LoadError;

/// An API whose streams are understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Api {
    /// OpenAI's chat completions: `data: [DONE]` ends a stream.
    OpenaiChat,
    /// OpenAI's completions: `data: [DONE]` ends a stream.
    OpenaiCompletions,
    /// OpenAI's responses: `response.completed`, `failed` or `incomplete` ends a stream, and every event has a number.
    Responses,
    /// Anthropic's messages: `message_stop` ends a stream, and `ping` events are heartbeats.
    Anthropic,
    /// Ollama's chat: NDJSON, and the line with `"done":true` is the last.
    Ollama,
}

impl Api {
    /// All of them, in the order of the help.
    pub const ALL: [Self; 5] =
        [Self::OpenaiChat, Self::OpenaiCompletions, Self::Responses, Self::Anthropic, Self::Ollama];

    /// Returns the name, as the command, the report and a configuration file write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenaiChat => "openai-chat",
            Self::OpenaiCompletions => "openai-completions",
            Self::Responses => "responses",
            Self::Anthropic => "anthropic",
            Self::Ollama => "ollama",
        }
    }

    /// Returns the path that is asked when the URL has none.
    pub fn path(self) -> &'static str {
        match self {
            Self::OpenaiChat => "/v1/chat/completions",
            Self::OpenaiCompletions => "/v1/completions",
            Self::Responses => "/v1/responses",
            Self::Anthropic => "/v1/messages",
            Self::Ollama => "/api/chat",
        }
    }
}

impl FromStr for Api {
    type Err = LoadError;

    fn from_str(text: &str) -> Result<Self, LoadError> {
        Self::ALL.into_iter().find(|api| api.name() == text).ok_or_else(|| {
            LoadError::config(format!(
                "{text} is no API known here; use one of {}",
                Self::ALL.map(Self::name).join(", ")
            ))
        })
    }
}
