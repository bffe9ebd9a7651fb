//! Counts, sizes, rates and shares.

/// Reads a whole number from 0 to `u32::MAX`: `200`, `10k`, `1.5k`, `1M`.
///
/// # Errors
///
/// The text is none, or its number is larger.
pub fn number(text: &str) -> Result<u32, String> {
    scaled(text, COUNTS, "200 or 10k").map_err(|fault| fault.of("a whole number"))
}

/// Reads how many: a [`number`] that is not 0.
///
/// # Errors
///
/// Those of [`number`], and 0.
pub fn count(text: &str) -> Result<usize, String> {
    match number(text)? {
        0 => Err(format!("{text:?} is none: write at least 1, for example 200 or 10k")),
        number => usize::try_from(number).map_err(|error| error.to_string()),
    }
}

/// Reads how many each second: `2k/s`, `500/s`, `2k`.
///
/// # Errors
///
/// Those of [`count`], and another unit than `/s`.
pub fn rate(text: &str) -> Result<u32, String> {
    let digits = match text.trim().split_once('/') {
        None => text,
        Some((digits, unit)) if unit.trim() == "s" => digits,
        Some((digits, _)) => return Err(format!("{text:?} is counted in another unit: write {}/s", digits.trim())),
    };
    match scaled(digits, COUNTS, "500/s or 2k/s") {
        Ok(0) => Err(format!("{text:?} is none: write at least 1/s, for example 500/s or 2k/s")),
        read => read.map_err(|fault| Fault { text: text.to_owned(), ..fault }.of("a rate")),
    }
}

/// Reads a size in bytes: `65536`, `64KiB`, `1MiB`, `64kB`.
///
/// # Errors
///
/// The text is none, or the size is 4 GiB or more.
pub fn size(text: &str) -> Result<usize, String> {
    let size = scaled(text, SIZES, "64KiB or 1MiB").map_err(|fault| fault.of("a size"))?;
    usize::try_from(size).map_err(|error| error.to_string())
}

/// Reads a part of a whole, from 0 to 1: `1%`, `0.01`.
///
/// # Errors
///
/// The text is none, or more than the whole.
pub fn share(text: &str) -> Result<f64, String> {
    let trimmed = text.trim();
    let part = match trimmed.strip_suffix('%') {
        Some(percent) => decimal(percent.trim()).map(|percent| percent / 100.0),
        None => decimal(trimmed),
    };
    let part = part.filter(|part| *part <= 1.0);
    part.ok_or_else(|| format!("{text:?} is not a share: write for example 1% or 0.01"))
}

/// Reads a plain decimal: digits and at most one point, no sign, no exponent.
pub fn decimal(text: &str) -> Option<f64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    (plain && text.starts_with(|c: char| c.is_ascii_digit())).then(|| text.parse().ok())?
}

/// What a number is not.
struct Fault {
    text: String,
    example: &'static str,
    is_too_large: bool,
}

impl Fault {
    fn of(self, what: &str) -> String {
        let Self { text, example, is_too_large } = self;
        match is_too_large {
            true => format!("{text:?} is more than {} at most: write for example {example}", u32::MAX),
            false => format!("{text:?} is not {what}: write for example {example}"),
        }
    }
}

