//! A look at a request's body as it passes: the top-level `stream` and `model` of a JSON document. Used by `exchange`.
//!
//! Nothing is held back and nothing is refused here: a body that cannot be read, or not within the limit, is `unread` and
//! passes on as it came.

mod decode;
mod scan;
mod word;
mod zstd;

use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};

use self::decode::Decoder;

/// What the look has found so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Finding {
    /// The value of the top-level `stream`; `None` when it is absent or `null`. Of several the last counts, as in most
    /// parsers, so that it is certain only when the look is over.
    pub(super) stream: Option<bool>,
    /// The value of the top-level `model`, the last of several. A name longer than [`MODEL_MAX`](scan::MODEL_MAX) bytes is
    /// none. Kept when the body goes on beyond the limit: what was seen by then still helps to choose an engine.
    pub(super) model: Option<String>,
    /// Nothing more will be found: the document is over, or it cannot be read.
    pub(super) is_over: bool,
    /// The body could not be read (over the limit, torn, not JSON, a broken encoding, a `stream` that is neither a boolean
    /// nor `null`): nothing is to be decided by it.
    pub(super) is_unread: bool,
}

/// The look at one body.
#[derive(Debug)]
pub(super) struct Look {
    decoder: Decoder,
}

impl Look {
    /// For a request with these headers (`Content-Type`, `Content-Encoding`), looking at `limit` bytes at most, decoded.
    pub(super) fn new(headers: &HeaderMap, limit: usize) -> Self {
        let mut decoder = Decoder::new(coding(headers), limit);
        if !may_be_json(headers) {
            decoder.scan_mut().give_up();
        }
        Self { decoder }
    }

    /// The next bytes of the body, as they came. Their chunking makes no difference to a body that is whole.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if !self.finding().is_over {
            self.decoder.push(bytes);
        }
    }

    /// The body is over; a document that is not over by now is torn.
    pub(super) fn finish(&mut self) {
        if !self.finding().is_over {
            self.decoder.finish();
        }
        if !self.finding().is_over {
            self.decoder.scan_mut().give_up();
        }
    }

    /// What has been found.
    pub(super) fn finding(&self) -> &Finding {
        self.decoder.scan().finding()
    }
}

/// How a body is encoded, as far as it can be decoded for the look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    Identity,
    Gzip,
    Deflate,
    Zstd,
    /// Another one, or several.
    Unknown,
}

fn coding(headers: &HeaderMap) -> Coding {
    let mut coding = Coding::Identity;
    for value in headers.get_all(CONTENT_ENCODING) {
        for name in value.as_bytes().split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
            if name.is_empty() || name.eq_ignore_ascii_case(b"identity") {
                continue;
            }
            let known = CODINGS.iter().find(|(known, _)| name.eq_ignore_ascii_case(known));
            coding = match (coding, known) {
                (Coding::Identity, Some(&(_, coding))) => coding,
                _ => Coding::Unknown,
            };
        }
    }
    coding
}

/// Whether the type says nothing against JSON. `curl -d` names a form, and Ollama's own examples are sent that way.
fn may_be_json(headers: &HeaderMap) -> bool {
    headers.get_all(CONTENT_TYPE).iter().all(|value| {
        let value = value.as_bytes();
        let essence = value.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii().to_ascii_lowercase();
        TYPES.contains(&essence.as_slice()) || essence.ends_with(b"+json")
    })
}

/// The codings that clients of these APIs send.
const CODINGS: [(&[u8], Coding); 5] = [
    (b"gzip", Coding::Gzip),
    (b"x-gzip", Coding::Gzip),
    (b"deflate", Coding::Deflate),
    (b"zstd", Coding::Zstd),
    (b"x-zstd", Coding::Zstd),
];
const TYPES: [&[u8]; 5] = [b"", b"application/json", b"text/json", b"text/plain", b"application/x-www-form-urlencoded"];

#[cfg(test)]
mod tests;
