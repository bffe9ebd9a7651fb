//! What becomes of an answer that comes after the commit: a pure table, kept in `docs/waiting-for-headers.md` too. Asked by
//! `late` once an answer.

use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::response::Parts;
use http::{HeaderMap, Method, StatusCode};

use super::failure::{Failure, line};
use heartline::{Format, Verdict};

/// What becomes of a late answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is what was committed: its body passes, its head is lost.
    Pass,
    /// Its client is told of this failure, with the words of the body where it has any.
    Report(Failure, Words),
}

/// What the body of an answer may say about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Words {
    /// Nothing that can be read.
    None,
    /// A JSON document.
    Json,
    /// Plain text.
    Plain,
}

/// The table.
pub(super) fn fate(mut head: Parts, format: Format) -> Fate {
    // A JSON document of known length passes like one of unknown length: its promise is not the committed head's.
    head.headers.remove(CONTENT_LENGTH);
    let judged = Verdict::of(&Method::POST, head.status, &head.headers, &[format]);
    let status = head.status;
    let (told, what, words) = if status == StatusCode::OK {
        match judged {
            Verdict::Wrap(_) => return Fate::Pass,
            Verdict::Bypass => {
                (StatusCode::BAD_GATEWAY, "encoded or in part, which the client was not told", Words::None)
            }
            Verdict::Leave => {
                (StatusCode::BAD_GATEWAY, "with another content type than was asked for", words(&head.headers))
            }
        }
    } else if status.is_client_error() || status.is_server_error() {
        (status, "", words(&head.headers))
    } else if status.is_redirection() && status != StatusCode::NOT_MODIFIED {
        (StatusCode::BAD_GATEWAY, "with a redirection, which is not followed", Words::None)
    } else {
        (StatusCode::BAD_GATEWAY, "instead of 200", Words::None)
    };
    let message = format!("the engine answered {} {what}", line(status));
    Fate::Report(Failure::new(told, message.trim_end(), &head.headers), words)
}

/// How the body speaks. Pages for people are no message.
fn words(headers: &HeaderMap) -> Words {
    let Some(content_type) = headers.get(CONTENT_TYPE) else { return Words::None };
    if headers.contains_key(http::header::CONTENT_ENCODING) {
        return Words::None;
    }
    let essence = content_type.as_bytes().split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii();
    let essence = essence.to_ascii_lowercase();
    if essence == b"application/json" || essence.ends_with(b"+json") || essence.ends_with(b"ndjson") {
        Words::Json
    } else if essence == b"text/plain" {
        Words::Plain
    } else {
        Words::None
    }
}
