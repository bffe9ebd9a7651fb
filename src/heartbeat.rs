//! The bytes of a heartbeat: the forms. Built by whoever configures a stream, read by `inject`.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::error::Error;
use crate::neutral;

/// The form of a heartbeat in an event stream, as it is written between two events.
///
/// Where the form would change what a client decodes (inside an event, after an `id:`, after the stream's last event)
/// a shorter one takes its place. In the other formats a heartbeat is a space or a `\n` whatever the form; only
/// [`Form::off`] holds for all of them. A form is cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Form(Kind);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Newline,
    NewlineBetween,
    Comment,
    AnthropicPing,
    Off,
    Block(Arc<Written>),
    Event(Arc<Written>),
    Custom(Arc<Written>),
}

#[derive(Debug, PartialEq, Eq)]
struct Written {
    bytes: Bytes,
    name: Box<str>,
}

impl Form {
    /// One blank line, `\n`: the default, and the form that most clients take.
    #[must_use]
    pub const fn newline() -> Self {
        Self(Kind::Newline)
    }

    /// One blank line, `\n`, and between events only: inside an event and after a stream's last one nothing goes out,
    /// for clients that fail on comments. Those places are rare, and silence there is counted as held.
    ///
    /// After an `id:`, where a blank line is no choice, it is `:\n` like every other form.
    #[must_use]
    pub const fn newline_between() -> Self {
        Self(Kind::NewlineBetween)
    }

    /// An empty comment, `:\n`, for clients that take a blank line for an event.
    #[must_use]
    pub const fn comment() -> Self {
        Self(Kind::Comment)
    }

    /// A comment and a blank line, `: text\n\n`.
    ///
    /// # Errors
    ///
    /// If the text has control characters or anything else that a client may take for a line end, or is longer than
    /// 1,024 bytes with what surrounds it.
    pub fn comment_block(text: impl AsRef<str>) -> Result<Self, Error> {
        let text = text.as_ref();
        neutral::check_text("comment", text)?;
        let space = if text.is_empty() { "" } else { " " };
        let bytes = Bytes::from(format!(":{space}{text}\n\n"));
        neutral::check_size(&bytes)?;
        let name = text.into();
        Ok(Self(Kind::Block(Arc::new(Written { bytes, name }))))
    }

    /// A named event, `event: name\ndata: data\n\n`, with one `data:` line for each line of `data`.
    ///
    /// Clients see it. Choose it only where all of them are known to skip events of this name.
    ///
    /// # Errors
    ///
    /// If the name is empty, if name or data have control characters (line ends in `data` aside), or if the whole is
    /// longer than 1,024 bytes.
    pub fn event(name: impl AsRef<str>, data: impl AsRef<str>) -> Result<Self, Error> {
        let name = name.as_ref();
        if name.is_empty() {
            return Err(Error::form("a heartbeat event needs a name: use event:NAME"));
        }
        neutral::check_text("event name", name)?;
        let mut bytes = format!("event: {name}\n");
        for line in data.as_ref().split('\n') {
            let line = line.strip_suffix('\r').unwrap_or(line);
            neutral::check_text("event data", line)?;
            bytes.extend(["data: ", line, "\n"]);
        }
        bytes.push('\n');
        let bytes = Bytes::from(bytes);
        neutral::check_size(&bytes)?;
        let name = name.into();
        Ok(Self(Kind::Event(Arc::new(Written { bytes, name }))))
    }

    /// Bytes of your own: comments and blank lines in any number and order.
    ///
    /// # Errors
    ///
    /// If the bytes are not neutral: fields, an unfinished last line, a CR, control characters, bytes that are not
    /// UTF-8, none at all or more than 1,024. The error says which line is meant and why.
    pub fn custom(bytes: impl Into<Bytes>) -> Result<Self, Error> {
        let bytes = bytes.into();
        neutral::check(&bytes)?;
        let name = "custom".into();
        Ok(Self(Kind::Custom(Arc::new(Written { bytes, name }))))
    }

    /// No heartbeats, in any format.
    #[must_use]
    pub const fn off() -> Self {
        Self(Kind::Off)
    }

    /// The `ping` event that Anthropic's API defines: `event: ping\ndata: {"type": "ping"}\n\n`.
    ///
    /// Its clients skip it and need it at least every 15 seconds, so that a longer interval is cut to that.
    #[must_use]
    pub const fn anthropic_ping() -> Self {
        Self(Kind::AnthropicPing)
    }

    /// True for [`Form::off`].
    #[must_use]
    pub const fn is_off(&self) -> bool {
        matches!(self.0, Kind::Off)
    }

    /// True if a conformant decoder never shows the heartbeat: false for named events, pings among them.
    #[must_use]
    pub const fn is_neutral(&self) -> bool {
        !matches!(self.0, Kind::Event(_) | Kind::AnthropicPing)
    }

