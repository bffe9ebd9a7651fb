//! What a run is asked to do. Filled in by the `load` command, by `demo` and by tests; checked before anything starts.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderMap, Method, Uri};

use super::{Live, LoadError, Shape, Targets};
use heartline::api::Api;

/// The settings of one run.
///
/// Start from [`Settings::new`] and change the fields; [`run`](super::run) refuses what cannot work.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// Where the streams come from; `http` or `https`, and the port is 80 or 443 when it names none.
    pub url: Uri,
    /// The method of every request.
    pub method: Method,
    /// Headers added to every request; `host`, `accept` and `user-agent` are set where these leave them out.
    pub headers: HeaderMap,
    /// What each stream asks for.
    pub targets: Targets,
    /// Whose answers these are: how a stream of theirs ends, and how it tells of an error. `None` judges neither.
    pub api: Option<Api>,
    /// How requests travel.
    pub protocol: Protocol,
    /// Which servers are believed over `https`.
    pub trust: Trust,
    /// How many streams to open; for [`Shape::Open`] the rate says so, and this is not looked at.
    pub streams: usize,
    /// How many streams to begin each second.
    pub rate_per_second: u32,
    /// How the streams come and go.
    pub shape: Shape,
    /// How long a loop takes to come up to its full rate or number, in a straight line; held streams ramp by their rate.
    pub ramp: Duration,
    /// How long the last streams of an open loop may take to end, so that their latencies are known.
    pub drain: Duration,
    /// Cuts a stream that has been silent for so long, as a hop on the way would.
    pub cut_after: Option<Duration>,
    /// The longest silence expected between two heartbeats: how late this client may be is judged against it.
    pub interval: Duration,
    /// How long to wait for response headers, after the last connection was begun, before the hold phase starts.
    pub open_within: Duration,
    /// How many threads read the streams; `None` takes one a core, at most [`WORKERS_MAX`], and one for a small run.
    pub workers: Option<usize>,
    /// The local addresses connections come from, in turn; empty spreads them over 127/8 where the server is there, and
    /// leaves the choice to the kernel elsewhere.
    pub source_ips: Vec<IpAddr>,
    /// What everything drawn follows from; the same seed is the same plan.
    pub seed: u64,
    /// Which part of the plan is this process's.
    pub shard: Shard,
    /// Shows the open streams to whoever looks on; `None` saves the memory.
    pub live: Option<Arc<Live>>,
    /// When the run's clock starts, so that shards on several machines start together; `None` is now.
    pub start_at: Option<SystemTime>,
}

impl Settings {
    /// Creates settings for one hundred `GET` requests to `url`, held for ten seconds.
    pub fn new(url: Uri) -> Self {
        Self {
            url,
            method: Method::GET,
            headers: HeaderMap::new(),
            targets: Targets::same(Bytes::new()),
            api: None,
            protocol: Protocol::default(),
            trust: Trust::default(),
            streams: 100,
            rate_per_second: 2_000,
            shape: Shape::Hold(Duration::from_secs(10)),
            ramp: Duration::ZERO,
            drain: Duration::from_secs(30),
            cut_after: None,
            interval: Duration::from_secs(30),
            open_within: Duration::from_secs(10),
            workers: None,
            source_ips: Vec::new(),
            seed: 0,
            shard: Shard::default(),
            live: None,
            start_at: None,
        }
    }

    /// Refuses settings that no run can follow.
    pub(super) fn check(&self) -> Result<(), LoadError> {
        let refuse = |what: String| Err(LoadError::config(what));
        match self.url.scheme_str() {
            Some("http" | "https") => {}
            Some(other) => {
                return refuse(format!("{other} is not spoken here; use an http:// or https:// URL"));
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
        if self.open_within > LENGTH_MAX || self.ramp > LENGTH_MAX || self.drain > LENGTH_MAX {
            return refuse("waiting for more than 7 days to open, ramp or drain streams is refused".to_owned());
        }
        if self.workers == Some(0) {
            return refuse("0 workers read nothing; ask for 1 or more".to_owned());
        }
        if self.cut_after.is_some_and(|cut_after| cut_after.is_zero()) {
            return refuse("cutting after 0s cuts everything; write for example 100s".to_owned());
        }
        if let Targets::List(list) = &self.targets
            && list.is_empty()
        {
            return refuse("the list of targets is empty; give at least one".to_owned());
        }
        self.check_loops()
    }

    fn check_loops(&self) -> Result<(), LoadError> {
        let refuse = |what: String| Err(LoadError::config(what));
        let Shard { index, of } = self.shard;
        if index >= of {
            return refuse(format!("there is no shard {index} of {of}; they are counted from 0"));
        }
        if let Protocol::Http2 { streams_per_connection: 0 } = self.protocol {
            return refuse("0 streams a connection open nothing; ask for 1 or more".to_owned());
        }
        match self.shape {
            Shape::Closed { concurrency: 0, .. } => {
                refuse("a closed loop of 0 at a time opens nothing; ask for 1 or more".to_owned())
            }
            Shape::Closed { concurrency, .. } if concurrency < of as usize => {
                refuse(format!("{concurrency} at a time cannot be shared by {of} shards; use fewer shards"))
            }
            Shape::Open { length, .. } => {
                let arrivals = (self.ramp / 2 + length).as_secs_f64() * f64::from(self.rate_per_second);
                if arrivals > STREAMS_MAX as f64 {
                    return refuse(format!("{arrivals:.0} streams would begin; use a lower rate or a shorter time"));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// How requests travel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Protocol {
    /// HTTP/1.1: a connection for each stream.
    #[default]
    Http1,
    /// HTTP/2: many streams on a connection; over `http` without asking first, over `https` by ALPN.
    Http2 {
        /// The most streams on one connection; fewer where the server allows fewer.
        streams_per_connection: usize,
    },
}

/// Which servers are believed over `https`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trust {
    /// Those that an authority known to this machine vouches for.
    #[default]
    Native,
    /// Those that an authority in this PEM file vouches for, and no other.
    Authority(PathBuf),
}

/// One part of a plan that several processes share: of all streams, every `of`-th one from number `index` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Shard {
    /// Which part, from 0.
    pub index: u32,
    /// How many parts there are.
    pub of: u32,
}

impl Default for Shard {
    /// The whole plan.
    fn default() -> Self {
        Self { index: 0, of: 1 }
    }
}

/// The most threads taken without being asked: a server on the same machine needs cores too.
pub const WORKERS_MAX: usize = 4;

/// The most streams of one process; above it the files and ports of one machine run out anyway.
pub(super) const STREAMS_MAX: usize = 2_000_000;

/// The longest phase, so that no sum of times overflows.
const LENGTH_MAX: Duration = Duration::from_secs(7 * 24 * 3600);
