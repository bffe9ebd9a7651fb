//! Where in a stream of JSON lines are we? What `boundary` is for event streams, asked by `inject` too.
//!
//! A line ends with LF; a CR before it is whitespace of the line. So much of JSON is followed as is needed to see a
//! `"done":true` of the topmost object, which is how Ollama's API announces its last line.

use std::sync::LazyLock;

use memchr::memmem::Finder;
use memchr::{memchr, memchr2};

use crate::api::ollama;

/// The place reached in one stream of JSON lines.
#[derive(Debug)]
pub(crate) struct Lines {
    place: Place,
    scan: Scan,
    depth: u16,
    is_done: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// At the start of a line.
    Start,
    /// The same, with spaces of ours before it. A blank line of the stream is left out here.
    Spaced,
    /// After some byte of a line.
    Inside,
}

/// The place within the JSON of one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scan {
    /// In no string, awaiting no key of the topmost object.
    Plain,
    /// Awaiting a key of the topmost object.
    Key,
    /// In such a key, after so many bytes of `done`.
    Name(u8),
    /// After the key `done`: awaiting its colon.
    Colon,
    /// After the colon: awaiting the value.
    Value,
    /// In the value, after so many bytes of `true`.
    True(u8),
    /// In another string.
    Text,
    /// After a backslash in it.
    Escape,
}

impl Lines {
    pub(crate) const fn new() -> Self {
        Self { place: Place::Start, scan: Scan::Plain, depth: 0, is_done: false }
    }

    /// Reads the stream's next bytes. True if any of them is more than the end of a line.
    pub(crate) fn advance(&mut self, mut bytes: &[u8]) -> bool {
        let mut has_json = false;
        while !bytes.is_empty() {
            let end = memchr(b'\n', bytes);
            let part = &bytes[..end.unwrap_or(bytes.len())];
            has_json |= !part.is_empty() && part != b"\r";
            if end.is_none() || self.place == Place::Inside || may_be_done(part) {
                self.read(part);
            }
            let Some(end) = end else {
                self.place = Place::Inside;
                break;
            };
            self.place = Place::Start;
            self.scan = Scan::Plain;
            self.depth = 0;
            bytes = &bytes[end + 1..];
        }
        has_json
    }

    /// How many bytes of the stream to leave out: line ends of blank lines after a space of ours, since a line of
    /// nothing but the space would be one that a client cannot decode.
    pub(crate) fn swallows(&self, bytes: &[u8]) -> usize {
        if self.place != Place::Spaced {
            return 0;
        }
        bytes.iter().take_while(|&&byte| byte == b'\r' || byte == b'\n').count()
    }

    /// True if a space may be written here. The caller writes it.
    pub(crate) fn take_space(&mut self) -> bool {
        let is_free = self.is_between_lines() && !self.is_done;
        if is_free {
            self.place = Place::Spaced;
        }
        is_free
    }

    /// True at the start of a line.
    pub(crate) fn is_between_lines(&self) -> bool {
        self.place != Place::Inside
    }

    /// True once the last line has begun.
    pub(crate) const fn is_done(&self) -> bool {
        self.is_done
    }

    fn read(&mut self, mut bytes: &[u8]) {
        while let Some((&byte, rest)) = bytes.split_first() {
            bytes = rest;
            self.scan = match (self.scan, byte) {
                (Scan::Text, _) => {
                    // Most bytes are in strings: skip to what may end one.
                    if byte == b'"' {
                        Scan::Plain
                    } else if byte == b'\\' {
                        Scan::Escape
                    } else {
                        let skipped = memchr2(b'"', b'\\', bytes).unwrap_or(bytes.len());
                        bytes = &bytes[skipped..];
                        Scan::Text
                    }
                }
                (Scan::Escape, _) => Scan::Text,
                (Scan::Name(NAME_LENGTH), b'"') => Scan::Colon,
                (Scan::Name(_), b'"') => Scan::Plain,
                (Scan::Name(_), b'\\') => Scan::Escape,
                (Scan::Name(at), _) if NAME.get(usize::from(at)) == Some(&byte) => Scan::Name(at + 1),
                (Scan::Name(_), _) => Scan::Text,
                (Scan::Key, b'"') => Scan::Name(0),
                (Scan::Colon, b':') => Scan::Value,
                (Scan::Value, b't') => Scan::True(1),
                (Scan::True(3), b'e') => {
                    self.is_done = true;
                    Scan::Plain
                }
                (Scan::True(at), _) if b"true"[usize::from(at)] == byte => Scan::True(at + 1),
                (awaiting @ (Scan::Key | Scan::Colon | Scan::Value), b' ' | b'\t' | b'\r') => awaiting,
                _ => self.read_plain(byte),
            };
        }
    }

