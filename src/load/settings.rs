//! What a run is asked to do. Filled in by the `load` command, by `demo` and by tests; checked before anything starts.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderMap, Method, Uri};

use super::{Digest, LoadError};

/// The settings of one run.
///
/// Start from [`Settings::new`] and change the fields; [`run`](super::run) refuses what cannot work.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// Where the streams come from; `http` only, and the port is 80 when it names none.
    pub url: Uri,
    /// The method of every request.
    pub method: Method,
    /// Headers added to every request; `host`, `accept` and `user-agent` are set where these leave them out.
    pub headers: HeaderMap,
    /// What each stream asks for.
    pub targets: Targets,
    /// How many streams to open.
    pub streams: usize,
    /// How many connections to begin each second.
    pub rate_per_second: u32,
    /// How long the streams live.
    pub shape: Shape,
    /// The longest silence expected between two heartbeats: how late this client may be is judged against it.
    pub interval: Duration,
    /// How long to wait for response headers, after the last connection was begun, before the hold phase starts.
    pub open_within: Duration,
    /// How many threads read the streams; `None` takes one a core, at most [`WORKERS_MAX`], and one for a small run.
    pub workers: Option<usize>,
}

impl Settings {
    /// Creates settings for one hundred `GET` requests to `url`, held for ten seconds.
    pub fn new(url: Uri) -> Self {
        Self {
            url,
            method: Method::GET,
            headers: HeaderMap::new(),
            targets: Targets::same(Bytes::new()),
            streams: 100,
            rate_per_second: 2_000,
            shape: Shape::Hold(Duration::from_secs(10)),
            interval: Duration::from_secs(30),
            open_within: Duration::from_secs(10),
            workers: None,
        }
    }

    /// Refuses settings that no run can follow.
    pub(super) fn check(&self) -> Result<(), LoadError> {
        let refuse = |what: String| Err(LoadError::config(what));
        match self.url.scheme_str() {
            Some("http") => {}
            Some(other) => {
                return refuse(format!("{other} is not spoken here yet; use an http:// URL"));
            }
            None => return refuse("the URL has no scheme; write http://host:port/path".to_owned()),
        }
        if self.url.host().is_none_or(str::is_empty) {
            return refuse("the URL has no host; write http://host:port/path".to_owned());
        }
        if self.streams == 0 || self.streams > STREAMS_MAX {
            return refuse(format!("{} streams are asked for; ask for 1 to {STREAMS_MAX}", self.streams));
        }
        if self.rate_per_second == 0 {
            return refuse("a rate of 0 opens nothing; write for example 2k/s".to_owned());
        }
        if self.shape.length().is_zero() || self.shape.length() > LENGTH_MAX {
            return refuse("the streams must be held for longer than 0s and at most 7 days".to_owned());
        }
        if self.interval.is_zero() {
            return refuse("an interval of 0s is no interval; write for example 30s".to_owned());
        }
        if self.open_within > LENGTH_MAX {
            return refuse("waiting for more than 7 days to open streams is refused".to_owned());
        }
        if self.workers == Some(0) {
            return refuse("0 workers read nothing; ask for 1 or more".to_owned());
        }
        if let Targets::List(list) = &self.targets
            && list.is_empty()
        {
            return refuse("the list of targets is empty; give at least one".to_owned());
        }
        Ok(())
    }
}

/// How long the streams of a run live, and which part of the run is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shape {
    /// All streams are held open for so long after the ramp; only this phase is judged. A stream that ends earlier is
    /// not opened again, so that the shortfall shows.
    Hold(Duration),
    /// Every stream runs to its own end; all of its life is judged, and so is the ramp. The run ends with the last
    /// stream, or after this long.
    Complete(Duration),
}

impl Shape {
    /// Returns the longest time the judged part of the run may take.
    pub fn length(self) -> Duration {
        match self {
            Self::Hold(length) | Self::Complete(length) => length,
        }
    }
}

/// What one stream asks for.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Target {
    /// The path and query, instead of the one in the URL.
    pub path: Option<PathAndQuery>,
    /// The request's body; empty for none.
    pub body: Bytes,
    /// What a stream that completes must have decoded to.
    pub expected: Option<Digest>,
}

impl Target {
    /// Creates a target with a body for the URL's own path.
    pub fn new(body: Bytes) -> Self {
        Self { body, ..Self::default() }
    }
}

/// Which stream asks for what.
#[derive(Clone)]
#[non_exhaustive]
pub enum Targets {
    /// All ask for the same.
    Same(Target),
    /// Stream `i` takes entry `i` modulo the list's length.
    List(Arc<[Target]>),
    /// Stream `i` takes what the function returns for `i`. It is called once a stream, on a worker, and must not block.
    Each(Arc<dyn Fn(usize) -> Target + Send + Sync>),
}

impl Targets {
    /// Lets every stream send the same body to the URL's own path.
    pub fn same(body: Bytes) -> Self {
        Self::Same(Target::new(body))
    }

    /// Returns the target of one stream.
    pub fn of(&self, index: usize) -> Target {
        match self {
            Self::Same(target) => target.clone(),
            Self::List(list) => list[index % list.len()].clone(),
            Self::Each(target_of) => target_of(index),
        }
    }
}

impl fmt::Debug for Targets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Same(target) => f.debug_tuple("Same").field(target).finish(),
            Self::List(list) => f.debug_tuple("List").field(&list.len()).finish(),
            Self::Each(_) => f.debug_tuple("Each").finish_non_exhaustive(),
        }
    }
}

/// The most threads taken without being asked: a server on the same machine needs cores too.
pub const WORKERS_MAX: usize = 4;

/// The most streams of one process; above it the files and ports of one machine run out anyway.
const STREAMS_MAX: usize = 2_000_000;

/// The longest phase, so that no sum of times overflows.
const LENGTH_MAX: Duration = Duration::from_secs(7 * 24 * 3600);
