//! Where in an event stream are we? The byte state machine that `inject` asks before a heartbeat is written.
//!
//! It reads every byte of the stream, in frames cut anywhere, and knows lines by the rules of the WHATWG HTML
//! standard, section 9.2.6: a line ends with CR, LF or CRLF, an empty one ends an event, one that begins with a colon
//! is a comment, and one byte order mark may lead. It allocates nothing and never fails: every input is some stream.

use memchr::memchr2;

use crate::head::{Head, Mark};

/// The place reached in one event stream.
#[derive(Debug)]
pub(crate) struct Boundary {
    line: Line,
    head: Head,
    /// A line that is neither blank nor a comment has come since the last blank one.
    is_open: bool,
    /// Some line has ended with CRLF.
    is_crlf: bool,
    has_id: bool,
    has_terminator: bool,
}

/// The place within the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    /// Nothing came yet, or so many bytes of a byte order mark. Leaves to `Start`, or to `Inside` if it is none.
    Mark0,
    Mark1,
    Mark2,
    /// At the start of a line. Leaves to `Inside`, or by a blank line to itself or to `AfterReturn`.
    Start,
    /// At the start of a line, after a CR: an LF that follows belongs to the line that has ended.
    AfterReturn,
    /// The same, but the LF has been written by us: the stream's own will be left out.
    Completed,
    /// After some byte of a line. Leaves with the line's end, to `Start` or `AfterReturn`.
    Inside,
}

/// What may be written at the place reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gap {
    /// Nothing: inside a line.
    None,
    /// An LF, which completes the CR before it.
    LineFeed,
    /// Comments only: between the lines of one event.
    Comment,
    /// The same, in a stream whose lines end with CRLF.
    CommentCrlf,
    /// Anything neutral that has no blank line: between events, after an `id:`.
    Quiet,
    /// Comments only: between events, after the last one of a known API.
    Terminated,
    /// Anything neutral: between events.
    Free,
}

impl Boundary {
    pub(crate) const fn new() -> Self {
        Self {
            line: Line::Mark0,
            head: Head::START,
            is_open: false,
            is_crlf: false,
            has_id: false,
            has_terminator: false,
        }
    }

    /// Reads the stream's next bytes. True if any of them belongs to a line that is neither blank nor a comment.
    #[inline]
    pub(crate) fn advance(&mut self, mut bytes: &[u8]) -> bool {
        if matches!(self.line, Line::Mark0 | Line::Mark1 | Line::Mark2) {
            bytes = self.skip_mark(bytes);
        }
        if self.line == Line::Start
            && bytes.first() == Some(&b'd')
            && let Some(line) = lone_line(bytes)
        {
            if !Head::is_plain(line) {
                self.head = Head::START;
                self.read_head(line);
            }
            self.is_open = false;
            return true;
        }
        let mut has_fields = false;
        while let Some(&first) = bytes.first() {
            if self.line != Line::Inside {
                if first == b'\n' || first == b'\r' {
                    if first == b'\r' {
                        self.is_open = false;
                        self.line = Line::AfterReturn;
                    } else {
                        let is_crlf = self.line == Line::AfterReturn;
                        self.is_open &= is_crlf;
                        self.is_crlf |= is_crlf;
                        self.line = Line::Start;
                    }
                    bytes = &bytes[1..];
                    continue;
                }
                let is_comment = first == b':';
                self.is_open |= !is_comment;
                self.head = if is_comment { Head::COMMENT } else { Head::START };
            }
            has_fields |= self.head != Head::COMMENT;
            let Some(end) = memchr2(b'\n', b'\r', bytes) else {
                self.read_head(bytes);
                self.line = Line::Inside;
                break;
            };
            self.read_head(&bytes[..end]);
            self.has_terminator |= self.head.mark() == Mark::TerminatorAtEnd;
            self.line = if bytes[end] == b'\n' { Line::Start } else { Line::AfterReturn };
            bytes = &bytes[end + 1..];
        }
        has_fields
    }

