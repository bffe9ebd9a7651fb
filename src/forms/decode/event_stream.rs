//! The event stream decoder: field lines, comments and blank lines, cut anywhere. Pushed by `load`, one per stream.

use memchr::{memchr, memchr2};

use super::{Arrival, Bound, DecodeError, DecodedEvent, EVENT_BYTES_MAX, Neutral, UNNAMED, kept};

/// An incremental decoder for `text/event-stream`.
///
/// ```
/// # use heartline::decode::EventDecoder;
/// let mut decoder = EventDecoder::new();
/// let mut seen = Vec::new();
/// for part in [&b"data: he"[..], b"llo\n", b"\n", b"\n"] {
///     decoder.push(part, |event| seen.push(event.data.to_vec()))?;
/// }
/// assert_eq!(seen, [b"hello"]);
/// # Ok::<(), heartline::decode::DecodeError>(())
/// ```
#[derive(Debug)]
pub struct EventDecoder {
    /// The beginning of a field line whose end has not arrived; comments are never kept.
    line: Vec<u8>,
    name: Vec<u8>,
    data: Vec<u8>,
    id: Vec<u8>,
    bound: Bound,
    place: Place,
    /// The bytes of a byte order mark matched so far; [`BOM_DONE`] once it can no longer come.
    bom: u8,
    /// The block has a `data` field, so the next blank line dispatches it.
    dispatchable: bool,
    /// A field line came since the last blank line.
    block_open: bool,
    /// An `id` field came since then.
    block_id: bool,
    /// The last byte was the CR of a line of this kind; a line feed right after it belongs to it.
    after_cr: Option<Neutral>,
}

/// Where between two bytes the decoder stands; every line end leads back to `LineStart`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    LineStart,
    InField,
    InComment,
}

impl Default for EventDecoder {
    fn default() -> Self {
        Self::new()
    }
}

impl EventDecoder {
    /// Creates a decoder that accepts events of up to [`EVENT_BYTES_MAX`] bytes.
    pub fn new() -> Self {
        Self::with_bytes_max(EVENT_BYTES_MAX)
    }

    /// Creates a decoder that accepts lines, and the data of one event, of up to `bytes_max` bytes each.
    pub fn with_bytes_max(bytes_max: usize) -> Self {
        Self {
            line: Vec::new(),
            name: Vec::new(),
            data: Vec::new(),
            id: Vec::new(),
            bound: Bound::new(bytes_max),
            place: Place::LineStart,
            bom: 0,
            dispatchable: false,
            block_open: false,
            block_id: false,
            after_cr: None,
        }
    }