    fn read_plain(&mut self, byte: u8) -> Scan {
        match byte {
            b'"' => Scan::Text,
            b'{' | b'[' => {
                self.depth = self.depth.saturating_add(1);
                if self.depth == 1 && byte == b'{' { Scan::Key } else { Scan::Plain }
            }
            b'}' | b']' => {
                // Lost count: nothing is the topmost object again before the next line.
                if self.depth != u16::MAX {
                    self.depth = self.depth.saturating_sub(1);
                }
                Scan::Plain
            }
            b',' if self.depth == 1 => Scan::Key,
            _ => Scan::Plain,
        }
    }
}

/// False if a whole line is surely not the last one: no `"done"` in it is followed by what may be a `true`.
fn may_be_done(line: &[u8]) -> bool {
    DONE.find_iter(line).any(|at| {
        let after = line[at + DONE.needle().len()..].trim_ascii_start();
        after.strip_prefix(b":").is_some_and(|value| value.trim_ascii_start().starts_with(b"t"))
    })
}

/// Kept, since setting up a search costs more than searching a line.
static DONE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(&[b"\"", NAME, b"\""].concat()).into_owned());

/// The key that announces the last line.
const NAME: &[u8] = ollama::DONE.as_bytes();
const NAME_LENGTH: u8 = NAME.len() as u8; // a few letters

#[cfg(test)]
mod tests {
    use super::*;

    fn is_done(line: &str) -> bool {
        let mut whole = Lines::new();
        whole.advance(line.as_bytes());
        let mut torn = Lines::new();
        for byte in line.as_bytes().chunks(1) {
            torn.advance(byte);
        }
        assert_eq!(format!("{whole:?}"), format!("{torn:?}"), "{line}");
        whole.is_done()
    }

    #[test]
    fn done_counts_as_a_topmost_key_only() {
        for line in [
            r#"{"done":true}"#,
            r#" { "a" : [1, {"b":"}"}] , "done" : true }"#,
            r#"{"response":"\"","done":true,"context":[1]}"#,
            "{\"a\":1}\n{\"done\":true}\n",
        ] {
            assert!(is_done(line), "{line}");
        }
        for line in [
            r#"{"done":false}"#,
            r#"{"done":tru"#,
            r#"{"message":{"done":true}}"#,
            r#"{"response":"{\"done\":true}"}"#,
            r#"{"response":"\\\"done\":true"#,
            r#"{"undone":true}"#,
            r#"{"done_reason":true}"#,
            r#"{"done":"true"}"#,
            r#"{"x":"done","y":true}"#,
            r#"[{"done":true}]"#,
            r#"{"don\u0065":true}"#,
            "{\"done\":\ntrue}",
        ] {
            assert!(!is_done(line), "{line}");
        }
    }

    #[test]
    fn nesting_beyond_all_measure_never_looks_like_the_top() {
        let line = format!("{}{},\"done\":true", "[".repeat(70_000), "]".repeat(69_999));
        assert!(!is_done(&line));
    }

    #[test]
    fn spaces_stand_at_line_starts_and_never_after_the_last_line() {
        let mut lines = Lines::new();
        assert!(lines.take_space());
        lines.advance(b"{\"a\":1}\r");
        assert!(!lines.take_space());
        lines.advance(b"\n");
        assert!(lines.take_space() && lines.take_space());
        lines.advance(b"{\"done\":true}\n");
        assert!(!lines.take_space());
    }

    #[test]
    fn a_blank_line_after_our_space_is_left_out() {
        let mut lines = Lines::new();
        assert_eq!(lines.swallows(b"\n"), 0);
        assert!(lines.take_space());
        assert_eq!(lines.swallows(b"\r"), 1);
        assert_eq!(lines.swallows(b"\n\n{}\n"), 2);
        lines.advance(b"{}\n");
        assert_eq!(lines.swallows(b"\n"), 0);
    }
}
