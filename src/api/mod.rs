//! What is known of each API whose answers stream: where it is asked, in which format it answers, how a stream ends and
//! how it tells of an error. Pure: asked by the byte machines, by `Form::auto`, and by whoever serves, passes on, plays or
//! judges such streams.
//!
//! ```
//! use heartline::api::{Api, Closing, Endpoint, Fault};
//! use heartline::Format;
//! use http::{HeaderMap, Method, StatusCode};
//!
//! let uri = "/openai/deployments/gpt/chat/completions?api-version=1".parse().unwrap();
//! let endpoint = Endpoint::of_request(&Method::POST, &uri, &HeaderMap::new()).unwrap();
//! assert_eq!(endpoint.api(), Api::OPENAI_CHAT);
//! assert!(endpoint.streams(Some(true)) && !endpoint.streams(None));
//! let fault = Fault::new(StatusCode::BAD_GATEWAY, "the engine is gone");
//! let event = endpoint.api().error(&fault, Format::EventStream, Closing::End);
//! assert!(event.starts_with("data: {\"error\":") && event.ends_with("data: [DONE]\n\n"));
//! ```
//!
//! # To add an API
//!
//! 1. Write a file beside this one: a `Spec` with the API's name, its paths, the signs of its ends and errors, how its
//!    errors are written, how it is asked and how it answers. Read how the engine really does it first, and say where.
//! 2. Name the file below, give the API a constant, and add that to [`Api::ALL`].
//! 3. Put an answer of the real engine under `tests/api/`, as `NAME.sse`, `NAME.ndjson` or `NAME.json`.
//!
//! The tests that go over all APIs then hold it to the rest: its path is recognised, its errors are valid in each format,
//! its terminator is seen by the byte machine (`tests/api.rs`), the scripted engine plays it and the load harness accepts
//! what it plays (`cli/tests/apis_played.rs`).

mod answer;
mod endpoint;
mod fault;
mod pattern;
mod question;
mod shape;
mod sign;
mod spec;

mod anthropic;
mod events;
mod gemini;
mod llama_cpp;
pub(crate) mod ollama;
pub(crate) mod openai;
mod responses;
mod sglang;
mod tgi;
mod triton;

use std::fmt;
use std::str::FromStr;

pub use self::answer::{Answer, Part, fill};
pub use self::endpoint::{Endpoint, Streams};
pub use self::fault::{Closing, Fault};
pub use self::pattern::Pattern;
pub use self::question::Question;
pub use self::shape::ErrorShape;
pub use self::sign::Sign;
use self::spec::Spec;
use crate::error::Error;
use crate::format::Format;
use crate::heartbeat::Form;

