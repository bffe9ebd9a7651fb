//! How a distribution is written into a result file, so that `merge` can add it: the compressed HdrHistogram of any of
//! its libraries, in base64.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer as Reader, Serializer as _, V2DeflateSerializer};
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::spread::Spread;

/// The written form.
#[derive(Serialize, Deserialize)]
struct Packed<'a> {
    /// Microseconds, as HdrHistogram V2 with deflate, in base64; empty when nothing was recorded.
    hdr: Cow<'a, str>,
    /// The largest time exactly, in nanoseconds.
    max_ns: u64,
}

impl Serialize for Spread {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (micros, max_ns) = self.parts();
        let mut bytes = Vec::new();
        if !micros.is_empty() {
            V2DeflateSerializer::new()
                .serialize(micros, &mut bytes)
                .map_err(|error| S::Error::custom(format!("a histogram cannot be written: {error:?}")))?;
        }
        Packed { hdr: STANDARD.encode(bytes).into(), max_ns }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Spread {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let unusable = |why: String| D::Error::custom(format!("a histogram cannot be read: {why}"));
        let packed = Packed::deserialize(deserializer)?;
        let bytes = STANDARD.decode(packed.hdr.as_bytes()).map_err(|error| unusable(error.to_string()))?;
        if bytes.is_empty() {
            return Ok(Self::new());
        }
        let micros: Histogram<u64> =
            Reader::new().deserialize(&mut bytes.as_slice()).map_err(|error| unusable(format!("{error:?}")))?;
        Self::of_parts(&micros, packed.max_ns)
            .ok_or_else(|| unusable("it holds longer times than a run lasts".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_with_every_count() {
        let mut spread = Spread::new();
        for us in [0, 1, 7, 999, 1_000, 30_000_123, 86_400_000_000_u64] {
            spread.add_times(us * 1_000 + 17, us % 5 + 1);
        }
        let written = serde_json::to_string(&spread).unwrap();
        let read: Spread = serde_json::from_str(&written).unwrap();
        assert_eq!(read, spread);
        assert!(written.contains("\"hdr\":\"HISTFAAAA"), "the cookie of a compressed histogram: {written}");
    }

    #[test]
    fn nothing_recorded_takes_no_room() {
        let written = serde_json::to_string(&Spread::new()).unwrap();
        assert_eq!(written, r#"{"hdr":"","max_ns":0}"#);
        assert_eq!(serde_json::from_str::<Spread>(&written).unwrap(), Spread::new());
    }

    #[test]
    fn a_torn_histogram_is_refused() {
        for torn in [r#"{"hdr":"HISTFAAAA","max_ns":1}"#, r#"{"hdr":"%","max_ns":1}"#] {
            let error = serde_json::from_str::<Spread>(torn).unwrap_err().to_string();
            assert!(error.contains("a histogram cannot be read"), "{error}");
        }
    }
}
