//! How many streams well-known hops would have cut. Made by `report`, added by `merge`.

use std::collections::BTreeMap;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use heartline::hops::{self, LIMITS, Limit};

/// How many streams were silent for at least as long as a hop allows, by the limits of [`heartline::hops`](heartline::hops).
///
/// Serialised as an object with a member for each limit, such as `"60s": 3`. A report of an older version may lack limits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WouldBeCut {
    by_seconds: BTreeMap<u64, u64>,
}

impl WouldBeCut {
    /// Takes the streams that reached the entry of [`LIMITS`] at the same place.
    pub(in super::super) fn of(streams: [u64; LIMITS.len()]) -> Self {
        Self { by_seconds: LIMITS.map(|limit| limit.as_secs()).into_iter().zip(streams).collect() }
    }

    /// Counts again, limit by limit.
    pub(in super::super) fn count_again(&mut self, streams_at_least: impl Fn(u64) -> u64) {
        self.by_seconds.iter_mut().for_each(|(seconds, streams)| *streams = streams_at_least(*seconds));
    }

    /// Adds those of another part; a limit that one of both did not count is not known of both.
    pub(in super::super) fn add(&mut self, other: &Self) {
        self.by_seconds.retain(|seconds, _| other.by_seconds.contains_key(seconds));
        for (seconds, streams) in &mut self.by_seconds {
            *streams += other.by_seconds[seconds];
        }
    }

    /// Returns how many streams were silent for so many seconds or longer; `None` when that is no limit of the report.
    pub fn after(&self, seconds: u64) -> Option<u64> {
        self.by_seconds.get(&seconds).copied()
    }

    /// Returns each limit that the report has, the strictest first, with the number of streams that reached it.
    pub fn by_limit(&self) -> impl Iterator<Item = (Limit, u64)> + '_ {
        hops::limits().filter_map(|limit| Some((limit, self.after(limit.seconds())?)))
    }
}

impl Serialize for WouldBeCut {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.by_seconds.iter().map(|(seconds, streams)| (format!("{seconds}s"), streams)))
    }
}

impl<'de> Deserialize<'de> for WouldBeCut {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let members = BTreeMap::<String, u64>::deserialize(deserializer)?;
        let seconds = |name: &str| name.strip_suffix('s')?.parse().ok();
        let by_seconds = members.iter().map(|(name, streams)| match seconds(name) {
            Some(seconds) => Ok((seconds, *streams)),
            None => Err(D::Error::custom(format_args!("{name} is no limit in seconds, such as 60s"))),
        });
        Ok(Self { by_seconds: by_seconds.collect::<Result<_, _>>()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_of_an_older_version_keeps_the_limits_that_it_has() {
        let old: WouldBeCut = serde_json::from_str(r#"{"10s":4,"60s":1}"#).unwrap();
        let mut sum = WouldBeCut::of(std::array::from_fn(|_| 2));
        assert_eq!((sum.after(350), sum.after(60), sum.after(61)), (Some(2), Some(2), None));
        sum.add(&old);
        assert_eq!(serde_json::to_string(&sum).unwrap(), r#"{"10s":6,"60s":3}"#);
        assert_eq!(
            sum.by_limit().map(|(limit, streams)| (limit.seconds(), streams)).collect::<Vec<_>>(),
            [(10, 6), (60, 3)]
        );
        assert!(serde_json::from_str::<WouldBeCut>(r#"{"soon":1}"#).is_err());
    }
}
