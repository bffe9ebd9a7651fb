//! One string or scalar of a document, read byte by byte, without its escapes and up to a bound. Used by `scan`.

/// A string or scalar that is being read, without its escapes, up to a bound.
#[derive(Debug, Default)]
pub(super) struct Word {
    bytes: Vec<u8>,
    max: usize,
    /// Longer than the bound, or with half a surrogate pair: equal to no text.
    is_spoilt: bool,
    step: Step,
    /// The first half of a surrogate pair whose second is awaited.
    high: Option<u16>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Step {
    #[default]
    Plain,
    Backslash,
    /// After so many of four hexadecimal digits, with their value.
    Digits(u8, u16),
}

/// What a byte of a string was.
pub(super) enum Letter {
    /// One of its letters, or a part of one.
    More,
    /// The quote at its end.
    End,
    /// Nothing that may stand in a string.
    Broken,
}

impl Word {
    /// Begins a text of `max` bytes at most.
    pub(super) fn clear(&mut self, max: usize) {
        self.bytes.clear();
        (self.max, self.is_spoilt, self.step, self.high) = (max, false, Step::Plain, None);
    }

    /// Keeps one byte, if it fits.
    pub(super) fn keep(&mut self, byte: u8) {
        if self.bytes.len() < self.max {
            self.bytes.push(byte);
        } else {
            self.is_spoilt = true;
        }
    }

    /// The text; `None` when it is longer than the bound or no text at all.
    pub(super) fn text(&self) -> Option<&str> {
        if self.is_spoilt { None } else { std::str::from_utf8(&self.bytes).ok() }
    }

    /// The next byte of a string.
    pub(super) fn push(&mut self, byte: u8) -> Letter {
        match (self.step, byte) {
            (Step::Plain, b'\\') => self.step = Step::Backslash,
            (Step::Plain, b'"') => {
                self.is_spoilt |= self.high.is_some();
                return Letter::End;
            }
            (Step::Plain, 0..0x20) => return Letter::Broken,
            (Step::Plain, _) => self.keep_letter(byte),
            (Step::Backslash, b'u') => self.step = Step::Digits(0, 0),
            (Step::Backslash, _) => {
                let Some(&(_, meant)) = ESCAPES.iter().find(|(escape, _)| *escape == byte) else {
                    return Letter::Broken;
                };
                self.step = Step::Plain;
                self.keep_letter(meant);
            }
            (Step::Digits(count, value), _) => {
                let Some(digit) = char::from(byte).to_digit(16) else { return Letter::Broken };
                // A digit is below 16: it fits, and the three before it leave room.
                let value = value << 4 | digit as u16;
                if count < 3 {
                    self.step = Step::Digits(count + 1, value);
                } else {
                    self.step = Step::Plain;
                    self.keep_unit(value);
                }
            }
        }
        Letter::More
    }

    fn keep_letter(&mut self, byte: u8) {
        self.is_spoilt |= self.high.take().is_some();
        self.keep(byte);
    }

    /// Keeps one UTF-16 unit, as `\u` gives them.
    fn keep_unit(&mut self, unit: u16) {
        let character = match (self.high.take(), unit) {
            (None, 0xD800..0xDC00) => {
                self.high = Some(unit);
                return;
            }
            (Some(high), 0xDC00..0xE000) => {
                char::from_u32(0x1_0000 + ((u32::from(high) - 0xD800) << 10) + (u32::from(unit) - 0xDC00))
            }
            (Some(_), _) => None,
            (None, _) => char::from_u32(u32::from(unit)),
        };
        let Some(character) = character else {
            self.is_spoilt = true;
            return;
        };
        let mut buffer = [0; 4];
        for &byte in character.encode_utf8(&mut buffer).as_bytes() {
            self.keep(byte);
        }
    }
}

/// The escapes of one letter, and what they mean.
const ESCAPES: [(u8, u8); 8] = [
    (b'"', b'"'),
    (b'\\', b'\\'),
    (b'/', b'/'),
    (b'b', 0x08),
    (b'f', 0x0C),
    (b'n', b'\n'),
    (b'r', b'\r'),
    (b't', b'\t'),
];
