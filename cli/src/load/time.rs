//! The times that a run measures: one list, from which the tally, the result file, rules, summary, comparison, page and log
//! follow.

use std::ops::{Index, IndexMut};

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::spread::{Distribution, Spread};

/// A time that a run measures.
///
/// To measure one more: its variant here, its row in the list of this file, the line that adds what is seen (most are in
/// `record`), and its two members in `docs/load-report.schema.json`, which a test asks for. The order here is that of the
/// result file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Time {
    /// From the intended beginning until the connection stood.
    Connect,
    /// Until the headers of a 2xx response had come.
    Headers,
    /// Until the first byte of the body, heartbeats included.
    FirstByte,
    /// Until the first event.
    Ttft,
    /// Until the first event, from when the request was really sent: what a client that never falls behind, or does not
    /// look, would have seen. Larger than [`Time::Ttft`] by nothing, smaller by what the client was late.
    TtftFromSend,
    /// Until the first heartbeat.
    FirstHeartbeat,
    /// How late this client began its streams.
    BeginLate,
    /// Between two events of one stream.
    Gap,
    /// The largest silence of each stream, across the streams that opened or waited for headers until the end.
    ///
    /// A silence counts from the last byte before it, also where that was before the hold phase; one that was still going
    /// on at the end counts up to the end.
    Silence,
    /// Between two heartbeats of one stream with no event between them; in the result file whole, without percentiles.
    BetweenHeartbeats,
    /// From the last byte of each open stream to the end of the hold phase; in the result file whole, without percentiles.
    SinceLastByte,
    /// How late timers fired on the threads that read; among the figures of the client in the result file.
    Lag,
}

/// What is known of a measured time besides its samples.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figure {
    pub(super) time: Time,
    /// Its member in the result file's histograms; with `_ms` that of its percentiles, with dashes what a rule calls it.
    key: &'static str,
    /// What the summary and the page call it; in the summary's column, so 17 characters at most.
    pub(super) label: &'static str,
    pub(super) told: Told,
}

/// Where a time is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// Everywhere, also to say that there is no sample.
    Always,
    /// Everywhere, where there are samples.
    WithSamples,
    /// On the page and to rules: it is about the client, so it gets no better or worse with the server.
    OfTheClient,
    /// Other figures are worked out from it.
    Nowhere,
}

/// The measured times in the order in which people read them.
pub(super) const FIGURES: [Figure; TIMES] = [
    Figure { time: Time::Silence, key: "silence", label: "Silence", told: Told::Always },
    Figure { time: Time::Connect, key: "connect", label: "Connect", told: Told::Always },
    Figure { time: Time::Headers, key: "headers", label: "Headers", told: Told::Always },
    Figure { time: Time::FirstByte, key: "first_byte", label: "First byte", told: Told::Always },
    Figure { time: Time::FirstHeartbeat, key: "first_heartbeat", label: "First heartbeat", told: Told::WithSamples },
    Figure { time: Time::Ttft, key: "ttft", label: "First event", told: Told::Always },
    Figure { time: Time::TtftFromSend, key: "ttft_from_send", label: "  from its send", told: Told::WithSamples },
    Figure { time: Time::Gap, key: "gap", label: "Between events", told: Told::Always },
    Figure { time: Time::BeginLate, key: "begin_late", label: "Begun late", told: Told::OfTheClient },
    Figure { time: Time::Lag, key: "lag", label: "Timers late", told: Told::OfTheClient },
    Figure { time: Time::BetweenHeartbeats, key: "between_heartbeats", label: "", told: Told::Nowhere },
    Figure { time: Time::SinceLastByte, key: "since_last_byte", label: "", told: Told::Nowhere },
];

const TIMES: usize = Time::Lag as usize + 1;

impl Time {
    /// Returns the times that have a name, in the order in which people read them.
    pub(super) fn named() -> impl Iterator<Item = (String, Self)> {
        let told = FIGURES.iter().filter(|figure| figure.told != Told::Nowhere);
        told.map(|figure| (figure.key.replace('_', "-"), figure.time))
    }

