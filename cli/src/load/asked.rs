//! What a run was asked to do, as the report keeps it: `compare` shows what differs, `merge` refuses parts of different
//! plans.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Protocol, Settings, Shape, Shard, Targets};

/// The settings of a run, as plain data; the number of the shard is no part of them, nor is any header's value.
///
/// Times are in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Asked {
    /// The URL, without a password.
    pub url: String,
    /// The method of every request.
    pub method: String,
    /// The API whose ends and errors were judged.
    pub api: Option<String>,
    /// `http1` or `http2`.
    pub protocol: String,
    /// The most streams on one HTTP/2 connection.
    pub streams_per_connection: Option<usize>,
    /// The name of the shape.
    pub shape: String,
    /// Streams asked for, of all shards; `null` where the rate says how many.
    pub streams: Option<usize>,
    /// Streams begun each second.
    pub rate_per_second: u32,
    /// How the beginnings of an open loop are spread.
    pub arrivals: Option<String>,
    /// Streams at a time, of a closed loop.
    pub concurrency: Option<usize>,
    /// The ramp of a loop.
    pub ramp_ms: u64,
    /// The longest time the judged part may take.
    pub length_ms: u64,
    /// How long the last streams of an open loop may take to end.
    pub drain_ms: u64,
    /// After how long a silence a stream was cut.
    pub cut_after_ms: Option<u64>,
    /// The interval between heartbeats that was expected.
    pub interval_ms: u64,
    /// How long streams could take to open.
    pub open_within_ms: u64,
    /// What everything drawn followed from.
    pub seed: u64,
    /// A fingerprint of the headers' names and of what the streams asked for; 0 where a function says what.
    pub requests: u64,
    /// How many parts the plan has.
    pub shards: u32,
}

impl Asked {
    /// Describes settings.
    pub(super) fn of(settings: &Settings) -> Self {
        let (protocol, streams_per_connection) = match settings.protocol {
            Protocol::Http1 => ("http1", None),
            Protocol::Http2 { streams_per_connection } => ("http2", Some(streams_per_connection)),
        };
        let (arrivals, concurrency) = match settings.shape {
            Shape::Open { arrivals, .. } => (Some(arrivals.name().to_owned()), None),
            Shape::Closed { concurrency, .. } => (None, Some(concurrency)),
            _ => (None, None),
        };
        let Shard { of, .. } = settings.shard;
        Self {
            url: without_password(settings),
            method: settings.method.to_string(),
            api: settings.api.map(|api| api.name().to_owned()),
            protocol: protocol.to_owned(),
            streams_per_connection,
            shape: settings.shape.name().to_owned(),
            streams: arrivals.is_none().then_some(settings.streams),
            rate_per_second: settings.rate_per_second,
            arrivals,
            concurrency,
            ramp_ms: millis(settings.ramp),
            length_ms: millis(settings.shape.length()),
            drain_ms: millis(settings.drain),
            cut_after_ms: settings.cut_after.map(millis),
            interval_ms: millis(settings.interval),
            open_within_ms: millis(settings.open_within),
            seed: settings.seed,
            requests: requests(settings),
            shards: of,
        }
    }
}

fn without_password(settings: &Settings) -> String {
    let url = settings.url.to_string();
    match (settings.url.scheme_str(), settings.url.authority()) {
        (Some(scheme), Some(authority)) if authority.as_str().contains('@') => {
            let host = authority.as_str().rsplit_once('@').map_or("", |(_, host)| host);
            let path = settings.url.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
            format!("{scheme}://{host}{path}")
        }
        _ => url,
    }
}

/// A fingerprint that agrees between processes of one build. Header values may be secret, so only their names count.
fn requests(settings: &Settings) -> u64 {
    let mut hasher = DefaultHasher::new();
    let mut names: Vec<_> = settings.headers.keys().map(http::HeaderName::as_str).collect();
    names.sort_unstable();
    names.hash(&mut hasher);
    let list = match &settings.targets {
        Targets::Same(target) => std::slice::from_ref(target),
        Targets::List(list) => list,
        Targets::Prompt(prompt, api) => {
            (prompt, api.name()).hash(&mut hasher);
            return hasher.finish();
        }
        Targets::Template(template) => {
            template.hash(&mut hasher);
            return hasher.finish();
        }
        Targets::Each(_) => return 0,
    };
    for target in list {
        target.path.as_ref().map(http::uri::PathAndQuery::as_str).hash(&mut hasher);
        target.body.hash(&mut hasher);
    }
    hasher.finish()
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_and_a_token_are_not_written_down() {
        let mut settings = Settings::new("http://me:secret@127.0.0.1:1/events?a=1".parse().unwrap());
        settings.headers.insert("authorization", "Bearer secret".parse().unwrap());
        let written = serde_json::to_string(&Asked::of(&settings)).unwrap();
        assert!(!written.contains("secret"), "{written}");
        assert!(written.contains("http://127.0.0.1:1/events?a=1"), "{written}");
    }
}
