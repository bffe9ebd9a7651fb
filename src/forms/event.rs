//! One event of an event stream, built so that it can only be valid, and its bytes. Called by
//! whoever sends through an [`EventSender`](crate::EventSender), or writes the bytes of an event
//! stream by hand.

use std::borrow::Cow;
use std::io::Write;
use std::time::Duration;

use bytes::Bytes;
use memchr::memchr2;

use crate::Error;

/// One event of an event stream, or one comment.
///
/// Whatever it was made of, its bytes are one well-formed block: no text can end a line, an event
/// or the stream before its time. The bytes follow the WHATWG HTML standard, section 9.2.5
/// ("Parsing an event stream").
///
/// ```
/// use std::time::Duration;
/// use heartline::Event;
///
/// # fn main() -> Result<(), heartline::Error> {
/// let event = Event::data("two\nlines").event("message")?.id("7")?.retry(Duration::from_secs(3));
/// assert_eq!(event.encode(), "event: message\nid: 7\nretry: 3000\ndata: two\ndata: lines\n\n");
/// assert_eq!(Event::comment("warming up").encode(), ": warming up\n");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    comment: Option<Cow<'static, str>>,
    name: Option<Cow<'static, str>>,
    id: Option<Cow<'static, str>>,
    retry_ms: Option<u64>,
    data: Option<Cow<'static, str>>,
}

impl Event {
    /// An event that carries `text`.
    ///
    /// Each LF, CR and CRLF in `text` begins a new `data:` line, so a client decodes every one of
    /// them as LF; all else, leading and trailing spaces included, arrives as it is. An empty text
    /// is an event with empty data.
    pub fn data(text: impl Into<Cow<'static, str>>) -> Self {
        Self { data: Some(text.into()), ..Self::EMPTY }
    }

    /// A comment, which no client decodes as an event.
    ///
    /// Each LF, CR and CRLF in `text` begins a new comment line. No blank line follows, because
    /// after a non-empty `id:` a blank line makes several clients dispatch an empty event; one does
    /// follow once the comment was given an id, a name or a reconnection time.
    pub fn comment(text: impl Into<Cow<'static, str>>) -> Self {
        Self { comment: Some(text.into()), ..Self::EMPTY }
    }

    /// Names the event; clients call an event without a name, or with an empty one, `message`.
    ///
    /// # Errors
    ///
    /// When `name` holds a CR or LF, which would end its line.
    pub fn event(mut self, name: impl Into<Cow<'static, str>>) -> Result<Self, Error> {
        let name = name.into();
        if memchr2(b'\r', b'\n', name.as_bytes()).is_some() {
            return Err(Error::event("the name of an event holds a line break: leave it out"));
        }
        self.name = Some(name);
        Ok(self)
    }

    /// Gives the event the id from which a client resumes; an empty one makes the client forget the
    /// last.
    ///
    /// # Errors
    ///
    /// When `id` holds a CR or LF, which would end its line, or a NUL, for which a client ignores
    /// the whole id.
    pub fn id(mut self, id: impl Into<Cow<'static, str>>) -> Result<Self, Error> {
        let id = id.into();
        if id.contains(['\0', '\r', '\n']) {
            return Err(Error::event("the id of an event holds a line break or a NUL: leave it out"));
        }
        self.id = Some(id);
        Ok(self)
    }

    /// Tells the client how long to wait before it connects again, in whole milliseconds.
    ///
    /// A fraction is rounded up, so that a short wait never becomes none; more than 2^53 - 1 ms,
    /// the most that every client reads exactly, counts as that.
    pub fn retry(mut self, wait: Duration) -> Self {
        let wait_ms = wait.as_nanos().div_ceil(NANOS_PER_MS);
        self.retry_ms = Some(u64::try_from(wait_ms).map_or(RETRY_MS_MAX, |ms| ms.min(RETRY_MS_MAX)));
        self
    }

    /// The bytes of the event, its blank line included, in one allocation.
    pub fn encode(&self) -> Bytes {
        // A vector filled to its capacity becomes `Bytes` without a copy.
        Bytes::from(self.to_vec())
    }

    const EMPTY: Self = Self { comment: None, name: None, id: None, retry_ms: None, data: None };

    fn to_vec(&self) -> Vec<u8> {
        let mut length = 0;
        self.write(|part| length += part.len());
        let mut bytes = Vec::with_capacity(length);
        self.write(|part| bytes.extend_from_slice(part));
        bytes
    }

