//! Lengths of time, sizes and counts as people write them: `30s`, `1m30s`, `64KiB`, `10k`. Read by `layer`.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// Parses a length of time: numbers with a unit each, largest first, such as `30s`, `1.5s` or `1m30s`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let malformed = || format!("{text:?} is not a length of time: write for example 30s, 500ms or 1m30s");
    let mut rest = text.trim();
    if !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()) && rest != "0" {
        return Err(format!("the unit of {text:?} is missing: write {rest}s, {rest}ms or {rest}m"));
    }
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    let (mut total, mut before) = (Duration::ZERO, f64::INFINITY);
    while !rest.is_empty() {
        let (number, unit, after) = pair(rest);
        let (_, seconds) = TIMES.iter().find(|(name, _)| *name == unit).ok_or_else(malformed)?;
        let number: f64 = number.parse().map_err(|_| malformed())?;
        if *seconds >= before {
            return Err(malformed());
        }
        let part = Duration::try_from_secs_f64(number * seconds).map_err(|_| malformed())?;
        total = total.checked_add(part).ok_or_else(malformed)?;
        (before, rest) = (*seconds, after);
    }
    if text.trim().is_empty() { Err(malformed()) } else { Ok(total) }
}

/// Parses a size in bytes: `65536`, `64KiB`, `1MiB`, `64kB`.
pub(super) fn size(text: &str) -> Result<usize, String> {
    scaled(text, SIZES).ok_or_else(|| format!("{text:?} is not a size: write for example 64KiB or 1MiB"))
}

/// Parses how many: `200`, `10k`, `1.5k`, `1m`.
pub(super) fn count(text: &str) -> Result<usize, String> {
    scaled(text, COUNTS).ok_or_else(|| format!("{text:?} is not a count: write for example 200 or 10k"))
}

/// A whole number with one optional unit.
fn scaled(text: &str, units: &[(&str, f64)]) -> Option<usize> {
    let (number, unit, after) = pair(text.trim());
    let (_, scale) = units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit))?;
    let scaled = number.parse::<f64>().ok()? * scale;
    let fits = after.is_empty() && (scaled.round() - scaled).abs() < 1e-6 && scaled <= f64::from(u32::MAX);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and u32::MAX")]
    fits.then_some(scaled.round() as usize)
}

/// The number and the unit at the front of `text`, and what follows them.
fn pair(text: &str) -> (&str, &str, &str) {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, rest) = text.split_at(digits);
    let letters = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(letters);
    (number, unit.trim(), rest)
}

/// A value that a file gives as text, and a plain number where that has one meaning.
pub(super) trait Written: Sized {
    /// What to write, after "expected".
    const EXPECTED: &'static str;

    /// Reads the text.
    fn read(text: &str) -> Result<Self, String>;

    /// Reads a number; refused unless the kind of value has no unit.
    fn number(number: u64) -> Result<Self, String> {
        Self::read(&number.to_string())
    }
}

impl Written for Duration {
    const EXPECTED: &'static str = "a length of time such as \"30s\"";

    fn read(text: &str) -> Result<Self, String> {
        duration(text)
    }
}

/// Bytes in a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size(pub(super) usize);

impl Written for Size {
    const EXPECTED: &'static str = "a size such as \"64KiB\"";

    fn read(text: &str) -> Result<Self, String> {
        size(text).map(Self)
    }
}

/// How many, in a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Count(pub(super) usize);

impl Written for Count {
    const EXPECTED: &'static str = "a count such as 200 or \"10k\"";

    fn read(text: &str) -> Result<Self, String> {
        count(text).map(Self)
    }
}

/// Deserializes any [`Written`] value.
pub(super) fn written<'de, D: Deserializer<'de>, T: Written>(deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_any(Reader(PhantomData))
}

/// Makes a [`Written`] value usable where serde wants a type: inside an `Option` or a list.
pub(super) struct Read<T>(pub(super) T);

impl<'de, T: Written> Deserialize<'de> for Read<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        written(deserializer).map(Self)
    }
}

struct Reader<T>(PhantomData<T>);

impl<T: Written> Visitor<'_> for Reader<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        T::read(text).map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        let number = u64::try_from(number).map_err(|_| E::custom(format!("{number} is below zero")))?;
        T::number(number).map_err(E::custom)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        T::number(number).map_err(E::custom)
    }
}

/// Units of time, in seconds.
const TIMES: &[(&str, f64)] = &[("d", 86_400.0), ("h", 3_600.0), ("m", 60.0), ("s", 1.0), ("ms", 1e-3), ("us", 1e-6)];
/// Units of size, in bytes.
const SIZES: &[(&str, f64)] = &[
    ("", 1.0),
    ("b", 1.0),
    ("k", 1_024.0),
    ("kib", 1_024.0),
    ("kb", 1_000.0),
    ("m", 1_048_576.0),
    ("mib", 1_048_576.0),
    ("mb", 1_000_000.0),
];
/// Units of counts.
const COUNTS: &[(&str, f64)] = &[("", 1.0), ("k", 1_000.0), ("m", 1_000_000.0)];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_read_with_their_units() {
        for (text, millis) in [
            ("30s", 30_000),
            ("500ms", 500),
            ("2m", 120_000),
            ("1m30s", 90_000),
            ("1h 2m", 3_720_000),
            ("1.5s", 1_500),
            (" 1d ", 86_400_000),
            ("0", 0),
            ("0s", 0),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        assert!(duration("30").unwrap_err().contains("write 30s, 30ms or 30m"));
        for text in ["", "s", "soon", "-5s", "5 parsecs", "1.2.3s", "1s1m", "1s2s", "9e9s", "99999999999999999999s"] {
            assert!(duration(text).unwrap_err().contains("30s"), "{text}");
        }
    }

    #[test]
    fn sizes_and_counts_are_read_with_their_units() {
        for (text, bytes) in
            [("65536", 65_536), ("64KiB", 65_536), ("64k", 65_536), ("64kB", 64_000), ("1 MiB", 1 << 20)]
        {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for (text, number) in [("200", 200), ("10k", 10_000), ("1.5K", 1_500), ("1m", 1_000_000), ("0", 0)] {
            assert_eq!(count(text), Ok(number), "{text}");
        }
        for text in ["", "k", "-3", "1.5", "64 cows", "5000m", "1k1", "0x10"] {
            assert!(count(text).is_err(), "{text}");
        }
        assert!(size("big").unwrap_err().contains("64KiB") && size("5000MiB").is_err());
    }
}