/// A known API: a handle to what its file says, as cheap to copy as a reference.
#[derive(Clone, Copy)]
pub struct Api(&'static Spec);

impl Api {
    /// OpenAI's chat completions, which most engines speak.
    pub const OPENAI_CHAT: Self = Self(&openai::CHAT);
    /// OpenAI's completions.
    pub const OPENAI_COMPLETIONS: Self = Self(&openai::COMPLETIONS);
    /// OpenAI's Responses, whose events are numbered.
    pub const RESPONSES: Self = Self(&responses::SPEC);
    /// Anthropic's Messages.
    pub const ANTHROPIC: Self = Self(&anthropic::SPEC);
    /// Ollama's own chat: JSON lines.
    pub const OLLAMA: Self = Self(&ollama::CHAT);
    /// Ollama's own completion: JSON lines.
    pub const OLLAMA_GENERATE: Self = Self(&ollama::GENERATE);
    /// Gemini's `generateContent` and `streamGenerateContent`.
    pub const GEMINI: Self = Self(&gemini::SPEC);
    /// llama.cpp's own completion.
    pub const LLAMA_CPP: Self = Self(&llama_cpp::SPEC);
    /// SGLang's own `generate`, which LMDeploy speaks too.
    pub const SGLANG: Self = Self(&sglang::SPEC);
    /// The `generate_stream` of Text Generation Inference.
    pub const TGI: Self = Self(&tgi::SPEC);
    /// Triton's generate extension.
    pub const TRITON: Self = Self(&triton::SPEC);
    /// An event stream of which nothing more is known: it has no terminator, and no error can be written into it.
    pub const EVENTS: Self = Self(&events::SPEC);

    /// All of them, in the order of a help text.
    pub const ALL: &[Self] = &[
        Self::OPENAI_CHAT,
        Self::OPENAI_COMPLETIONS,
        Self::RESPONSES,
        Self::ANTHROPIC,
        Self::OLLAMA,
        Self::OLLAMA_GENERATE,
        Self::GEMINI,
        Self::LLAMA_CPP,
        Self::SGLANG,
        Self::TGI,
        Self::TRITON,
        Self::EVENTS,
    ];

    /// The API at a path: the one whose endpoint this is, else the one whose other endpoints are nearest to it, else
    /// [`EVENTS`](Self::EVENTS). For answers of one's own, which ought to look like the API's; what may be *done* to a
    /// request [`Endpoint::of_request`] says.
    #[must_use]
    pub fn nearest(path: &str, query: Option<&str>) -> Self {
        if let Some(endpoint) = Endpoint::of_path(path, query) {
            return endpoint.api();
        }
        // What stands further right is closer to the endpoint: `/api/v1/models` is OpenAI's, not Ollama's.
        let near = Self::ALL.iter().flat_map(|api| api.0.near.iter().map(move |part| (part, api)));
        let found = near.filter_map(|(part, api)| Some(((path.rfind(part)?, part.len()), *api)));
        // Of equal ones the first is taken, the chat before the completions.
        found.reduce(|best, next| if next.0 > best.0 { next } else { best }).map_or(Self::EVENTS, |(_, api)| api)
    }

    /// The name, as commands, reports and settings write it: `openai-chat`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.0.name
    }

    /// What one answer is called in a list of live streams: `chat completion`.
    #[must_use]
    pub const fn label(self) -> &'static str {
        self.0.label
    }

    /// The path and query at which it is asked a question.
    #[must_use]
    pub fn request_path(self, question: &Question<'_>) -> String {
        let path = self.0.document_path.filter(|_| !question.is_streamed).unwrap_or(self.0.path);
        fill(path, |name| (name == "model").then(|| question.model.to_owned()))
    }

    /// A header that takes the caller's key, besides the usual `authorization`.
    #[must_use]
    pub const fn key_header(self) -> Option<&'static str> {
        self.0.key_header
    }

    /// Headers that every request needs, besides its content type and the key.
    #[must_use]
    pub const fn request_headers(self) -> &'static [(&'static str, &'static str)] {
        self.0.headers
    }

    /// The format of its streams.
    #[must_use]
    pub const fn format(self) -> Format {
        self.0.format
    }

    /// The heartbeat that suits its streams whoever the client is; `None` where that depends on the client.
    #[must_use]
    pub fn default_form(self) -> Option<Form> {
        self.0.form.map(|form| form())
    }

    /// A request header that only its clients send, if there is one.
    #[must_use]
    pub const fn client_header(self) -> Option<&'static str> {
        self.0.client_header
    }

    /// What its last event looks like when a stream is complete; nothing for an API that has no such event.
    #[must_use]
    pub const fn ends(self) -> &'static [Sign] {
        self.0.ends
    }

    /// What its last event looks like when a stream has failed; nothing where [`errors`](Self::errors) are all there is.
    #[must_use]
    pub const fn failed_ends(self) -> &'static [Sign] {
        self.0.failed_ends
    }

    /// What an event looks like that tells of an error.
    #[must_use]
    pub const fn errors(self) -> &'static [Sign] {
        self.0.errors
    }

    /// What an event looks like that is a heartbeat by the API's own definition.
    #[must_use]
    pub const fn pings(self) -> &'static [Sign] {
        self.0.pings
    }

    /// Whether each event carries a `sequence_number`, one more than the last.
    #[must_use]
    pub const fn is_numbered(self) -> bool {
        self.0.is_numbered
    }

    /// What follows an error with which an engine itself ended a stream, ready to be written; empty where nothing does.
    #[must_use]
    pub const fn after_error(self) -> &'static str {
        self.0.after_error
    }

    /// How an engine of this API writes an answer.
    #[must_use]
    pub const fn answer(self) -> &'static Answer {
        &self.0.answer
    }

    /// The body that asks this API a question.
    #[must_use]
    pub fn request_body(self, question: &Question<'_>) -> String {
        self.0.ask.body(question)
    }

    /// Where in a request's body the most tokens of the answer stand, as JSON pointers; the first that is there counts.
    #[must_use]
    pub const fn token_limits(self) -> &'static [&'static str] {
        self.0.ask.limits
    }

    /// An error as this API writes it into an answer of `format`: one event, one line or one document, and with
    /// [`Closing::End`] what the API lets follow it. Empty if nothing can be written that its clients would understand.
    #[must_use]
    pub fn error(self, fault: &Fault<'_>, format: Format, closing: Closing) -> String {
        if format != Format::EventStream {
            return (self.0.document)(fault) + "\n";
        }
        let mut text = (self.0.event)(fault, closing);
        if closing == Closing::End && self.0.format == format {
            text.push_str(self.0.after_error);
        }
        text
    }

    /// An error as one JSON document, for an answer whose status says the same.
    #[must_use]
    pub fn error_document(self, fault: &Fault<'_>) -> String {
        (self.0.document)(fault)
    }

    /// The shape of the errors that heartline writes into an answer of `format`.
    #[must_use]
    pub fn error_shape(self, format: Format) -> ErrorShape {
        ErrorShape::of_api(self, format)
    }
}

impl PartialEq for Api {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for Api {}

impl std::hash::Hash for Api {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.name.hash(state);
    }
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Api({})", self.0.name)
    }
}

impl fmt::Display for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.0.name)
    }
}

/// Reads an API's [`name`](Api::name).
impl FromStr for Api {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::ALL.iter().copied().find(|api| api.name() == text).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|api| api.name()).collect();
            Error::setting(format!("{text} is no API known here; use one of {}", names.join(", ")))
        })
    }
}

#[cfg(test)]
mod tests;
