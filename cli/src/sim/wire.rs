//! Writes events as bytes: event streams with any line end, NDJSON lines, a byte order mark.
//!
//! Called by the API files through [`Wire::event`] and [`Wire::json_line`]; knows nothing of their content.

use super::choices::LineEnd;
use super::dice::Dice;

/// Writes one stream's events; remembers what the last line ended with.
#[derive(Debug)]
pub(crate) struct Wire {
    line_end: LineEnd,
    dice: Dice,
    last_was_cr: bool,
    written: Vec<u8>,
}

impl Wire {
    /// Makes the writer of one stream; `seed` draws the ends of [`LineEnd::Mixed`].
    pub(crate) fn new(line_end: LineEnd, seed: u64) -> Self {
        Self { line_end, dice: Dice::new(seed, PURPOSE), last_was_cr: false, written: Vec::new() }
    }

    /// Takes what was written since the last time.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.written)
    }

    /// Writes a byte order mark.
    pub(crate) fn bom(&mut self) {
        self.written.extend_from_slice("\u{feff}".as_bytes());
    }

    /// Writes one event with its name, if it has one; data of several lines becomes several fields.
    pub(crate) fn event(&mut self, name: Option<&str>, data: &str) {
        if let Some(name) = name {
            self.line("event: ", name);
        }
        for line in data.split('\n') {
            self.line("data: ", line);
        }
        self.line("", "");
    }

    /// Writes a field that belongs to the event that comes next.
    pub(crate) fn field(&mut self, name: &str, value: &str) {
        self.line(name, value);
    }

    /// Writes one line of NDJSON.
    pub(crate) fn json_line(&mut self, json: &str) {
        self.written.extend_from_slice(json.as_bytes());
        let crlf = match self.line_end {
            LineEnd::Lf | LineEnd::Cr => false,
            LineEnd::Crlf => true,
            LineEnd::Mixed => self.dice.below(2) == 0,
        };
        self.written.extend_from_slice(if crlf { b"\r\n" } else { b"\n" });
    }

    fn line(&mut self, head: &str, rest: &str) {
        self.written.extend_from_slice(head.as_bytes());
        self.written.extend_from_slice(rest.as_bytes());
        let blank = head.is_empty() && rest.is_empty();
        let end: &[u8] = match self.line_end {
            LineEnd::Lf => b"\n",
            LineEnd::Crlf => b"\r\n",
            LineEnd::Cr => b"\r",
            LineEnd::Mixed => match self.dice.below(3) {
                // A blank line's LF right after a CR would only complete a CRLF: the blank line would be lost.
                0 if !(blank && self.last_was_cr) => b"\n",
                1 => b"\r\n",
                _ => b"\r",
            },
        };
        self.written.extend_from_slice(end);
        self.last_was_cr = end == b"\r";
    }
}

const PURPOSE: u64 = 0x7769_7265;

#[cfg(test)]
mod tests {
    use super::*;

    fn written(line_end: LineEnd) -> String {
        let mut wire = Wire::new(line_end, 1);
        wire.event(Some("tick"), "one\ntwo");
        String::from_utf8(wire.take()).unwrap()
    }

    #[test]
    fn an_event_is_written_with_its_line_ends() {
        let lf = "event: tick\ndata: one\ndata: two\n\n";
        assert_eq!(written(LineEnd::Lf), lf);
        assert_eq!(written(LineEnd::Crlf), lf.replace('\n', "\r\n"));
        assert_eq!(written(LineEnd::Cr), lf.replace('\n', "\r"));
    }

    #[test]
    fn mixed_line_ends_never_lose_a_blank_line() {
        let mut wire = Wire::new(LineEnd::Mixed, 5);
        for _ in 0..500 {
            wire.event(Some("tick"), "one\ntwo");
        }
        let text = String::from_utf8(wire.take()).unwrap();
        let ends = ["\r\n", "\r", "\n"];
        assert!(ends.iter().all(|end| text.matches(end).count() > 200));
        // Every CRLF is one line end, then every CR is one.
        let lines = text.replace("\r\n", "\n").replace('\r', "\n");
        assert_eq!(lines, "event: tick\ndata: one\ndata: two\n\n".repeat(500));
    }

    #[test]
    fn ndjson_ends_its_lines_with_lf_or_crlf() {
        for line_end in LineEnd::ALL {
            let mut wire = Wire::new(*line_end, 5);
            wire.json_line("{}");
            assert!([&b"{}\n"[..], b"{}\r\n"].contains(&&wire.take()[..]));
        }
    }
}