/// A whole number of units, exactly: `1.2345k` is none, since it would be half of something.
fn scaled(text: &str, units: &[(&str, u64)], example: &'static str) -> Result<u32, Fault> {
    let fault = |is_too_large| Fault { text: text.to_owned(), example, is_too_large };
    let malformed = || fault(false);
    let trimmed = text.trim();
    let end = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    let (digits, unit) = trimmed.split_at(end);
    let known = units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit.trim()));
    let (_, scale) = known.ok_or_else(malformed)?;
    let (whole, decimals) = digits.split_once('.').unwrap_or((digits, "0"));
    if whole.is_empty() || decimals.is_empty() || decimals.contains('.') {
        return Err(malformed());
    }
    let whole: u128 = whole.parse().map_err(|_| fault(true))?;
    // A unit has at most seven digits, so a longer fraction is none of it, but for zeros.
    let decimals = decimals.trim_end_matches('0');
    let ten_to = 10_u128.checked_pow(u32::try_from(decimals.len()).unwrap_or(u32::MAX)).ok_or_else(malformed)?;
    let part = decimals.parse().unwrap_or(0_u128) * u128::from(*scale);
    if part % ten_to != 0 {
        return Err(malformed());
    }
    let number = whole.checked_mul(u128::from(*scale)).and_then(|number| number.checked_add(part / ten_to));
    number.and_then(|number| u32::try_from(number).ok()).ok_or_else(|| fault(true))
}

/// Units of counts.
const COUNTS: &[(&str, u64)] = &[("", 1), ("k", 1_000), ("m", 1_000_000)];
/// Units of size, in bytes.
const SIZES: &[(&str, u64)] = &[
    ("", 1),
    ("b", 1),
    ("k", 1 << 10),
    ("kib", 1 << 10),
    ("kb", 1_000),
    ("m", 1 << 20),
    ("mib", 1 << 20),
    ("mb", 1_000_000),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_read_with_its_suffix() {
        for (text, read) in [
            ("200", 200),
            ("9k", 9_000),
            ("10K", 10_000),
            ("1m", 1_000_000),
            ("1M", 1_000_000),
            ("1.5k", 1_500),
            ("1.500k", 1_500),
            ("0.25m", 250_000),
            ("4294967295", 4_294_967_295),
        ] {
            assert_eq!(count(text), Ok(read), "{text}");
        }
        assert_eq!(number("0"), Ok(0));
    }

    #[test]
    fn a_bad_count_says_what_to_write() {
        for text in
            ["", "k", "many", "-3", "1.2345k", "1.5", "2.k", ".5k", "1 000", "0x10", "1k1", "64 cows", "ä", "1.5.0k"]
        {
            let message = count(text).unwrap_err();
            assert!(message.contains("is not a whole number: write for example 200 or 10k"), "{text}: {message}");
        }
        assert!(count("0").unwrap_err().contains("write at least 1"));
        for text in ["5000m", "4294967296", "99999999999999999999", "18446744073709551615k", &"9".repeat(99)] {
            assert!(count(text).unwrap_err().contains("4294967295 at most"), "{text}");
        }
    }

    #[test]
    fn a_rate_is_counted_each_second() {
        assert_eq!(rate("2k/s"), Ok(2_000));
        assert_eq!(rate("500"), Ok(500));
        assert_eq!(rate("60/m").unwrap_err(), "\"60/m\" is counted in another unit: write 60/s");
        assert_eq!(rate("fast/s").unwrap_err(), "\"fast/s\" is not a rate: write for example 500/s or 2k/s");
        assert!(rate("0/s").unwrap_err().contains("at least 1/s"));
    }

    #[test]
    fn a_size_is_read_in_both_kinds_of_units() {
        for (text, bytes) in
            [("65536", 65_536), ("64KiB", 65_536), ("64k", 65_536), ("64kB", 64_000), ("1 MiB", 1 << 20), ("0", 0)]
        {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        assert!(size("big").unwrap_err().contains("is not a size: write for example 64KiB"));
        assert!(size("5000MiB").unwrap_err().contains("at most"));
    }

    #[test]
    fn a_share_is_a_part_of_one() {
        for (text, read) in [("1%", 0.01), ("0.02", 0.02), ("100 %", 1.0), ("0", 0.0)] {
            assert_eq!(share(text), Ok(read), "{text}");
        }
        for text in ["", "%", "1s", "101%", "1.1", "-1%", "1e-2"] {
            assert!(share(text).unwrap_err().contains("is not a share: write for example 1%"), "{text}");
        }
    }
}
