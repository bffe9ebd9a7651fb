//! How an engine answers: the events of an API as templates. A scripted engine fills them in, and tests hold them against
//! the rest of what is known of the API.

/// An answer of an engine, with places to be filled in.
///
/// Places are `$model`, `$text` (the token's, or of a document the whole text) and `$whole`, all as JSON strings; `$plain`, the
/// token's text as it is; `$id`, `$created` (seconds) and `$created_at` (RFC 3339) without quotes; the numbers `$index` (the
/// token's), `$number` (the event's), `$prompt_tokens`, `$tokens` and `$total_tokens`; and the [`reasons`](Self::reasons).
#[derive(Debug)]
#[non_exhaustive]
pub struct Answer {
    /// What comes before the first token.
    pub open: &'static [Part],
    /// Each token.
    pub token: &'static [Part],
    /// What follows the last token, the API's terminator included.
    pub close: &'static [Part],
    /// The whole answer as one JSON document.
    pub document: &'static str,
    /// Places whose text depends on how the answer ended: of its own accord, or at the request's limit.
    pub reasons: &'static [(&'static str, [&'static str; 2])],
}

/// One event of an answer; of JSON lines, one line.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Part {
    /// The event's name, which may have places too.
    pub name: Option<&'static str>,
    /// Its data.
    pub data: &'static str,
    /// It is sent only to clients that ask for the usage in the stream.
    pub is_usage: bool,
}

impl Part {
    /// An event without a name.
    pub(super) const fn data(data: &'static str) -> Self {
        Self { name: None, data, is_usage: false }
    }

    /// An event with a name.
    pub(super) const fn named(name: &'static str, data: &'static str) -> Self {
        Self { name: Some(name), data, is_usage: false }
    }

    /// An event that has to be asked for.
    pub(super) const fn usage(data: &'static str) -> Self {
        Self { name: None, data, is_usage: true }
    }
}

/// Fills in the places of a template: each `$name`, of small letters and `_`, for which `value` has a text. What is filled in
/// is not looked at again; a `$` that names nothing stays.
pub fn fill(template: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let mut text = String::with_capacity(template.len() * 2);
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('$') {
        text.push_str(before);
        let end = after.find(|letter: char| !letter.is_ascii_lowercase() && letter != '_').unwrap_or(after.len());
        match value(&after[..end]) {
            Some(value) => text.push_str(&value),
            None => {
                text.push('$');
                text.push_str(&after[..end]);
            }
        }
        rest = &after[end..];
    }
    text.push_str(rest);
    text
}