    /// Takes the next bytes of the stream and hands every event they complete to `sink`, in order.
    ///
    /// An event that the stream's end leaves unfinished is never handed out, as the standard asks.
    ///
    /// # Errors
    ///
    /// When a line or an event is longer than the bound; events before it have been handed out.
    pub fn push(&mut self, bytes: &[u8], mut sink: impl FnMut(DecodedEvent<'_>)) -> Result<Arrival, DecodeError> {
        let mut arrival = Arrival::default();
        let mut rest = self.skip_bom(bytes, &mut arrival)?;
        while let Some(&first) = rest.first() {
            if let Some(neutral) = self.after_cr.take()
                && first == b'\n'
            {
                arrival.count(1, neutral);
                rest = &rest[1..];
                continue;
            }
            let Some(end) = memchr2(b'\n', b'\r', rest) else {
                self.keep(rest, &mut arrival)?;
                break;
            };
            let neutral = self.end_line(&rest[..end], &mut arrival, &mut sink)?;
            arrival.count(end + 1, neutral);
            if rest[end] == b'\r' {
                self.after_cr = Some(neutral);
            }
            rest = &rest[end + 1..];
        }
        self.bound.check()?;
        Ok(arrival)
    }

    /// Drops a byte order mark at the very beginning, also one that arrives in pieces.
    fn skip_bom<'b>(&mut self, bytes: &'b [u8], arrival: &mut Arrival) -> Result<&'b [u8], DecodeError> {
        let mut rest = bytes;
        while self.bom != BOM_DONE {
            let Some(&first) = rest.first() else { break };
            let matched = usize::from(self.bom);
            if first == BOM[matched] {
                rest = &rest[1..];
                self.bom += 1;
                if usize::from(self.bom) == BOM.len() {
                    self.bom = BOM_DONE;
                    arrival.neutral_bytes += BOM.len();
                }
            } else {
                self.bom = BOM_DONE;
                self.keep(&BOM[..matched], arrival)?;
            }
        }
        Ok(rest)
    }

    /// Remembers the beginning of a line.
    fn keep(&mut self, part: &[u8], arrival: &mut Arrival) -> Result<(), DecodeError> {
        let Some(&first) = part.first() else {
            return Ok(());
        };
        if self.place == Place::LineStart {
            self.place = if first == b':' { Place::InComment } else { Place::InField };
        }
        if self.place == Place::InComment {
            arrival.count(part.len(), Neutral::Yes);
            return Ok(());
        }
        arrival.count(part.len(), Neutral::No);
        self.bound.allow(self.line.len() + part.len())?;
        self.line.extend_from_slice(part);
        Ok(())
    }

    /// Acts on a line whose end has come; `tail` is the part of it that was not kept.
    fn end_line(
        &mut self,
        tail: &[u8],
        arrival: &mut Arrival,
        sink: &mut impl FnMut(DecodedEvent<'_>),
    ) -> Result<Neutral, DecodeError> {
        match std::mem::replace(&mut self.place, Place::LineStart) {
            Place::InComment => Ok(Neutral::Yes),
            Place::LineStart => match tail.first() {
                None => Ok(self.end_block(arrival, sink)),
                Some(b':') => Ok(Neutral::Yes),
                Some(_) => self.field(tail),
            },
            Place::InField => {
                let mut line = std::mem::take(&mut self.line);
                self.bound.allow(line.len() + tail.len())?;
                line.extend_from_slice(tail);
                let neutral = self.field(&line);
                line.clear();
                self.line = kept(line);
                neutral
            }
        }
    }

    /// Takes one field line.
    fn field(&mut self, line: &[u8]) -> Result<Neutral, DecodeError> {
        self.block_open = true;
        let (field, value) = match memchr(b':', line) {
            None => (line, &b""[..]),
            Some(colon) => {
                let value = &line[colon + 1..];
                (&line[..colon], value.strip_prefix(b" ").unwrap_or(value))
            }
        };
        match field {
            b"data" => {
                self.bound.allow(self.data.len() + value.len())?;
                if self.dispatchable {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
                self.dispatchable = true;
            }
            b"event" => {
                self.bound.allow(value.len())?;
                self.name.clear();
                self.name.extend_from_slice(value);
            }
            b"id" if memchr(0, value).is_none() => {
                self.bound.allow(value.len())?;
                self.block_id = true;
                self.id.clear();
                self.id.extend_from_slice(value);
            }
            // `retry` only sets the time to reconnect; anything else is ignored.
            _ => {}
        }
        Ok(Neutral::No)
    }

    /// Acts on a blank line: dispatches the block, if it has data.
    fn end_block(&mut self, arrival: &mut Arrival, sink: &mut impl FnMut(DecodedEvent<'_>)) -> Neutral {
        if !self.block_open {
            return Neutral::Yes;
        }
        self.block_open = false;
        let has_id = std::mem::take(&mut self.block_id);
        if std::mem::take(&mut self.dispatchable) {
            arrival.events += 1;
            sink(DecodedEvent {
                name: if self.name.is_empty() { UNNAMED } else { &self.name },
                data: &self.data,
                id: &self.id,
                has_id,
            });
            self.data.clear();
            self.data = kept(std::mem::take(&mut self.data));
        }
        self.name.clear();
        Neutral::No
    }
}

const BOM: [u8; 3] = [0xEF, 0xBB, 0xBF];

/// In `EventDecoder::bom`: the beginning of the stream is over.
const BOM_DONE: u8 = u8::MAX;
