//! Value parsers that the arguments of every command share, and the examples of the top-level help.
//!
//! Used as `#[arg(value_parser = args::duration)]`; each error says what is wrong and what to write instead.

use std::time::Duration;

/// Shown under `heartline --help`.
pub(crate) const EXAMPLES: &str = "\
Examples:
  heartline demo
      the problem and the cure, side by side, in seconds
  heartline sim --script cliff --heartbeat newline
      an engine to test against, with heartbeats
  heartline proxy --upstream http://127.0.0.1:23333
      heartbeats for an engine that has none
  heartline load --streams 9k --interval 1s --hold 20s --json -
      hold 9,000 streams and report the silence each one saw
  heartline completions bash > ~/.local/share/bash-completion/completions/heartline
  heartline man load | man -l -

Exit codes:
  0   pass                  3   refused by a host limit    99  a condition failed
  1   internal              4   the run is invalid
  2   usage                 5   interrupted";

/// Parses a length of time such as `30s`, `500ms`, `2m` or `1m30s`.
///
/// # Errors
///
/// One line that names the fault, when the text has no unit, is negative or is no length of time.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let trimmed = text.trim();
    if let Some(positive) = trimmed.strip_prefix('-') {
        return Err(format!("a length of time cannot be negative; write {positive}"));
    }
    if !trimmed.is_empty() && trimmed.bytes().all(|byte| byte.is_ascii_digit()) && trimmed != "0" {
        return Err(format!("the unit is missing; write {trimmed}s, {trimmed}ms or {trimmed}m"));
    }
    if let Some(parsed) = fraction(trimmed) {
        return Ok(parsed);
    }
    humantime::parse_duration(trimmed)
        .map_err(|_| "not a length of time; write for example 30s, 500ms or 2m".to_owned())
}

/// Parses a decimal with one unit (`1.5s`), which humantime does not know; `None` leaves the text to humantime.
fn fraction(text: &str) -> Option<Duration> {
    let (number, nanos_per_unit) = [("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)]
        .into_iter()
        .find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)))?;
    let plain = number.contains('.') && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let seconds: f64 = plain.then(|| number.parse().ok())??;
    Duration::try_from_secs_f64(seconds * nanos_per_unit).ok()
}

/// Parses how many: `200`, `10k`, `1.5k`, `1m`; at least 1.
///
/// # Errors
///
/// One line that names the fault, when the text is no whole number of things, or zero, or more than `u32::MAX`.
pub(crate) fn count(text: &str) -> Result<usize, String> {
    let number = whole(text, "10k")?;
    usize::try_from(number).map_err(|_| too_many(text))
}

/// Parses how many each second: `2k/s`, `500/s`, `2k`; at least 1.
///
/// # Errors
///
/// One line that names the fault, as [`count`] does; a unit other than `/s` is refused.
pub(crate) fn rate(text: &str) -> Result<u32, String> {
    let number = match text.trim().split_once('/') {
        None => text,
        Some((number, unit)) if unit.trim() == "s" => number,
        Some((number, _)) => return Err(format!("a rate is counted per second; write {number}/s")),
    };
    whole(number, "2k/s")
}

/// Parses a whole number from 1 to `u32::MAX` with an optional `k` (1,000) or `m` (1,000,000).
fn whole(text: &str, example: &str) -> Result<u32, String> {
    let trimmed = text.trim();
    let (digits, unit) = match trimmed.as_bytes().last() {
        Some(b'k' | b'K') => (&trimmed[..trimmed.len() - 1], 1_000_u64),
        Some(b'm' | b'M') => (&trimmed[..trimmed.len() - 1], 1_000_000),
        _ => (trimmed, 1),
    };
    let malformed = || format!("not a whole number; write for example 200 or {example}");
    let (integer, decimals) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let dangling = digits.contains('.') && decimals.is_empty();
    if integer.is_empty() || dangling || !all_digits(integer) || !all_digits(decimals) {
        return Err(malformed());
    }
    let integer: u64 = integer.parse().map_err(|_| too_many(text))?;
    let mut number = integer.checked_mul(unit).ok_or_else(|| too_many(text))?;
    let mut place = unit;
    for digit in decimals.bytes() {
        let digit = u64::from(digit - b'0');
        // `1.2345k` would be 1,234.5 streams.
        if place < 10 && digit != 0 {
            return Err(malformed());
        }
        place /= 10;
        number += digit * place;
    }
    match u32::try_from(number) {
        Ok(0) => Err(format!("must be at least 1; write for example {example}")),
        Ok(number) => Ok(number),
        Err(_) => Err(too_many(text)),
    }
}

fn too_many(text: &str) -> String {
    format!("{} is more than {} at most", text.trim(), u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_read_with_its_unit() {
        for (text, millis) in [
            ("30s", 30_000),
            ("500ms", 500),
            ("2m", 120_000),
            ("1m30s", 90_000),
            ("1.5s", 1_500),
            (" 8s ", 8_000),
            ("0s", 0),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn a_bad_duration_says_what_to_write() {
        assert_eq!(duration("30").unwrap_err(), "the unit is missing; write 30s, 30ms or 30m");
        assert_eq!(duration("-5s").unwrap_err(), "a length of time cannot be negative; write 5s");
        for text in ["", "soon", "s", "5 parsecs", "1.2.3s", ".s"] {
            assert!(duration(text).unwrap_err().contains("write for example 30s"), "{text}");
        }
    }

    #[test]
    fn a_count_is_read_with_its_suffix() {
        for (text, number) in [
            ("200", 200),
            ("9k", 9_000),
            ("10K", 10_000),
            ("1m", 1_000_000),
            ("1.5k", 1_500),
            ("1.500k", 1_500),
            ("0.25m", 250_000),
        ] {
            assert_eq!(count(text), Ok(number), "{text}");
        }
    }

    #[test]
    fn a_bad_count_says_what_to_write() {
        for text in ["", "k", "many", "-3", "1.2345k", "1.5", "2.k", "1 000", "0x10", "ä"] {
            assert!(count(text).unwrap_err().contains("write for example 200 or 10k"), "{text}");
        }
        assert!(count("0").unwrap_err().contains("at least 1"));
        for text in ["5000m", "99999999999999999999", "18446744073709551615k"] {
            assert!(count(text).unwrap_err().contains("at most"), "{text}");
        }
    }

    #[test]
    fn a_rate_is_counted_per_second() {
        assert_eq!(rate("2k/s"), Ok(2_000));
        assert_eq!(rate("500"), Ok(500));
        assert_eq!(rate("60/m").unwrap_err(), "a rate is counted per second; write 60/s");
        assert!(rate("fast/s").unwrap_err().contains("2k/s"));
    }
}
