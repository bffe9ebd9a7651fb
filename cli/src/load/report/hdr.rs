//! The report's distributions as an HdrHistogram log, which the viewers and processors of that format open.

use std::io;
use std::time::{Duration, UNIX_EPOCH};

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};

use super::super::histograms::NAMES;
use super::Report;

impl Report {
    /// Returns the distributions as an HdrHistogram log (format 1.3, histograms V2 with deflate).
    ///
    /// Each one is an interval of its own, tagged with its name, that lasts as long as the hold phase; values are
    /// microseconds, the interval's maximum is in milliseconds. Distributions without samples are left out.
    ///
    /// # Errors
    ///
    /// When a histogram cannot be encoded.
    pub fn to_hdr_log(&self) -> io::Result<String> {
        let mut log = Vec::new();
        let mut serializer = V2DeflateSerializer::new();
        let began = UNIX_EPOCH + Duration::from_millis(self.hold.from_unix_ms);
        let mut writer = IntervalLogWriterBuilder::new()
            .add_comment("[Histogram log format version 1.3]")
            .add_comment(&format!("[heartline load {}]", self.settings.url))
            .with_start_time(began)
            .with_max_value_divisor(1_000.0)
            .begin_log_with(&mut log, &mut serializer)?;
        for name in NAMES {
            let Some((micros, _)) = self.histograms.named(name).map(super::super::spread::Spread::parts) else {
                continue;
            };
            if micros.is_empty() {
                continue;
            }
            let from = Duration::from_millis(self.hold.from_unix_ms);
            writer
                .write_histogram(micros, from, Duration::from_millis(self.hold.length_ms), Tag::new(name))
                .map_err(|error| io::Error::other(format!("{error:?}")))?;
        }
        drop(writer);
        Ok(String::from_utf8_lossy(&log).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use hdrhistogram::Histogram;
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    use super::super::super::test_report::sample;

    #[test]
    fn the_log_is_read_back_with_every_count() {
        let report = sample();
        let log = report.to_hdr_log().unwrap();
        assert!(log.starts_with("#[Histogram log format version 1.3]\n"), "{log}");
        let mut tags = Vec::new();
        for entry in IntervalLogIterator::new(log.as_bytes()) {
            let LogEntry::Interval(interval) = entry.unwrap() else { continue };
            let bytes = STANDARD.decode(interval.encoded_histogram()).unwrap();
            let histogram: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
            let tag = interval.tag().unwrap().as_str().to_owned();
            assert_eq!(Some(&histogram), report.histograms.named(&tag).map(|spread| spread.parts().0), "{tag}");
            assert_eq!(interval.duration().as_millis(), u128::from(report.hold.length_ms));
            tags.push(tag);
        }
        assert_eq!(tags, ["silence", "ttft", "connect"], "those with samples only");
    }
}
