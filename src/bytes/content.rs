//! What counts as content? Asked only for streams with a `max_silence`, where signs of life must not pass for progress.
//!
//! Comments, blank lines, pings and chunks with an empty `choices` come from engines and gateways that keep their own
//! connections alive; none of them shows that an answer goes on. This machine reads lines for itself, beside
//! `boundary`, so that token frames of other streams do not pay for it.

use memchr::{memchr_iter, memchr2};

use super::head::{Head, Mark};
use crate::api::openai;

/// What `Injector::pass` should report about the bytes that go by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watch {
    /// Cheap: anything but comments and blank lines.
    Bytes,
    /// Exact: whole `data:` lines that carry something of the answer.
    Content,
}

/// The content seen in one event stream.
#[derive(Debug)]
pub(crate) struct Content {
    line: Line,
    head: Head,
    /// So many bytes of `"choices":[]` have just been read.
    choices_at: u8,
    is_data: bool,
    has_no_choices: bool,
    is_ping_event: bool,
    /// Bytes of this line, saturating.
    length: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    Start,
    AfterReturn,
    Inside,
}

impl Content {
    pub(crate) const fn new() -> Self {
        Self {
            line: Line::Start,
            head: Head::START,
            choices_at: 0,
            is_data: false,
            has_no_choices: false,
            is_ping_event: false,
            length: 0,
        }
    }

    /// True for a frame that `boundary` has found to be a whole token, if it is content and changes nothing here.
    #[inline]
    pub(crate) fn is_whole_token(&self, bytes: &[u8]) -> bool {
        self.line == Line::Start && !self.is_ping_event && !has_empty_list(bytes)
    }

    /// Reads the stream's next bytes. True if a line of content ends in them, or a very long one goes on.
    pub(crate) fn advance(&mut self, mut bytes: &[u8]) -> bool {
        let mut has_content = false;
        while let Some(&first) = bytes.first() {
            let has_begun = self.line == Line::Inside;
            if !has_begun {
                if first == b'\n' || first == b'\r' {
                    if first == b'\r' || self.line == Line::Start {
                        self.is_ping_event = false;
                    }
                    self.line = if first == b'\r' { Line::AfterReturn } else { Line::Start };
                    bytes = &bytes[1..];
                    continue;
                }
                self.begin_line();
            }
            let end = memchr2(b'\n', b'\r', bytes);
            let part = &bytes[..end.unwrap_or(bytes.len())];
            self.read_head(part);
            // A whole line without an empty list needs no closer look.
            if has_begun || end.is_none() || has_empty_list(part) {
                self.read_choices(part);
            }
            let Some(end) = end else {
                has_content |= self.length > LINE_BYTES_LONG && self.is_content();
                break;
            };
            self.is_ping_event |= self.head.mark() == Mark::PingAtEnd;
            // A head that still stands at the colon is a `data:` without a value.
            has_content |= self.is_content() && self.head.mark() != Mark::Data;
            self.line = if bytes[end] == b'\r' { Line::AfterReturn } else { Line::Start };
            bytes = &bytes[end + 1..];
        }
        has_content
    }

    const fn is_content(&self) -> bool {
        self.is_data && !self.is_ping_event && !self.has_no_choices
    }

    fn begin_line(&mut self) {
        self.line = Line::Inside;
        self.head = Head::START;
        self.choices_at = 0;
        self.is_data = false;
        self.has_no_choices = false;
        self.length = 0;
    }

    fn read_head(&mut self, mut part: &[u8]) {
        self.length = self.length.saturating_add(u16::try_from(part.len()).unwrap_or(u16::MAX));
        if self.head == Head::START {
            self.is_data = part.starts_with(b"data:");
            (self.head, part) = Head::skip_lead(part);
        }
        for &byte in part {
            if self.head.is_settled() {
                return;
            }
            self.head = self.head.step(byte);
            match self.head.mark() {
                Mark::Data => self.is_data = true,
                Mark::Ping => self.is_ping_event = true,
                _ => {}
            }
        }
    }

    /// Looks for `"choices":[]`, with spaces where JSON allows them. Within a string of JSON its quotes would be
    /// escaped, so that an answer about it is not taken for it.
    fn read_choices(&mut self, part: &[u8]) {
        if !self.is_data || self.has_no_choices {
            return;
        }
        for &byte in part {
            let at = usize::from(self.choices_at);
            self.choices_at = if NO_CHOICES[at] == byte {
                self.choices_at + 1
            } else if byte == b' ' && at >= NO_CHOICES_SPACED_FROM {
                self.choices_at
            } else {
                u8::from(byte == NO_CHOICES[0])
            };
            if usize::from(self.choices_at) == NO_CHOICES.len() {
                self.has_no_choices = true;
                return;
            }
        }
    }
}

fn has_empty_list(line: &[u8]) -> bool {
    memchr_iter(b']', line).any(|end| line[..end].trim_ascii_end().ends_with(b"["))
}

const NO_CHOICES: &[u8] = openai::NO_CONTENT.as_bytes();
/// After the key's closing quote.
const NO_CHOICES_SPACED_FROM: usize = 9;
/// A line beyond this is progress as it grows: an image in one event may take longer than any silence allowed.
const LINE_BYTES_LONG: u16 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    /// How many frames have content: whole, and byte by byte.
    fn seen(stream: &str) -> bool {
        let whole = Content::new().advance(stream.as_bytes());
        let mut torn = Content::new();
        let mut has_content = false;
        for byte in stream.as_bytes().chunks(1) {
            has_content |= torn.advance(byte);
        }
        assert_eq!(whole, has_content, "{stream:?}");
        whole
    }

    #[test]
    fn answers_are_content() {
        for stream in [
            "data: x\n",
            "data:x\r\n\r\n",
            "event: content_block_delta\ndata: {\"type\":\"content_block_delta\"}\n\n",
            "event: ping\ndata: {}\n\ndata: x\n\n",
            "event: ping\r\ndata: {}\r\n\r\ndata: x\r\n\r\n",
            "data: {\"choices\":[{\"delta\":{\"content\":\"\\\"choices\\\":[]\"}}]}\n\n",
            "data: \"\"choices\":[1]\n",
        ] {
            assert!(seen(stream), "{stream:?}");
        }
    }

    #[test]
    fn signs_of_life_are_not_content() {
        for stream in [
            "\n\r\n\r\r",
            ": keep-alive\n\n",
            "event: ping\ndata: {\"type\": \"ping\"}\n\n",
            "event: ping\r\ndata: {\"a\":1}\r\ndata: x\r\n\r\n",
            "event:ping\ndata:x\n\n",
            "data: {\"type\":\"ping\"}\n\n",
            "data: {\"id\":\"1\",\"choices\":[],\"usage\":null}\n\n",
            "data: {\"x\":\"\"choices\": [ ]}\n\n",
            "data: \ndata:\ndata\n\n",
            "id: 1\nretry: 5\nother: x\n\n",
            "data: not yet ended",
        ] {
            assert!(!seen(stream), "{stream:?}");
        }
    }

    #[test]
    fn a_long_line_is_content_as_it_grows() {
        let mut content = Content::new();
        assert!(!content.advance(format!("data: {}", "x".repeat(4000)).as_bytes()));
        assert!(content.advance("x".repeat(200).as_bytes()));
        assert!(content.advance(b"x"));
    }
}
