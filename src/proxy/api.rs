//! Which known API a request belongs to: an allow-list of methods and paths. Asked by `exchange`.

use http::{HeaderMap, Method, Uri};

use crate::{ErrorShape, Format};

/// What is known about an API.
#[derive(Clone, Debug)]
pub(super) struct Api {
    /// The format of its streams.
    pub(super) format: Format,
    /// Whether it streams when the request does not say.
    pub(super) streams_by_default: Streams,
    /// The error event of its streams.
    pub(super) error_shape: ErrorShape,
    /// What ends its streams well.
    pub(super) terminator: &'static [u8],
}

/// Whether a request asks for a stream when its body does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Streams {
    /// It does.
    Yes,
    /// It does not.
    No,
}

impl Api {
    /// The API of a request; `None` for one that is not on the list.
    pub(super) fn of(method: &Method, uri: &Uri, headers: &HeaderMap) -> Option<Self> {
        let _ = (method, uri, headers);
        None
    }
}