    /// True for the usual frame of a token, between events: one `data:` line that no word begins like, and the blank one.
    #[inline]
    pub(crate) fn is_whole_token(&self, bytes: &[u8]) -> bool {
        self.line == Line::Start && !self.is_open && Head::is_plain(bytes) && lone_line(bytes).is_some()
    }

    /// True if the stream's next byte, an LF, is to be left out: ours has taken its place. Tells it once.
    #[inline]
    pub(crate) fn swallows(&mut self, bytes: &[u8]) -> bool {
        if self.line != Line::Completed || bytes.is_empty() {
            return false;
        }
        self.line = Line::Start;
        let is_crlf = bytes[0] == b'\n';
        self.is_crlf |= is_crlf;
        is_crlf
    }

    /// What may be written here. The caller writes it: an LF after a CR is taken as written.
    pub(crate) fn gap(&mut self) -> Gap {
        match self.line {
            Line::Mark1 | Line::Mark2 | Line::Inside => return Gap::None,
            Line::AfterReturn => {
                self.line = Line::Completed;
                return Gap::LineFeed;
            }
            // A byte order mark is one at the very start only.
            Line::Mark0 => self.line = Line::Start,
            Line::Start | Line::Completed => {}
        }
        if self.is_open {
            if self.is_crlf { Gap::CommentCrlf } else { Gap::Comment }
        } else if self.has_terminator {
            Gap::Terminated
        } else if self.has_id {
            Gap::Quiet
        } else {
            Gap::Free
        }
    }

    /// True between events.
    pub(crate) fn is_between_events(&self) -> bool {
        !self.is_open && !matches!(self.line, Line::Mark1 | Line::Mark2 | Line::Inside)
    }

    /// True once the last event of a known API has begun.
    pub(crate) const fn has_terminator(&self) -> bool {
        self.has_terminator
    }

    #[inline]
    fn read_head(&mut self, mut part: &[u8]) {
        if self.head == Head::START {
            (self.head, part) = Head::skip_lead(part);
        }
        for &byte in part {
            if self.head.is_settled() {
                return;
            }
            self.head = self.head.step(byte);
            match self.head.mark() {
                Mark::Id => self.has_id = true,
                Mark::Terminator => self.has_terminator = true,
                _ => continue,
            }
            self.head = Head::OTHER;
        }
    }

    /// Reads the byte order mark at the very start, whole or in part, and returns what follows it.
    #[cold]
    fn skip_mark<'a>(&mut self, mut bytes: &'a [u8]) -> &'a [u8] {
        while let Some(&first) = bytes.first() {
            self.line = match (self.line, first) {
                (Line::Mark0, 0xEF) => Line::Mark1,
                (Line::Mark1, 0xBB) => Line::Mark2,
                (Line::Mark2, 0xBF) => {
                    self.line = Line::Start;
                    return &bytes[1..];
                }
                (Line::Mark0, _) => {
                    self.line = Line::Start;
                    return bytes;
                }
                _ => {
                    self.head = Head::OTHER;
                    self.is_open = true;
                    self.line = Line::Inside;
                    return bytes;
                }
            };
            bytes = &bytes[1..];
        }
        bytes
    }
}

/// The one line of a frame that is an event of one line, if it is not too short.
///
/// Told without a search: of nothing but bytes above CR and LF, the least is above them too. This takes a fourth of the
/// instructions of finding the two line ends.
#[inline]
fn lone_line(frame: &[u8]) -> Option<&[u8]> {
    let line = frame.strip_suffix(b"\n\n")?;
    let mut least = *line.last_chunk::<BLOCK>()?; // overlaps the blocks: none of the line is left over
    for block in line.as_chunks::<BLOCK>().0 {
        for (least, &byte) in least.iter_mut().zip(block) {
            *least = byte.min(*least);
        }
    }
    let low = least.iter().fold(0, |low, &byte| low | u8::from(byte <= b'\r'));
    (low == 0).then_some(line)
}

/// One vector register of every machine.
const BLOCK: usize = 16;

#[cfg(test)]
mod tests;
