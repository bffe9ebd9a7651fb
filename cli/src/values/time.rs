//! Lengths of time and points in time. `humantime` knows the units.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::number::decimal;

/// Reads a length of time: numbers with a unit each, such as `30s`, `500ms`, `1m30s`, `1.5s` or `90 seconds`.
///
/// # Errors
///
/// The unit is missing, or it is months; the number is below zero, or so large or so fine that a `Duration` cannot hold
/// it; the text is something else.
pub fn duration(text: &str) -> Result<Duration, String> {
    let trimmed = text.trim();
    if let Some(positive) = trimmed.strip_prefix('-').filter(|positive| duration(positive).is_ok()) {
        return Err(format!("{text:?} is negative: write {positive}"));
    }
    if trimmed != "0" && decimal(trimmed).is_some() {
        return Err(format!("the unit of {text:?} is missing: write {trimmed}s, {trimmed}ms or {trimmed}m"));
    }
    if trimmed.contains('M') {
        return Err(format!("{text:?} would be months: write {} for minutes", trimmed.replace('M', "m")));
    }
    humantime::parse_duration(trimmed).map_err(|error| match error {
        humantime::DurationError::NumberOverflow => {
            format!("{text:?} is too large, or too fine a fraction: write for example 30s, 500ms or 1m30s")
        }
        _ => format!("{text:?} is not a length of time: write for example 30s, 500ms or 1m30s"),
    })
}

/// Reads a point in time: `2026-12-01T12:00:00Z`, or seconds since 1970, which may have decimals.
///
/// # Errors
///
/// The text is neither.
pub fn instant(text: &str) -> Result<SystemTime, String> {
    let trimmed = text.trim();
    let since_1970 = || {
        let plain = trimmed.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let seconds = plain.then(|| humantime::parse_duration(&format!("{trimmed}s")).ok())??;
        UNIX_EPOCH.checked_add(seconds)
    };
    humantime::parse_rfc3339_weak(trimmed)
        .ok()
        .or_else(since_1970)
        .ok_or_else(|| format!("{text:?} is not a time: write for example 2026-12-01T12:00:00Z, or seconds since 1970"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_of_time_is_read_with_its_unit() {
        for (text, millis) in [
            ("30s", 30_000),
            ("500ms", 500),
            ("2m", 120_000),
            ("1min", 60_000),
            ("1m30s", 90_000),
            ("1h 2m", 3_720_000),
            ("90 seconds", 90_000),
            ("1.5s", 1_500),
            (" 1d ", 86_400_000),
            ("0", 0),
            ("0s", 0),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        assert_eq!(duration("500µs"), duration("500us"));
    }

    #[test]
    fn a_bad_length_of_time_says_what_to_write() {
        assert_eq!(duration("30").unwrap_err(), "the unit of \"30\" is missing: write 30s, 30ms or 30m");
        assert_eq!(duration("-5s").unwrap_err(), "\"-5s\" is negative: write 5s");
        assert_eq!(duration("5M").unwrap_err(), "\"5M\" would be months: write 5m for minutes");
        for text in ["", "soon", "s", "-", ".", "5 parsecs", "1.2.3s", ".s", "1s 2", "1e3s", "infs"] {
            assert!(duration(text).unwrap_err().contains("is not a length of time: write for example 30s"), "{text}");
        }
        for text in ["99999999999999999999s", "0.1ns"] {
            assert!(duration(text).unwrap_err().contains("too large, or too fine"), "{text}");
        }
    }

    #[test]
    fn a_point_in_time_is_a_date_or_seconds() {
        let noon = UNIX_EPOCH + Duration::from_secs(1_796_126_400);
        assert_eq!(instant("2026-12-01T12:00:00Z"), Ok(noon));
        assert_eq!(instant("1796126400"), Ok(noon));
        assert_eq!(instant("1796126400.25"), Ok(noon + Duration::from_millis(250)));
        assert_eq!(instant("1796126400.050000001"), Ok(noon + Duration::new(0, 50_000_001)));
        for text in ["", "soon", "12:00", "1.2.3", "-5"] {
            assert!(instant(text).unwrap_err().contains("2026-12-01T12:00:00Z"), "{text}");
        }
    }
}