    /// Returns those of them that say how the server fared.
    pub(super) fn of_the_server() -> impl Iterator<Item = (String, Self)> {
        let is_told = |time| FIGURES.iter().any(|figure| figure.time == time && figure.told != Told::OfTheClient);
        Self::named().filter(move |(_, time)| is_told(*time))
    }
}

/// Something for each measured time.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PerTime<T>([T; TIMES]);

impl<T: Default> Default for PerTime<T> {
    fn default() -> Self {
        Self(std::array::from_fn(|_| T::default()))
    }
}

impl<T> Index<Time> for PerTime<T> {
    type Output = T;

    fn index(&self, time: Time) -> &T {
        &self.0[time as usize]
    }
}

impl<T> IndexMut<Time> for PerTime<T> {
    fn index_mut(&mut self, time: Time) -> &mut T {
        &mut self.0[time as usize]
    }
}

impl PerTime<Spread> {
    /// Adds the samples of another one, count by count.
    pub(super) fn merge(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(into, more)| into.merge(more));
    }

    /// Reads the percentiles.
    pub(super) fn distributions(&self) -> PerTime<Option<Distribution>> {
        PerTime(self.0.each_ref().map(Spread::distribution))
    }
}

/// The member of the result file that holds the samples.
fn samples(figure: &Figure) -> Option<String> {
    Some(figure.key.to_owned())
}

/// The member of the result file that holds the percentiles. Those of the timers stand with the client's figures.
fn percentiles(figure: &Figure) -> Option<String> {
    (figure.told != Told::Nowhere && figure.time != Time::Lag).then(|| format!("{}_ms", figure.key))
}

type Member = fn(&Figure) -> Option<String>;

fn write<S: Serializer, T: Serialize>(of: &PerTime<T>, member: Member, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    for (place, value) in of.0.iter().enumerate() {
        let figure = FIGURES.iter().find(|figure| figure.time as usize == place);
        if let Some(member) = figure.and_then(member) {
            map.serialize_entry(&member, value)?;
        }
    }
    map.end()
}

/// Reads what members there are: a result file of an older version may lack times that were not measured then.
struct Read<T>(Member, std::marker::PhantomData<T>);

impl<'de, T: Default + Deserialize<'de>> Visitor<'de> for Read<T> {
    type Value = PerTime<T>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object with a member for each time")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut read = PerTime::default();
        while let Some(member) = map.next_key::<String>()? {
            match FIGURES.iter().find(|figure| (self.0)(figure).is_some_and(|known| known == member)) {
                Some(figure) => read[figure.time] = map.next_value()?,
                None => map.next_value::<IgnoredAny>().map(drop)?,
            }
        }
        Ok(read)
    }
}

impl Serialize for PerTime<Spread> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        write(self, samples, serializer)
    }
}

impl<'de> Deserialize<'de> for PerTime<Spread> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Read(samples, std::marker::PhantomData))
    }
}

impl Serialize for PerTime<Option<Distribution>> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        write(self, percentiles, serializer)
    }
}

impl<'de> Deserialize<'de> for PerTime<Option<Distribution>> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Read(percentiles, std::marker::PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_has_one_row_and_a_label_that_fits() {
        for place in 0..TIMES {
            assert_eq!(FIGURES.iter().filter(|figure| figure.time as usize == place).count(), 1, "number {place}");
        }
        assert!(FIGURES.iter().all(|figure| figure.label.len() < 18));
        assert!(FIGURES.iter().all(|figure| figure.label.is_empty() == (figure.told == Told::Nowhere)));
    }

    #[test]
    fn a_result_file_that_lacks_a_time_has_no_samples_of_it() {
        let mut times = PerTime::<Spread>::default();
        times[Time::Gap].add(5_000_000);
        let mut written = serde_json::to_value(&times).unwrap();
        written.as_object_mut().unwrap().remove("ttft_from_send");
        written["of_a_later_version"] = 7.into();
        assert_eq!(serde_json::from_value::<PerTime<Spread>>(written).unwrap(), times);
    }
}
