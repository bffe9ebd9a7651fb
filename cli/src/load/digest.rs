//! A fingerprint of what a stream decoded to: `demo` compares it with the fingerprint of the engine's own events.

use std::collections::HashMap;

use heartline::Format;
use heartline::decode::DecodedEvent;

use super::reader::Reader;

/// An order-sensitive fingerprint of decoded events, and how many there were.
///
/// Heartbeats and the way the bytes were cut do not change it. Two different sequences agree by chance once in 2⁶⁴;
/// it is no defence against somebody who wants them to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct Digest {
    /// How many events were decoded.
    pub events: u64,
    /// The fingerprint of their types, data and ids.
    pub hash: u64,
}

impl Digest {
    pub(super) fn add(&mut self, event: &DecodedEvent<'_>) {
        self.events += 1;
        for field in [event.name, event.data, event.id] {
            self.hash = mix(self.hash, field.len() as u64);
            let mut words = field.chunks_exact(8);
            for word in &mut words {
                // A chunk of exactly 8 bytes always converts.
                self.hash = mix(self.hash, u64::from_le_bytes(word.try_into().unwrap_or_default()));
            }
            let mut last = [0; 8];
            last[..words.remainder().len()].copy_from_slice(words.remainder());
            self.hash = mix(self.hash, u64::from_le_bytes(last));
        }
    }

    /// Adds bytes that come in arbitrary pieces; the pieces do not show.
    pub(super) fn add_bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.hash = (self.hash ^ u64::from(*byte)).wrapping_mul(ODD).rotate_left(23);
        }
    }
}

/// Returns the digest that a stream with this body has, wherever heartbeats were put into it.
///
/// What an unfinished last event holds is no part of it. An event beyond the decoder's bound ends the digest there.
pub fn digest_of(format: Format, body: &[u8]) -> Digest {
    let mut reader = Reader::new(Some(format), None);
    if reader.push(body).is_ok() {
        reader.finish();
    }
    reader.digest()
}

/// How often each digest came among the streams that completed.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Digests {
    /// Streams by digest; at most [`DIGESTS_MAX`] different ones.
    pub counts: HashMap<Digest, u64>,
    /// Streams whose digest found no room in `counts`.
    pub unlisted: u64,
    /// Streams that decoded to what their target expected.
    pub as_expected: u64,
    /// Streams that decoded to something else than their target expected.
    pub unexpected: u64,
}

impl Digests {
    pub(super) fn add(&mut self, digest: Digest, expected: Option<Digest>) {
        self.count(digest, 1);
        match expected {
            Some(expected) if expected == digest => self.as_expected += 1,
            Some(_) => self.unexpected += 1,
            None => {}
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (digest, streams) in &other.counts {
            self.count(*digest, *streams);
        }
        self.unlisted += other.unlisted;
        self.as_expected += other.as_expected;
        self.unexpected += other.unexpected;
    }

    fn count(&mut self, digest: Digest, streams: u64) {
        if let Some(known) = self.counts.get_mut(&digest) {
            *known += streams;
        } else if self.counts.len() < DIGESTS_MAX {
            self.counts.insert(digest, streams);
        } else {
            self.unlisted += streams;
        }
    }
}

fn mix(hash: u64, word: u64) -> u64 {
    let stirred = (hash ^ word).wrapping_mul(ODD);
    (stirred ^ (stirred >> 29)).wrapping_mul(ODD).rotate_left(23)
}

/// An odd constant without a pattern: the fraction of the golden ratio in 64 bits.
const ODD: u64 = 0x9E37_79B9_7F4A_7C15;

/// The most different digests kept: 4,096 entries take about 100 KB, and a run that has more is counted by `expected`.
pub const DIGESTS_MAX: usize = 4_096;

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(body: &str) -> Digest {
        digest_of(Format::EventStream, body.as_bytes())
    }

    #[test]
    fn order_type_data_and_id_all_count() {
        let plain = digest("data: a\n\ndata: b\n\n");
        for other in [
            "data: b\n\ndata: a\n\n",
            "data: a\ndata: b\n\n",
            "data: ab\n\ndata: \n\n",
            "event: x\ndata: a\n\ndata: b\n\n",
            "id: 1\ndata: a\n\ndata: b\n\n",
            "data: a\n\n",
            "data: a\0\n\ndata: b\n\n",
            "",
        ] {
            assert_ne!(digest(other), plain, "{other:?}");
        }
    }

    #[test]
    fn heartbeats_do_not_count() {
        let plain = digest("data: a\n\ndata: b\n\n");
        assert_eq!(digest("\n: c\n\ndata: a\n:\n\n\n\ndata: b\r\n\r\n:\n"), plain);
        let json = digest_of(Format::Json, b"\n\n{\"a\":1}");
        assert_eq!(json, digest_of(Format::Json, b"{\"a\":1}"));
        assert_eq!(json.events, 1);
        assert_eq!(digest_of(Format::Ndjson, b" {}\n"), digest_of(Format::Ndjson, b"{}\n"));
    }

    #[test]
    fn a_run_of_endless_variety_keeps_a_bounded_map() {
        let mut digests = Digests::default();
        for events in 0..DIGESTS_MAX as u64 + 10 {
            digests.add(Digest { events, hash: events }, None);
        }
        digests.add(Digest { events: 0, hash: 0 }, None);
        assert_eq!((digests.counts.len(), digests.unlisted), (DIGESTS_MAX, 10));
        assert_eq!(digests.counts[&Digest { events: 0, hash: 0 }], 2);
    }
}
