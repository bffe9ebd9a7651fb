//! An incremental reader of one JSON object that keeps two of its members: `stream` and `model`. Fed by `decode`.
//!
//! It holds one short word at a time and a depth, whatever the size of the document. What lies deeper than the topmost object
//! is only followed to its end, not checked: an engine that is sent broken JSON says so itself.

use memchr::memchr2;

use super::Finding;
use super::word::{Letter, Word};

/// The reader of one document.
#[derive(Debug)]
pub(super) struct Scan {
    place: Place,
    /// The member whose value is awaited or read.
    member: Member,
    word: Word,
    /// The last `stream` was neither a boolean nor `null`.
    is_odd: bool,
    finding: Finding,
}

/// Where in the document the next byte stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Before the topmost object, after so many bytes of a byte order mark. Goes to `FirstKey`.
    Start(u8),
    /// After the opening brace. Goes to `Key` or ends the document.
    FirstKey,
    /// After a comma. Goes to `KeyText`.
    Key,
    /// In a key. Goes to `Colon`.
    KeyText,
    /// After a key. Goes to `Value`.
    Colon,
    /// After the colon. Goes to `Kept`, `Skipped`, `Nested` or `Scalar`.
    Value,
    /// In the string that is the model. Goes to `Comma`.
    Kept,
    /// In a string that does not matter. Goes to `Comma`.
    Skipped(Escape),
    /// In so many arrays and objects within the topmost object, in a string of them or not. Goes to `Comma`.
    Nested(u32, Text),
    /// In a number, `true`, `false` or `null`. Goes to `Key`, to `Comma` or ends the document.
    Scalar,
    /// After a value. Goes to `Key` or ends the document.
    Comma,
    /// At the end, or where reading on makes no sense. Stays.
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Text {
    No,
    Yes(Escape),
}

/// Whether a backslash stands before the next byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Escape {
    No,
    Yes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Member {
    Stream,
    Model,
    Other,
}

impl Scan {
    pub(super) fn new() -> Self {
        Self {
            place: Place::Start(0),
            member: Member::Other,
            word: Word::default(),
            is_odd: false,
            finding: Finding::default(),
        }
    }

    pub(super) fn finding(&self) -> &Finding {
        &self.finding
    }

    /// Nothing can be known about the document.
    pub(super) fn give_up(&mut self) {
        self.finding = Finding { stream: None, model: None, is_over: true, is_unread: true };
        self.place = Place::Over;
    }

    /// The rest of the document will not be read; the model seen so far stays.
    pub(super) fn stop_short(&mut self) {
        let model = self.finding.model.take();
        self.give_up();
        self.finding.model = model;
    }

    /// Reads the document's next bytes.
    pub(super) fn push(&mut self, mut bytes: &[u8]) {
        while let Some((&byte, rest)) = bytes.split_first() {
            bytes = rest;
            match self.place {
                Place::Over => return,
                // Most bytes are in strings: skip to what may end one.
                Place::Skipped(escape) | Place::Nested(_, Text::Yes(escape)) => {
                    let escape = match (escape, byte) {
                        (Escape::No, b'"') => {
                            self.place = match self.place {
                                Place::Nested(depth, _) => Place::Nested(depth, Text::No),
                                _ => Place::Comma,
                            };
                            continue;
                        }
                        (Escape::No, b'\\') => Escape::Yes,
                        _ => {
                            bytes = &bytes[memchr2(b'"', b'\\', bytes).unwrap_or(bytes.len())..];
                            Escape::No
                        }
                    };
                    self.place = match self.place {
                        Place::Nested(depth, _) => Place::Nested(depth, Text::Yes(escape)),
                        _ => Place::Skipped(escape),
                    };
                }
                Place::Nested(depth, Text::No) => self.place = nested(depth, byte),
                Place::KeyText | Place::Kept => match self.word.push(byte) {
                    Letter::More => {}
                    Letter::End => self.end_text(),
                    Letter::Broken => return self.give_up(),
                },
                _ => self.structure(byte),
            }
        }
    }

    /// A byte of the topmost object that is in no string and no deeper value.
    fn structure(&mut self, byte: u8) {
        if matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
            match self.place {
                Place::Scalar => self.end_scalar(),
                Place::Start(1..) => self.give_up(),
                _ => {}
            }
            return;
        }
        self.place = match (self.place, byte) {
            (Place::Start(0 | MARK_LENGTH), b'{') => Place::FirstKey,
            (Place::Start(at), _) if MARK.get(usize::from(at)) == Some(&byte) => Place::Start(at + 1),
            (Place::FirstKey | Place::Key, b'"') => {
                self.word.clear(KEY_MAX);
                Place::KeyText
            }
            (Place::Colon, b':') => Place::Value,
            (Place::Value, b'"') if self.member == Member::Model => {
                self.word.clear(MODEL_MAX);
                Place::Kept
            }
            (Place::Value, b'"') => self.begin(Place::Skipped(Escape::No)),
            (Place::Value, b'{' | b'[') => self.begin(Place::Nested(1, Text::No)),
            (Place::Value, b'-' | b'+' | b'.' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z') => {
                self.word.clear(SCALAR_MAX);
                self.word.keep(byte);
                Place::Scalar
            }
            (Place::Scalar, b',' | b'}') => {
                self.end_scalar();
                return self.structure(byte);
            }
            (Place::Scalar, _) => {
                self.word.keep(byte);
                Place::Scalar
            }
            (Place::Comma, b',') => Place::Key,
            (Place::Comma | Place::FirstKey, b'}') => {
                self.finding.is_over = true;
                if self.is_odd {
                    self.stop_short();
                }
                Place::Over
            }
            _ => return self.give_up(),
        };
    }

    /// A value begins that cannot be a `stream` or a `model`.
    fn begin(&mut self, place: Place) -> Place {
        self.is_odd |= self.member == Member::Stream;
        place
    }

    /// A key, or the string that is the model, has ended.
    fn end_text(&mut self) {
        if self.place == Place::Kept {
            self.finding.model = self.word.text().map(str::to_owned);
            self.place = Place::Comma;
            return;
        }
        self.place = Place::Colon;
        self.member = match self.word.text() {
            Some("stream") => {
                (self.finding.stream, self.is_odd) = (None, false);
                Member::Stream
            }
            Some("model") => {
                self.finding.model = None;
                Member::Model
            }
            _ => Member::Other,
        };
    }

    fn end_scalar(&mut self) {
        self.place = Place::Comma;
        if self.member == Member::Stream {
            match self.word.text() {
                Some("true") => self.finding.stream = Some(true),
                Some("false") => self.finding.stream = Some(false),
                Some("null") => {}
                _ => self.is_odd = true,
            }
        }
    }
}

fn nested(depth: u32, byte: u8) -> Place {
    match byte {
        b'"' => Place::Nested(depth, Text::Yes(Escape::No)),
        // The limit of the look is far below what would overflow.
        b'{' | b'[' => Place::Nested(depth.saturating_add(1), Text::No),
        b'}' | b']' if depth == 1 => Place::Comma,
        b'}' | b']' => Place::Nested(depth - 1, Text::No),
        _ => Place::Nested(depth, Text::No),
    }
}

const MARK: &[u8; 3] = b"\xEF\xBB\xBF";
const MARK_LENGTH: u8 = 3;
/// The longest name of a model that is kept: paths of weights are names too, to some engines.
pub(super) const MODEL_MAX: usize = 1024;
/// `stream`, the longer one of the two keys.
const KEY_MAX: usize = 6;
/// `false`, the longest scalar that matters.
const SCALAR_MAX: usize = 5;