    /// True if nothing may take its place inside an event or after the last one.
    pub(crate) const fn is_between_only(&self) -> bool {
        matches!(self.0, Kind::NewlineBetween)
    }

    /// The longest interval this form may be used with, `None` if any will do.
    pub(crate) const fn interval_max(&self) -> Option<Duration> {
        match self.0 {
            Kind::AnthropicPing => Some(PING_INTERVAL_MAX),
            _ => None,
        }
    }

    /// The bytes between two events, empty if off.
    pub(crate) fn bytes(&self) -> Bytes {
        match &self.0 {
            Kind::Newline | Kind::NewlineBetween => Bytes::from_static(b"\n"),
            Kind::Comment => Bytes::from_static(COMMENT),
            Kind::AnthropicPing => Bytes::from_static(PING),
            Kind::Off => Bytes::new(),
            Kind::Block(it) | Kind::Event(it) | Kind::Custom(it) => it.bytes.clone(),
        }
    }

    /// True if the bytes have no blank line, which ends an event.
    pub(crate) fn is_quiet(&self) -> bool {
        match &self.0 {
            Kind::Comment | Kind::Off => true,
            Kind::Newline | Kind::NewlineBetween | Kind::AnthropicPing | Kind::Block(_) | Kind::Event(_) => false,
            Kind::Custom(it) => !it.bytes.starts_with(b"\n") && !it.bytes.windows(2).any(|pair| pair == b"\n\n"),
        }
    }
}

/// Reads `newline`, `newline-between`, `comment`, `block:TEXT`, `event:NAME` (its data is `{}`), `ping` or `off`.
impl FromStr for Form {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text.split_once(':') {
            None if text == "newline" => Ok(Self::newline()),
            None if text == "newline-between" => Ok(Self::newline_between()),
            None if text == "comment" => Ok(Self::comment()),
            None if text == "ping" => Ok(Self::anthropic_ping()),
            None if text == "off" => Ok(Self::off()),
            Some(("block", text)) => Self::comment_block(text),
            Some(("event", name)) => Self::event(name, "{}"),
            _ => Err(Error::form(format!(
                "unknown heartbeat form {text:?}: use newline, newline-between, comment, block:TEXT, event:NAME, ping or off"
            ))),
        }
    }
}

/// Writes what [`FromStr`] reads; `custom` for a custom form, whose bytes are not shown, nor is an event's data.
impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Newline => f.write_str("newline"),
            Kind::NewlineBetween => f.write_str("newline-between"),
            Kind::Comment => f.write_str("comment"),
            Kind::AnthropicPing => f.write_str("ping"),
            Kind::Off => f.write_str("off"),
            Kind::Block(it) => write!(f, "block:{}", it.name),
            Kind::Event(it) => write!(f, "event:{}", it.name),
            Kind::Custom(it) => f.write_str(&it.name),
        }
    }
}

/// An empty comment: neutral wherever a line may begin.
pub(crate) const COMMENT: &[u8] = b":\n";
/// The same inside an event of a stream with such line ends: some readers look for the very bytes `\r\n\r\n`.
pub(crate) const COMMENT_CRLF: &[u8] = b":\r\n";
const PING: &[u8] = b"event: ping\ndata: {\"type\": \"ping\"}\n\n";
/// Anthropic's clients give a stream up that shows no event for some time; its own API pings about this often.
const PING_INTERVAL_MAX: Duration = Duration::from_secs(15);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_two_words_at_most() {
        assert!(size_of::<Form>() <= 16);
    }

    #[test]
    fn forms_write_their_bytes() {
        let event = Form::event("beat", "a\r\nb\n").unwrap();
        assert_eq!(event.bytes(), "event: beat\ndata: a\ndata: b\ndata: \n\n");
        assert_eq!(Form::comment_block("hi").unwrap().bytes(), ": hi\n\n");
        assert_eq!(Form::comment_block("").unwrap().bytes(), ":\n\n");
        assert_eq!(Form::default(), Form::newline());
    }

    #[test]
    fn what_is_shown_is_read_again() {
        for text in ["newline", "newline-between", "comment", "block:keep alive", "event:ping", "ping", "off", "block:"]
        {
            assert_eq!(text.parse::<Form>().unwrap().to_string(), text);
        }
        for text in ["", "Newline", "block", "event:", "event", "newline:", "custom", "block:a\nb"] {
            assert!(text.parse::<Form>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn only_forms_without_a_blank_line_are_quiet() {
        for (bytes, quiet) in [(":\n", true), (":\n:\n", true), ("\n:\n", false), (":\n\n:\n", false), (":\n\n", false)]
        {
            assert_eq!(Form::custom(bytes).unwrap().is_quiet(), quiet, "{bytes:?}");
        }
        assert!(Form::comment().is_quiet() && !Form::newline().is_quiet() && !Form::anthropic_ping().is_quiet());
    }
}
