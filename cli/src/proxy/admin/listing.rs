//! `/streams`: the live exchanges as JSON, the most silent first. Called by `answer`; `snapshot` shows the same rows.

use std::cmp::Reverse;

use serde::Serialize;

use super::super::state::LiveStream;
use super::snapshot::millis;

/// One live exchange.
#[derive(Debug, Serialize)]
pub(super) struct Row<'a> {
    pub(super) id: u64,
    path: &'a str,
    upstream: &'a str,
    age_ms: u64,
    /// Since a byte last went out; `null` where no heartbeats go, since it is not measured there.
    silence_ms: Option<u64>,
    /// Since the engine last sent content; `null` as above.
    content_silence_ms: Option<u64>,
    /// The longest silence of the engine in which heartbeats went out.
    bridged_ms: u64,
    heartbeats: u32,
    /// From the engine.
    bytes: u64,
    format: Option<&'static str>,
    /// `null` where no heartbeats go.
    form: Option<&'a str>,
}

impl<'a> From<&'a LiveStream> for Row<'a> {
    fn from(stream: &'a LiveStream) -> Self {
        let kept = |silence| stream.format.map(|_| millis(silence));
        Self {
            id: stream.id,
            path: &stream.path,
            upstream: &stream.upstream,
            age_ms: millis(stream.age),
            silence_ms: kept(stream.silence),
            content_silence_ms: kept(stream.content_silence),
            bridged_ms: millis(stream.bridged),
            heartbeats: stream.heartbeats,
            bytes: stream.bytes,
            format: stream.format.map(|format| format.content_type()),
            form: stream.format.map(|_| stream.form.as_str()),
        }
    }
}

#[derive(Serialize)]
struct Listing<'a> {
    /// How many there are; `streams` may hold fewer.
    total: usize,
    streams: Vec<Row<'a>>,
}

/// Up to `limit` of `all` as JSON.
pub(super) fn json(all: &[LiveStream], limit: usize) -> Vec<u8> {
    let mut order: Vec<&LiveStream> = all.iter().collect();
    order.sort_unstable_by_key(|stream| (Reverse(stream.content_silence), stream.id));
    let streams = order.into_iter().take(limit).map(Row::from).collect();
    // A struct of numbers and text always has a JSON form.
    serde_json::to_vec(&Listing { total: all.len(), streams }).unwrap_or_default()
}

/// The `limit` of a query; `None` when it has one that is no number.
pub(super) fn limit(query: Option<&str>) -> Option<usize> {
    let pairs = query.unwrap_or_default().split('&');
    match pairs.filter_map(|pair| pair.strip_prefix("limit=")).next_back() {
        Some(number) => number.parse().ok().map(|limit: usize| limit.min(LIMIT_MAX)),
        None => Some(LIMIT),
    }
}

/// Rows when none are asked for: some 300 kB.
const LIMIT: usize = 1_000;
/// Rows at most: some 30 MB.
const LIMIT_MAX: usize = 100_000;

#[cfg(test)]
mod tests {
    use super::super::tests::{live, seconds};
    use super::*;

    #[test]
    fn the_most_silent_come_first_and_the_total_is_told() {
        let mut all: Vec<_> = (0..3).map(live).collect();
        all[2].content_silence = seconds(61);
        all[1].format = None;
        let listing: serde_json::Value = serde_json::from_slice(&json(&all, 2)).unwrap();
        assert_eq!(listing["total"], 3);
        let streams = listing["streams"].as_array().unwrap();
        assert_eq!(streams.len(), 2);
        assert_eq!((&streams[0]["id"], &streams[0]["content_silence_ms"]), (&2.into(), &61_000.into()));
        assert_eq!(streams[0]["form"], "newline");
        let none: serde_json::Value = serde_json::from_slice(&json(&all[1..2], 9)).unwrap();
        assert!(none["streams"][0]["form"].is_null() && none["streams"][0]["silence_ms"].is_null());
    }

    #[test]
    fn a_limit_is_a_number_within_bounds() {
        assert_eq!(limit(None), Some(LIMIT));
        assert_eq!(limit(Some("a=b&limit=7")), Some(7));
        assert_eq!(limit(Some("limit=99999999")), Some(LIMIT_MAX));
        assert_eq!(limit(Some("limit=ten")), None);
    }
}
