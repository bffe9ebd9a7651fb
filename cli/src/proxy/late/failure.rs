//! A failure that is reported inside an answer: its status, its words, when to come back. Made by `fate` and `late`.

use std::error::Error as StdError;
use std::io;

use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::{HeaderMap, StatusCode};
use serde_json::Value;

use heartline::Format;
use heartline::api::{Api, Closing, Fault};

/// What a client is told in the place of the status that it can no longer be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// The status that the client would have seen.
    pub(super) status: StatusCode,
    /// One sentence, the engine's own words among it.
    pub(super) message: String,
    /// The engine's own `type` of the error.
    pub(super) kind: Option<String>,
    /// The engine's own `code`.
    pub(super) code: Option<String>,
    /// The engine's own `param`.
    pub(super) param: Option<String>,
    /// The engine's `Retry-After`: seconds or a date.
    pub(super) retry_after: Option<String>,
}

impl Failure {
    /// A failure whose answer had these headers.
    pub(super) fn new(status: StatusCode, message: &str, headers: &HeaderMap) -> Self {
        let retry_after = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()).map(str::trim);
        let retry_after = retry_after.filter(|value| !value.is_empty() && value.len() <= RETRY_AFTER_MAX);
        Self {
            status,
            message: message.to_owned(),
            kind: None,
            code: None,
            param: None,
            retry_after: retry_after.map(str::to_owned),
        }
    }

    /// No answer came: 504 when time ran out, 502 for everything else. The error's own words are for the log, not for clients.
    pub(super) fn of_error(error: &(dyn StdError + 'static)) -> Self {
        let (status, message) = match is_timeout(error) {
            true => (StatusCode::GATEWAY_TIMEOUT, "the engine did not answer in time"),
            false => (StatusCode::BAD_GATEWAY, "the engine could not be reached or went away before it answered"),
        };
        Self::new(status, message, &HeaderMap::new())
    }

    /// Adds what a JSON body says about the error, in any of the shapes that engines use.
    pub(super) fn add_json(&mut self, body: &[u8]) {
        let Ok(document) = serde_json::from_slice::<Value>(body) else { return };
        let document = document.get(0).unwrap_or(&document);
        let error = document.get("error").filter(|error| error.is_object()).unwrap_or(document);
        let text = |name: &str| match error.get(name) {
            Some(Value::String(text)) if !text.is_empty() => Some(cut(text, FIELD_MAX)),
            Some(Value::Number(number)) => Some(number.to_string()),
            _ => None,
        };
        let words = [document.get("error"), error.get("message"), error.get("msg"), document.get("detail")];
        let words = words.into_iter().flatten().find_map(said);
        // Anthropic's topmost `type` is always `error`; the one that tells is inside.
        self.kind = text("type").filter(|kind| kind != "error");
        (self.code, self.param) = (text("code"), text("param"));
        if let Some(words) = words {
            self.add_text(words.as_bytes());
        }
    }

    /// Adds the engine's own words.
    pub(super) fn add_text(&mut self, body: &[u8]) {
        let words = String::from_utf8_lossy(body);
        let words = words.trim();
        if !words.is_empty() {
            self.message = format!("{}: {}", self.message, cut(words, MESSAGE_MAX));
        }
    }

    /// The failure as `api` writes it into an answer of `format`; `number` is its event's, where the API counts them.
    pub(super) fn written(&self, api: Api, format: Format, number: u32, closing: Closing) -> Bytes {
        let sentence = self.sentence();
        let mut fault = Fault::new(self.status, &sentence);
        (fault.kind, fault.code, fault.param) = (self.kind.as_deref(), self.code.as_deref(), self.param.as_deref());
        (fault.retry_after, fault.is_late, fault.number) = (self.retry_after.as_deref(), true, number);
        api.error(&fault, format, closing).into()
    }

    /// The message, with when to come back.
    fn sentence(&self) -> String {
        let Some(when) = &self.retry_after else { return self.message.clone() };
        let unit = if when.parse::<u32>().is_ok() { " s" } else { "" };
        format!("{} (retry after {when}{unit})", self.message)
    }
}

/// A status as people read it: `503 Service Unavailable`.
pub(super) fn line(status: StatusCode) -> String {
    match status.canonical_reason() {
        Some(reason) => format!("{} {reason}", status.as_str()),
        None => status.as_str().to_owned(),
    }
}

/// The words in a value: a text, or the first message in FastAPI's list of what it did not like.
fn said(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Array(items) => items.first()?.get("msg").and_then(said),
        _ => None,
    }
}

