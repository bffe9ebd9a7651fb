//! Which API a request asks, and whether for a stream: an allow-list of methods and paths. Asked once a request.

use http::header::{CONTENT_RANGE, CONTENT_TYPE, RANGE};
use http::{HeaderMap, Method, Uri};

use super::{Api, pattern};

/// A place where an API is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    api: Api,
    streams: Streams,
}

/// Whether a request asks for a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Streams {
    /// It does when its body does not say.
    Yes,
    /// It does not when its body does not say.
    No,
    /// It does, whatever its body says: the path tells.
    Always,
    /// It does not, whatever its body says: the path tells.
    Never,
}

impl Endpoint {
    /// An endpoint of one's own.
    #[must_use]
    pub const fn new(api: Api, streams: Streams) -> Self {
        Self { api, streams }
    }

    /// The endpoint that a request asks. `None` if it is on no API's list, and for every multipart or range request: what is
    /// unknown stays unknown.
    #[must_use]
    pub fn of_request(method: &Method, uri: &Uri, headers: &HeaderMap) -> Option<Self> {
        Self::may_be_of(method, headers).then(|| Self::of_path(uri.path(), uri.query()))?
    }

    /// Whether the rest of a request's head allows that it asks an API: it is a `POST`, and neither multipart nor of a range.
    #[must_use]
    pub fn may_be_of(method: &Method, headers: &HeaderMap) -> bool {
        let is_part = headers.contains_key(RANGE) || headers.contains_key(CONTENT_RANGE);
        *method == Method::POST && !is_part && !is_multipart(headers)
    }

    /// The endpoint at a path, whatever the method.
    #[must_use]
    pub fn of_path(path: &str, query: Option<&str>) -> Option<Self> {
        // No API of text: bodies there are files, and answers may be.
        if path.split('/').any(|segment| FILES.contains(&segment)) {
            return None;
        }
        let places = Api::ALL.iter().flat_map(|api| api.0.places.iter().map(move |place| (*api, place)));
        let mut found = places.filter(|(_, place)| place.is_at(path, query));
        found.next().map(|(api, place)| Self::new(api, place.streams))
    }

    /// The API.
    #[must_use]
    pub const fn api(self) -> Api {
        self.api
    }

    /// Whether a request streams whose body says `stream`, or does not say.
    #[must_use]
    pub const fn streams(self, body_says: Option<bool>) -> bool {
        match (self.streams, body_says) {
            (Streams::Always, _) | (Streams::Yes, None) | (Streams::Yes | Streams::No, Some(true)) => true,
            (Streams::Never, _) | (Streams::No, None) | (Streams::Yes | Streams::No, Some(false)) => false,
        }
    }
}

/// One line of an API's list of paths.
pub(crate) struct Place {
    /// As [`Pattern`](super::Pattern) has it.
    path: &'static str,
    /// A field that the query must have.
    field: Option<&'static str>,
    streams: Streams,
}

impl Place {
    pub(super) const fn new(path: &'static str, streams: Streams) -> Self {
        Self { path, field: None, streams }
    }

    pub(super) const fn with_field(path: &'static str, field: &'static str, streams: Streams) -> Self {
        Self { path, field: Some(field), streams }
    }

    #[cfg(test)]
    pub(super) const fn path(&self) -> &'static str {
        self.path
    }

    fn is_at(&self, path: &str, query: Option<&str>) -> bool {
        let has = |field| query.is_some_and(|query| query.split('&').any(|given| given == field));
        pattern::matches(self.path, path) && self.field.is_none_or(has)
    }
}

fn is_multipart(headers: &HeaderMap) -> bool {
    headers.get_all(CONTENT_TYPE).iter().any(|value| {
        let start = value.as_bytes().trim_ascii_start();
        start.len() >= MULTIPART.len() && start[..MULTIPART.len()].eq_ignore_ascii_case(MULTIPART)
    })
}

const FILES: [&str; 7] = ["audio", "image", "images", "video", "videos", "files", "uploads"];
const MULTIPART: &[u8] = b"multipart/";
