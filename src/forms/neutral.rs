//! Which bytes may a form have? Checked when `heartbeat` builds one, so that a form that exists is valid.

use crate::error::Error;

/// Refuses bytes that some client would decode: all lines must be whole, and blank or comments.
pub(crate) fn check(bytes: &[u8]) -> Result<(), Error> {
    check_size(bytes)?;
    let text =
        std::str::from_utf8(bytes).map_err(|error| Error::form(format!("a heartbeat form must be UTF-8: {error}")))?;
    let Some(lines) = text.strip_suffix('\n') else {
        return Err(Error::form("a heartbeat form must end with a line feed (\\n): add it"));
    };
    for (index, line) in lines.split('\n').enumerate() {
        let number = index + 1;
        check_text(&format!("line {number} of the form"), line)?;
        if !line.is_empty() && !line.starts_with(':') {
            return Err(Error::form(format!(
                "line {number} of the heartbeat form is a field, which clients decode: \
                 begin it with a colon or leave it empty"
            )));
        }
    }
    Ok(())
}

/// Refuses what some client takes for a line end: Python's `splitlines` breaks at more than CR and LF.
pub(crate) fn check_text(what: &str, text: &str) -> Result<(), Error> {
    let is_line_end = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    match text.chars().find(|&c| is_line_end(c)) {
        Some(found) => Err(Error::form(format!(
            "the {what} has the character {found:?}, which some clients take for a line end: remove it"
        ))),
        None => Ok(()),
    }
}

/// Refuses an empty form, and one longer than a heartbeat should be.
pub(crate) fn check_size(bytes: &[u8]) -> Result<(), Error> {
    match bytes.len() {
        0 => Err(Error::form("a heartbeat form must not be empty: use off for no heartbeats")),
        1..=FORM_BYTES_MAX => Ok(()),
        size => Err(Error::form(format!("a heartbeat form of {size} bytes is too long: {FORM_BYTES_MAX} is the most"))),
    }
}

/// Far more than a heartbeat needs, and less than one TCP segment: every live stream is sent one in each interval.
const FORM_BYTES_MAX: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_blank_lines_are_neutral() {
        for bytes in ["\n", ":\n", ": a\n\n", "\n\n:\n", ":\n:\n", ": \u{e9}\n"] {
            assert!(check(bytes.as_bytes()).is_ok(), "{bytes:?}");
        }
    }

    #[test]
    fn what_a_client_might_decode_is_refused() {
        for bytes in [
            "",
            ":",
            "data: x\n\n",
            ":\r\n",
            "\r",
            "retry: 1\n",
            ": \u{2028}data: x\n",
            ":\x0bx\n",
            " \n",
            "\u{feff}\n",
            ":\0\n",
        ] {
            assert!(check(bytes.as_bytes()).is_err(), "{bytes:?}");
        }
        assert!(check(b":\xff\n").is_err());
        assert!(check(&[b'\n'; 1025]).is_err());
    }

    #[test]
    fn the_error_says_which_line() {
        let error = check(b"::\n: b\nid: 1\n").unwrap_err();
        assert!(error.to_string().contains("line 3"));
    }
}
