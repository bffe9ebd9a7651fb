//! What an API is asked with: a template for each, filled in by whoever asks.

use super::answer::fill;
use super::fault::quoted;

/// A question to an API, apart from how the API wants it written.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Question<'a> {
    /// The model's name.
    pub model: &'a str,
    /// The prompt.
    pub text: &'a str,
    /// Whether the answer is to be a stream, for an API whose body says so.
    pub is_streamed: bool,
    /// The most tokens of the answer; `None` leaves it to the server.
    pub tokens_max: Option<u32>,
}

impl<'a> Question<'a> {
    /// A question that is answered by a stream.
    #[must_use]
    pub const fn new(model: &'a str, text: &'a str) -> Self {
        Self { model, text, is_streamed: true, tokens_max: None }
    }
}

/// How an API is asked.
pub(crate) struct Ask {
    /// The body with `$model`, `$text`, `$stream` and `$limit`.
    pub(super) body: &'static str,
    /// What takes the place of `$limit`, with `$tokens`; without a limit nothing does.
    pub(super) limit: &'static str,
    /// The limit of a question that has none, where the API refuses such.
    pub(super) tokens_max: Option<u32>,
    /// Where the limit is found in a body.
    pub(super) limits: &'static [&'static str],
}

impl Ask {
    pub(super) fn body(&self, question: &Question<'_>) -> String {
        let limit = question.tokens_max.or(self.tokens_max).map(|tokens| tokens.to_string());
        let limit = limit.map_or_else(String::new, |tokens| fill(self.limit, |_| Some(tokens.clone())));
        fill(self.body, |name| {
            Some(match name {
                "model" => quoted(question.model),
                "text" => quoted(question.text),
                "stream" => question.is_streamed.to_string(),
                "limit" => limit.clone(),
                _ => return None,
            })
        })
    }
}