    /// Hands the parts of the bytes to `sink` in order: the one place that knows the layout, for
    /// length and bytes.
    fn write(&self, mut sink: impl FnMut(&[u8])) {
        let mut field = |head: &str, value: &[u8]| {
            sink(head.as_bytes());
            // Always a space: a client removes exactly one, so that a value's own leading space
            // survives.
            sink(b" ");
            sink(value);
            sink(b"\n");
        };
        if let Some(comment) = &self.comment {
            lines(comment).for_each(|line| field(":", line));
        }
        if let Some(name) = &self.name {
            field("event:", name.as_bytes());
        }
        if let Some(id) = &self.id {
            field("id:", id.as_bytes());
        }
        if let Some(retry_ms) = self.retry_ms {
            let mut digits = [0; RETRY_DIGITS_MAX];
            let mut unused = &mut digits[..];
            // The buffer holds the longest number there is, so the write cannot fall short.
            let _ = write!(unused, "{retry_ms}");
            let length = RETRY_DIGITS_MAX - unused.len();
            field("retry:", &digits[..length]);
        }
        if let Some(data) = &self.data {
            lines(data).for_each(|line| field("data:", line));
        }
        if !self.is_comment_alone() {
            sink(b"\n");
        }
    }

    fn is_comment_alone(&self) -> bool {
        self.name.is_none() && self.id.is_none() && self.retry_ms.is_none() && self.data.is_none()
    }
}

/// The lines of `text`, which LF, CR and CRLF end alike; at least one, and an empty last one after
/// a final line break.
fn lines(text: &str) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(text.as_bytes());
    std::iter::from_fn(move || {
        let text = rest.take()?;
        let Some(end) = memchr2(b'\r', b'\n', text) else {
            return Some(text);
        };
        let width = if text[end..].starts_with(b"\r\n") { 2 } else { 1 };
        rest = Some(&text[end + width..]);
        Some(&text[..end])
    })
}

const NANOS_PER_MS: u128 = 1_000_000;

/// The largest whole number that a client which reads digits into a double still has exactly.
const RETRY_MS_MAX: u64 = (1 << 53) - 1;

/// Digits of `RETRY_MS_MAX`.
const RETRY_DIGITS_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_break_begins_a_data_line() {
        assert_eq!(
            Event::data("a\nb\rc\r\nd\n\re").encode(),
            "data: a\ndata: b\ndata: c\ndata: d\ndata: \ndata: e\n\n"
        );
        assert_eq!(Event::data("end\n").encode(), "data: end\ndata: \n\n");
        assert_eq!(Event::data("").encode(), "data: \n\n");
    }

    #[test]
    fn leading_space_survives() {
        assert_eq!(Event::data(" indented").encode(), "data:  indented\n\n");
    }

    #[test]
    fn data_cannot_forge_a_field_or_an_event() {
        assert_eq!(
            Event::data("x\n\ndata: forged\nid: 1").encode(),
            "data: x\ndata: \ndata: data: forged\ndata: id: 1\n\n"
        );
    }

    #[test]
    fn id_and_name_refuse_what_would_end_their_line() {
        for text in ["a\nb", "a\rb", "\r\n"] {
            assert!(Event::data("x").event(text).is_err(), "{text:?}");
            assert!(Event::data("x").id(text).is_err(), "{text:?}");
        }
        assert!(Event::data("x").id("a\0b").is_err());
        assert!(Event::data("x").event("a\0b").is_ok(), "legal in a name");
    }

    #[test]
    fn comment_alone_has_no_blank_line() {
        assert_eq!(Event::comment("a\rb").encode(), ": a\n: b\n");
        let with_id = Event::comment("a").id("").unwrap();
        assert_eq!(with_id.encode(), ": a\nid: \n\n");
    }

    #[test]
    fn retry_is_whole_milliseconds_and_bounded() {
        let digits = |wait| Event::data("").retry(wait).encode();
        assert_eq!(digits(Duration::ZERO), "retry: 0\ndata: \n\n");
        assert_eq!(digits(Duration::from_micros(1)), "retry: 1\ndata: \n\n");
        assert_eq!(digits(Duration::MAX), "retry: 9007199254740991\ndata: \n\n");
    }

    #[test]
    fn encoding_is_one_allocation_of_the_exact_size() {
        let bytes = Event::data("x\ny").id("1").unwrap().to_vec();
        assert_eq!(bytes.capacity(), bytes.len());
    }
}
