//! A look at a request's body as it passes: the top-level `stream` and `model` of a JSON document. Used by `exchange`.

use http::HeaderMap;

/// What the look has found so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Finding {
    /// The value of the top-level `stream`.
    pub(super) stream: Option<bool>,
    /// The value of the top-level `model`.
    pub(super) model: Option<String>,
    /// Nothing more can be found: all is found, the document is over, or it cannot be read.
    pub(super) is_over: bool,
    /// The body could not be read (over the cap, not JSON, broken encoding): nothing is known about it.
    pub(super) is_unread: bool,
}

/// The look at one body.
#[derive(Debug)]
pub(super) struct Look {
    finding: Finding,
}

impl Look {
    /// For a request with these headers (`Content-Type`, `Content-Encoding`), looking at `limit` bytes at most, decoded.
    pub(super) fn new(headers: &HeaderMap, limit: usize) -> Self {
        let _ = (headers, limit);
        Self { finding: Finding::default() }
    }

    /// The next bytes of the body, as they came.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let _ = bytes;
    }

    /// What has been found.
    pub(super) fn finding(&self) -> &Finding {
        &self.finding
    }
}
