//! The NDJSON decoder: one event a line. Pushed by `load`, one per stream.

use memchr::memchr;

use super::{Arrival, Bound, DecodeError, DecodedEvent, EVENT_BYTES_MAX, Neutral, UNNAMED, kept};

/// An incremental decoder for NDJSON and JSON lines: one event a line, blank lines ignored.
///
/// The lines are not parsed as JSON. Whitespace around a line is no part of it, so a heartbeat of one space before a
/// line changes nothing.
#[derive(Debug)]
pub struct NdjsonDecoder {
    line: Vec<u8>,
    bound: Bound,
}

impl Default for NdjsonDecoder {
    fn default() -> Self {
        Self::new()
    }
}

impl NdjsonDecoder {
    /// Creates a decoder that accepts lines of up to [`EVENT_BYTES_MAX`] bytes.
    pub fn new() -> Self {
        Self::with_bytes_max(EVENT_BYTES_MAX)
    }

    /// Creates a decoder that accepts lines of up to `bytes_max` bytes.
    pub fn with_bytes_max(bytes_max: usize) -> Self {
        Self { line: Vec::new(), bound: Bound::new(bytes_max) }
    }

    /// Takes the next bytes of the stream and hands every line they complete to `sink`, in order.
    ///
    /// # Errors
    ///
    /// When a line is longer than the bound; lines before it have been handed out.
    pub fn push(&mut self, bytes: &[u8], mut sink: impl FnMut(DecodedEvent<'_>)) -> Result<Arrival, DecodeError> {
        let mut arrival = Arrival::default();
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.line.is_empty() {
                let blank = rest.iter().take_while(|byte| is_blank(**byte)).count();
                arrival.count(blank, Neutral::Yes);
                rest = &rest[blank..];
            }
            let Some(end) = memchr(b'\n', rest) else {
                arrival.count(rest.len(), Neutral::No);
                self.keep(rest)?;
                break;
            };
            arrival.count(end + 1, Neutral::No);
            arrival.events += 1;
            if self.line.is_empty() {
                self.bound.allow(end)?;
                sink(line_event(&rest[..end]));
            } else {
                self.keep(&rest[..end])?;
                sink(line_event(&self.line));
                self.line.clear();
                self.line = kept(std::mem::take(&mut self.line));
            }
            rest = &rest[end + 1..];
        }
        self.bound.check()?;
        Ok(arrival)
    }

    /// Hands out a last line that has no line feed; called once the stream has ended cleanly.
    pub fn finish(&mut self, mut sink: impl FnMut(DecodedEvent<'_>)) {
        if !self.line.is_empty() {
            sink(line_event(&self.line));
            self.line = Vec::new();
        }
    }

    fn keep(&mut self, part: &[u8]) -> Result<(), DecodeError> {
        self.bound.allow(self.line.len() + part.len())?;
        self.line.extend_from_slice(part);
        Ok(())
    }
}

fn line_event(line: &[u8]) -> DecodedEvent<'_> {
    DecodedEvent { name: UNNAMED, data: line.trim_ascii_end(), id: b"", has_id: false }
}

/// JSON's own whitespace; a form feed is not among it.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}