fn is_timeout(error: &(dyn StdError + 'static)) -> bool {
    let mut next = Some(error);
    // Bounded: errors that wrap each other more deeply are not made by anyone.
    for _ in 0..CAUSES_MAX {
        let Some(error) = next else { return false };
        let io = error.downcast_ref::<io::Error>();
        if io.is_some_and(|io| io.kind() == io::ErrorKind::TimedOut) || error.is::<tokio::time::error::Elapsed>() {
            return true;
        }
        // The source of an error that is inside an `io::Error` is that one's source: the error itself would be left out.
        let inside = io.and_then(io::Error::get_ref).map(|inside| inside as &(dyn StdError + 'static));
        next = inside.or_else(|| error.source());
    }
    false
}

/// The first `max` bytes of `text`, or a little less where a letter would be cut.
fn cut(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let end = (0..=max).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    format!("{}…", &text[..end])
}

/// Longer messages hold a trace or a prompt.
const MESSAGE_MAX: usize = 2_000;
/// Types, codes and parameters are names.
const FIELD_MAX: usize = 200;
/// A date has 29 letters.
const RETRY_AFTER_MAX: usize = 40;
const CAUSES_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn of(body: &str) -> (String, [Option<String>; 3]) {
        let mut failure = Failure::new(StatusCode::BAD_REQUEST, "400", &HeaderMap::new());
        failure.add_json(body.as_bytes());
        (failure.message, [failure.kind, failure.code, failure.param])
    }

    #[test]
    fn the_words_of_every_engine_are_found() {
        for body in [
            r#"{"error":{"message":"no","type":"t","param":"p","code":"c"}}"#,
            r#"{"object":"error","message":"no","type":"t","param":"p","code":"c"}"#,
            r#"[{"error":{"message":"no","type":"t","param":"p","code":"c"}}]"#,
        ] {
            assert_eq!(of(body), ("400: no".to_owned(), ["t", "c", "p"].map(|field| Some(field.to_owned()))), "{body}");
        }
        let (_, [kind, code, _]) =
            of(r#"{"type":"error","error":{"message":"no","type":"overloaded_error","code":429}}"#);
        assert_eq!((kind.as_deref(), code.as_deref()), (Some("overloaded_error"), Some("429")));
        for body in [
            r#"{"error":"no"}"#,
            r#"{"detail":"no"}"#,
            r#"{"detail":[{"loc":["body","model"],"msg":"no","type":"missing"}]}"#,
            r#"{"error":true,"message":"no"}"#,
            r#"{"type":"error","message":"no"}"#,
        ] {
            assert_eq!(of(body), ("400: no".to_owned(), [None, None, None]), "{body}");
        }
        for body in ["", "{}", "[]", "null", "7", "{\"error\":", "{\"error\":{}}", "{\"detail\":[]}", "\"no\""] {
            assert_eq!(of(body), ("400".to_owned(), [None, None, None]), "{body}");
        }
    }

    #[test]
    fn long_words_are_cut_between_letters() {
        let (message, _) = of(&format!("{{\"error\":\"{}\"}}", "é".repeat(2_001)));
        assert!(message.len() < MESSAGE_MAX + 20 && message.ends_with("é…"));
    }

    #[test]
    fn a_retry_after_is_passed_on_as_seconds_or_a_date_and_nothing_else() {
        let of = |value: &[u8]| {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, http::HeaderValue::from_bytes(value).unwrap())]);
            Failure::new(StatusCode::SERVICE_UNAVAILABLE, "503", &headers).sentence()
        };
        assert_eq!(of(b"30"), "503 (retry after 30 s)");
        let date = "Wed, 21 Oct 2026 07:28:00 GMT";
        assert_eq!(of(date.as_bytes()), format!("503 (retry after {date})"));
        assert_eq!(of(b""), "503");
        assert_eq!(of(b"\xFF"), "503");
        assert_eq!(of(&[b'9'; 41]), "503");
    }

    #[test]
    fn only_a_timeout_is_504_however_deep_it_lies() {
        let timeout = io::Error::new(io::ErrorKind::TimedOut, "x");
        let deep = heartline::StreamError::body(io::Error::other(timeout));
        assert_eq!(Failure::of_error(&deep).status, StatusCode::GATEWAY_TIMEOUT);
        let refused = io::Error::new(io::ErrorKind::ConnectionRefused, "10.0.0.7:23333");
        let failure = Failure::of_error(&refused);
        assert_eq!(failure.status, StatusCode::BAD_GATEWAY);
        assert!(!failure.message.contains("10.0.0.7"), "addresses stay inside");
    }
}
