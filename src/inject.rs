//! What may be written now? One stream's whole byte state: pure, without clock, allocation or I/O.
//!
//! `body` shows it every frame that goes by ([`Injector::pass`]) and asks it for every heartbeat that is due
//! ([`Injector::beat`]). It keeps invariant I1: no heartbeat changes what a client decodes.

use bytes::{Buf, Bytes, BytesMut};

use crate::boundary::{Boundary, Gap};
use crate::content::{Content, Watch};
use crate::format::Format;
use crate::heartbeat::{COMMENT, COMMENT_CRLF, Form};
use crate::ndjson::Lines;

/// The byte state of one stream.
#[derive(Debug)]
pub(crate) struct Injector {
    lead: Lead,
    state: State,
}

/// What came first?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lead {
    /// Nothing yet. Leaves to `Beaten` by a heartbeat, to `Settled` by a byte of the stream.
    Fresh,
    /// A heartbeat; of the stream so many bytes of a byte order mark, held back. A mark is one at the very start
    /// only, so that it is dropped; leaves to `Settled` when it is known whether it was one.
    Beaten(u8),
    /// The stream's first bytes are known. Stays.
    Settled,
}

#[derive(Debug)]
enum State {
    EventStream(Boundary, Content),
    Ndjson(Lines),
    Json(Document),
}

/// How far a JSON document has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Document {
    /// Nothing but whitespace yet.
    Untouched,
    Begun,
}

/// Bytes of the stream as they may go on.
#[derive(Debug)]
pub(crate) struct Passed {
    /// May be empty, where all was left out or is held back.
    pub(crate) data: Bytes,
    /// True if there was content in it, by the [`Watch`] asked for.
    pub(crate) content: bool,
}

/// The answer to a heartbeat that is due.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Beat {
    /// Write these bytes. They count as written.
    Send(Bytes),
    /// Nothing can be written here, inside a line or, for some forms, an event: ask again when more has passed.
    Hold,
    /// Nothing can be written to this stream any more.
    Never,
}

/// Where a stream stands that is to be ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndPlace {
    /// An error event or line may be written.
    AtBoundary,
    /// Inside an event or a line: nothing may be added to it.
    InsideEvent,
    /// JSON that has not begun: an error document may be written.
    JsonUntouched,
    /// JSON that has begun.
    JsonBegun,
    /// The stream's last event has gone by.
    Terminated,
}

impl Injector {
    /// The state of a stream that has not begun.
    pub(crate) const fn new(format: Format) -> Self {
        let state = match format {
            Format::EventStream => State::EventStream(Boundary::new(), Content::new()),
            Format::Ndjson => State::Ndjson(Lines::new()),
            Format::Json => State::Json(Document::Untouched),
        };
        Self { lead: Lead::Fresh, state }
    }

    /// True for the usual frame of a token between events: it is content, changes nothing and may go on as it is.
    #[inline]
    pub(crate) fn is_whole_token(&self, data: &[u8], watch: Watch) -> bool {
        match &self.state {
            State::EventStream(boundary, content) => {
                self.lead == Lead::Settled
                    && boundary.is_whole_token(data)
                    && (watch == Watch::Bytes || content.is_whole_token(data))
            }
            State::Ndjson(_) | State::Json(_) => false,
        }
    }

    /// Takes the stream's next bytes and gives those that may go on.
    #[inline]
    pub(crate) fn pass(&mut self, mut data: Bytes, watch: Watch) -> Passed {
        if self.lead != Lead::Settled {
            data = self.pass_lead(data);
        }
        let content = match &mut self.state {
            State::EventStream(boundary, content) => {
                // Content is read from the stream as it came: it knows nothing of the line feed that is ours.
                let has_content = watch == Watch::Content && content.advance(&data);
                if boundary.swallows(&data) {
                    data.advance(1);
                }
                let has_fields = boundary.advance(&data);
                has_content || (has_fields && watch == Watch::Bytes)
            }
            State::Ndjson(lines) => {
                data.advance(lines.swallows(&data));
                lines.advance(&data)
            }
            State::Json(document) => {
                let has_json = !data.iter().all(|&byte| is_json_space(byte));
                if has_json {
                    *document = Document::Begun;
                }
                has_json
            }
        };
        Passed { data, content }
    }

