//! Decoders for event streams and NDJSON: incremental, bounded, indifferent to how the bytes are cut.
//!
//! `load` and `demo` read what a server sent through them. [`EventDecoder`] follows the section "Interpreting an
//! event stream" of the WHATWG HTML standard, [`NdjsonDecoder`] takes one JSON text a line. Both say of every
//! [`Arrival`] how many of its bytes belong to an event and how many are neutral, which is what a heartbeat is made of.

mod event_stream;
mod ndjson;

use std::borrow::Cow;
use std::fmt;

pub use event_stream::EventDecoder;
pub use ndjson::NdjsonDecoder;

/// One decoded event, borrowed from the decoder until the next byte is pushed.
///
/// The fields are bytes as they were sent; [`DecodedEvent::data_text`] decodes them the way a browser does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DecodedEvent<'a> {
    /// The event's type, `message` when the stream named none; always `message` for NDJSON.
    pub name: &'a [u8],
    /// The event's data: its `data` lines joined by line feeds, or the NDJSON line without the whitespace around it.
    pub data: &'a [u8],
    /// The last event id the stream has sent so far, empty when there was none.
    pub id: &'a [u8],
    /// Whether the event's own block sent the id; otherwise it is an earlier one's.
    pub has_id: bool,
}

impl<'a> DecodedEvent<'a> {
    /// Returns the data as text, with U+FFFD in place of every malformed sequence.
    pub fn data_text(&self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.data)
    }
}

/// What one push consisted of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Arrival {
    /// Events completed by these bytes.
    pub events: u32,
    /// Bytes that belong to an event, or to a block of fields that will not become one.
    pub content_bytes: usize,
    /// Bytes that belong to none: comments, and blank lines beyond the one that ends an event; for NDJSON the
    /// whitespace before a line and blank lines.
    pub neutral_bytes: usize,
}

impl Arrival {
    /// Tells whether these bytes were a heartbeat: something arrived, and nothing of it was content.
    pub fn is_heartbeat(&self) -> bool {
        self.neutral_bytes > 0 && self.content_bytes == 0
    }

    /// An arrival of content in a format that has no decoder here.
    pub fn content(bytes: usize) -> Self {
        Self { content_bytes: bytes, ..Self::default() }
    }

    /// An arrival of neutral bytes in a format that has no decoder here.
    pub fn neutral(bytes: usize) -> Self {
        Self { neutral_bytes: bytes, ..Self::default() }
    }

    fn count(&mut self, bytes: usize, neutral: Neutral) {
        match neutral {
            Neutral::Yes => self.neutral_bytes += bytes,
            Neutral::No => self.content_bytes += bytes,
        }
    }
}

/// Why a decoder gave up: a line or an event was longer than its bound.
///
/// The decoder stays failed: every later push returns the same error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeError {
    bytes_max: usize,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an event is longer than {} bytes; allow more, or look at what the server sends", self.bytes_max)
    }
}

impl std::error::Error for DecodeError {}

/// Whether bytes belong to an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Neutral {
    Yes,
    No,
}

/// What both decoders need to refuse what is too long, once and for good.
#[derive(Debug)]
struct Bound {
    bytes_max: usize,
    failed: bool,
}

impl Bound {
    fn new(bytes_max: usize) -> Self {
        Self { bytes_max, failed: false }
    }

    /// Allows a buffer to hold `bytes`, unless that is too many or something was too long before.
    fn allow(&mut self, bytes: usize) -> Result<(), DecodeError> {
        self.failed |= bytes > self.bytes_max;
        self.check()
    }

    fn check(&self) -> Result<(), DecodeError> {
        if self.failed {
            return Err(DecodeError { bytes_max: self.bytes_max });
        }
        Ok(())
    }
}

/// Keeps a small buffer for the next event and gives a large one back, so that one long event does not stay in memory.
fn kept(buffer: Vec<u8>) -> Vec<u8> {
    if buffer.capacity() > KEPT_BYTES_MAX { Vec::new() } else { buffer }
}

/// The longest line or event accepted by default, in bytes: above any model's largest chunk seen, below what hurts.
pub const EVENT_BYTES_MAX: usize = 1 << 20;

/// The largest buffer kept between events: a token chunk is 200 to 400 bytes, and each of 10,000 streams keeps two.
const KEPT_BYTES_MAX: usize = 1024;

/// The type of an event whose stream names none.
const UNNAMED: &[u8] = b"message";
