//! Numbers and times as people read them. Used by `summary`.

/// Returns a count with a comma at every third digit.
pub(super) fn counted(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns a time with the unit that leaves three or four digits before or after the point.
pub(super) fn timed(ms: f64) -> String {
    if ms < 1.0 {
        format!("{:.0} µs", ms * 1_000.0)
    } else if ms < 100.0 {
        format!("{ms:.2} ms")
    } else if ms < 1_000.0 {
        format!("{ms:.1} ms")
    } else if ms < 100_000.0 {
        format!("{:.3} s", ms / 1_000.0)
    } else {
        format!("{:.1} s", ms / 1_000.0)
    }
}

/// Returns a size in the unit of 1,024 that fits.
pub(super) fn sized(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB"];
    let mut size = bytes as f64;
    let mut unit = "B";
    for larger in units {
        if size < 1_024.0 {
            break;
        }
        size /= 1_024.0;
        unit = larger;
    }
    if unit == "B" { format!("{bytes} B") } else { format!("{size:.1} {unit}") }
}

/// Returns a share in percent, exact at both ends: 100 % is all of them, 0 % is none.
pub(super) fn percent(part: u64, whole: u64) -> String {
    if whole == 0 || part == 0 {
        return "0 %".to_owned();
    }
    if part >= whole {
        return "100 %".to_owned();
    }
    format!("{:.2} %", (part as f64 / whole as f64 * 100.0).clamp(0.01, 99.99))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_commas() {
        for (count, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(counted(count), text);
        }
    }

    #[test]
    fn times_have_the_unit_that_fits() {
        for (ms, text) in [
            (0.0, "0 µs"),
            (0.412, "412 µs"),
            (12.345, "12.35 ms"),
            (999.94, "999.9 ms"),
            (1_003.2, "1.003 s"),
            (125_000.0, "125.0 s"),
        ] {
            assert_eq!(timed(ms), text);
        }
    }

    #[test]
    fn sizes_and_shares_round_without_lying() {
        assert_eq!((sized(512), sized(1_536)), ("512 B".to_owned(), "1.5 KiB".to_owned()));
        assert_eq!(percent(9_999_999, 10_000_000), "99.99 %", "one is missing, so it is not all");
        assert_eq!(percent(1, 10_000_000), "0.01 %");
        assert_eq!((percent(3, 3), percent(0, 3), percent(0, 0)), ("100 %".into(), "0 %".into(), "0 %".into()));
    }
}