    /// Decides on a heartbeat of this form.
    pub(crate) fn beat(&mut self, form: &Form) -> Beat {
        if form.is_off() {
            return Beat::Never;
        }
        let bytes = match &mut self.state {
            State::EventStream(boundary, _) => match boundary.gap() {
                Gap::None => return Beat::Hold,
                Gap::LineFeed => Bytes::from_static(b"\n"),
                Gap::Comment | Gap::CommentCrlf | Gap::Terminated if form.is_between_only() => return Beat::Hold,
                Gap::Comment | Gap::Terminated => Bytes::from_static(COMMENT),
                Gap::CommentCrlf => Bytes::from_static(COMMENT_CRLF),
                Gap::Quiet if form.is_quiet() => form.bytes(),
                Gap::Quiet => Bytes::from_static(COMMENT),
                Gap::Free => form.bytes(),
            },
            State::Ndjson(lines) => {
                if !lines.take_space() {
                    return if lines.is_done() { Beat::Never } else { Beat::Hold };
                }
                Bytes::from_static(b" ")
            }
            State::Json(Document::Untouched) => Bytes::from_static(b"\n"),
            State::Json(Document::Begun) => return Beat::Never,
        };
        if self.lead == Lead::Fresh {
            self.lead = Lead::Beaten(0);
        }
        Beat::Send(bytes)
    }

    /// Where the stream stands, should it be ended now. Bytes held back are not on the wire and do not count.
    pub(crate) fn end_place(&self) -> EndPlace {
        let (is_between, is_last) = match &self.state {
            State::Json(Document::Untouched) => return EndPlace::JsonUntouched,
            State::Json(Document::Begun) => return EndPlace::JsonBegun,
            State::EventStream(boundary, _) => (boundary.is_between_events(), boundary.has_terminator()),
            State::Ndjson(lines) => (lines.is_between_lines(), lines.is_done()),
        };
        match (is_between, is_last) {
            (false, _) => EndPlace::InsideEvent,
            (true, true) => EndPlace::Terminated,
            (true, false) => EndPlace::AtBoundary,
        }
    }

    /// Bytes held back that must go out before the body ends by itself.
    pub(crate) fn flush(&mut self) -> Option<Bytes> {
        match self.lead {
            Lead::Beaten(held) if held > 0 => {
                self.lead = Lead::Settled;
                Some(Bytes::from_static(&BYTE_ORDER_MARK[..usize::from(held)]))
            }
            _ => None,
        }
    }

    /// Drops a byte order mark that comes after a heartbeat, and holds back what may become one.
    #[cold]
    fn pass_lead(&mut self, mut data: Bytes) -> Bytes {
        if data.is_empty() {
            return data;
        }
        let Lead::Beaten(held) = self.lead else {
            self.lead = Lead::Settled;
            return data;
        };
        let awaited = &BYTE_ORDER_MARK[usize::from(held)..];
        let same = awaited.iter().zip(&data).take_while(|(awaited, byte)| awaited == byte).count();
        if same == awaited.len() {
            self.lead = Lead::Settled;
            data.advance(same);
            return data;
        }
        if same == data.len() {
            // At most 2: the whole mark is 3 bytes long, and was found above.
            self.lead = Lead::Beaten(held + same as u8);
            return Bytes::new();
        }
        self.lead = Lead::Settled;
        if held == 0 {
            return data;
        }
        // The one copy of this machine: not a mark after all, and torn.
        let mut whole = BytesMut::with_capacity(usize::from(held) + data.len());
        whole.extend_from_slice(&BYTE_ORDER_MARK[..usize::from(held)]);
        whole.extend_from_slice(&data);
        whole.freeze()
    }
}

const fn is_json_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

const BYTE_ORDER_MARK: &[u8; 3] = b"\xEF\xBB\xBF";

#[cfg(test)]
mod tests;
