//! An error to be told, before an API has given it its shape. Filled in by whoever has found the error.

use http::StatusCode;

use crate::ending::Ended;

/// An error, to be written in an API's own shape by [`Api::error`](super::Api::error).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Fault<'a> {
    /// The status that stands for it; it chooses the API's own word for the kind of error where `kind` names none.
    pub status: StatusCode,
    /// What people are told.
    pub message: &'a str,
    /// The kind of error, in the API's own words.
    pub kind: Option<&'a str>,
    /// A word for programs; the status where there is none.
    pub code: Option<&'a str>,
    /// The parameter that is at fault.
    pub param: Option<&'a str>,
    /// When to come back: seconds, or a date.
    pub retry_after: Option<&'a str>,
    /// Another status was sent already, so that the right one, and when to come back, are written into the error.
    pub is_late: bool,
    /// The number of the event that tells of it, where the API counts them.
    pub number: u32,
}

impl<'a> Fault<'a> {
    /// An error of which no more is known than a status and a message.
    #[must_use]
    pub const fn new(status: StatusCode, message: &'a str) -> Self {
        Self { status, message, kind: None, code: None, param: None, retry_after: None, is_late: false, number: 0 }
    }

    /// The error of a stream that heartline ended.
    pub(super) fn of_ended(ended: Ended, message: &'a str, number: u32) -> Self {
        let status = match ended {
            Ended::MaxSilence => StatusCode::GATEWAY_TIMEOUT,
            Ended::MaxLifetime | Ended::Drained => StatusCode::SERVICE_UNAVAILABLE,
            Ended::Failed => StatusCode::BAD_GATEWAY,
        };
        Self { code: Some(ended.code()), number, ..Self::new(status, message) }
    }

    /// The seconds after which to come back, where that is not a date.
    pub(super) fn retry_after_seconds(&self) -> Option<u32> {
        self.retry_after?.parse().ok()
    }

    /// What is written into an error whose status was lost: members of a JSON object, each after a comma.
    pub(super) fn late_members(&self) -> String {
        match (self.is_late, self.retry_after) {
            (false, _) => String::new(),
            (true, None) => format!(r#","status":{}"#, self.status.as_u16()),
            (true, Some(when)) => format!(r#","status":{},"retry_after":{}"#, self.status.as_u16(), quoted(when)),
        }
    }
}

/// What follows an error in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// A clean end: whoever reports the error is done with the stream, so that the API's own last event follows.
    End,
    /// An abort, or an end that must not look complete: nothing follows.
    Abort,
}

/// A document as the only line of an event without a name.
pub(super) fn data_event(document: &str) -> String {
    format!("data: {document}\n\n")
}

/// `text` as a JSON string, or `null`.
pub(super) fn quoted_or_null(text: Option<&str>) -> String {
    text.map_or_else(|| "null".to_owned(), quoted)
}

/// `text` as a JSON string (RFC 8259, section 7).
pub(super) fn quoted(text: &str) -> String {
    use std::fmt::Write as _;
    let mut json = String::with_capacity(text.len() + 2);
    json.push('"');
    for letter in text.chars() {
        match letter {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            '\n' => json.push_str("\\n"),
            '\r' => json.push_str("\\r"),
            '\t' => json.push_str("\\t"),
            // Clients that split text into lines take these for line ends: escaped, as in Ollama's own encoder.
            control @ ('\0'..' ' | '\u{85}' | '\u{2028}' | '\u{2029}') => {
                let _ = write!(json, "\\u{:04x}", u32::from(control)); // writing into a string cannot fail
            }
            letter => json.push(letter),
        }
    }
    json.push('"');
    json
}
