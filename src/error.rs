//! The two kinds of failure: [`Error`] refuses a setting before anything runs, [`StreamError`] ends one stream.

use crate::ending::Ended;
use std::error::Error as StdError;
use std::fmt;

/// A boxed error, as bodies in the hyper world carry it.
pub type BoxError = Box<dyn StdError + Send + Sync>;

/// A setting, a form or an event was refused; nothing has changed.
///
/// The message is one line that says what is wrong and what to do. Its wording is not promised; the predicates are.
#[derive(Debug)]
pub struct Error {
    kind: Kind,
    message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Setting,
    Form,
    Event,
}

impl Error {
    pub(crate) fn setting(message: impl Into<String>) -> Self {
        Self { kind: Kind::Setting, message: message.into() }
    }

    pub(crate) fn form(message: impl Into<String>) -> Self {
        Self { kind: Kind::Form, message: message.into() }
    }

    pub(crate) fn event(message: impl Into<String>) -> Self {
        Self { kind: Kind::Event, message: message.into() }
    }

    /// Whether a setting given to a [`Builder`](crate::Builder) was refused.
    pub fn is_setting(&self) -> bool {
        self.kind == Kind::Setting
    }

    /// Whether a heartbeat [`Form`](crate::Form) was refused.
    pub fn is_form(&self) -> bool {
        self.kind == Kind::Form
    }

    /// Whether a field of an [`Event`](crate::Event) was refused because it would break the event stream's format.
    pub fn is_event(&self) -> bool {
        self.kind == Kind::Event
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for Error {}

/// One stream ended with an error: the inner body's own, or because heartline ended it.
///
/// A server that writes the body to a connection aborts the response when it sees this, so that the client can tell the
/// stream from a complete one.
pub struct StreamError {
    cause: Cause,
    is_reported: bool,
}

enum Cause {
    Body(BoxError),
    Ended(Ended),
}

impl StreamError {
    /// The stream failed with an error of its inner body: for a body of one's own that stands between [`KeepAlive`] and the
    /// connection and has to fail like it.
    ///
    /// [`KeepAlive`]: crate::KeepAlive
    pub fn body(error: impl Into<BoxError>) -> Self {
        Self { cause: Cause::Body(error.into()), is_reported: false }
    }

    pub(crate) fn ended(ended: Ended) -> Self {
        Self { cause: Cause::Ended(ended), is_reported: false }
    }

    /// The same error, after an error event has told the client.
    pub(crate) fn reported(self) -> Self {
        Self { is_reported: true, ..self }
    }

    /// Whether an error event (or document) that tells the client went out before this error.
    pub fn is_reported(&self) -> bool {
        self.is_reported
    }

    /// Whether the inner body or stream failed by itself; [`into_inner`](Self::into_inner) returns its error.
    pub fn is_body(&self) -> bool {
        matches!(self.cause, Cause::Body(_))
    }

    /// Whether the stream was ended because it had sent no content for `max_silence`.
    pub fn is_max_silence(&self) -> bool {
        matches!(self.cause, Cause::Ended(Ended::MaxSilence))
    }

    /// Whether the stream was ended because it had lived for `max_lifetime`.
    pub fn is_max_lifetime(&self) -> bool {
        matches!(self.cause, Cause::Ended(Ended::MaxLifetime))
    }

    /// Whether the stream was ended by a [`drain`](crate::Heartline::drain).
    pub fn is_drained(&self) -> bool {
        matches!(self.cause, Cause::Ended(Ended::Drained))
    }

    /// The inner body's own error, if that is what ended the stream.
    pub fn into_inner(self) -> Option<BoxError> {
        match self.cause {
            Cause::Body(error) => Some(error),
            Cause::Ended(_) => None,
        }
    }
}

impl fmt::Debug for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            Cause::Body(error) => f.debug_tuple("StreamError").field(error).finish(),
            Cause::Ended(ended) => f.debug_tuple("StreamError").field(ended).finish(),
        }
    }
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            Cause::Body(_) => f.write_str("the response body failed"),
            Cause::Ended(ended) => ended.fmt(f),
        }
    }
}

impl StdError for StreamError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match &self.cause {
            Cause::Body(error) => Some(error.as_ref()),
            Cause::Ended(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_answers_to_its_own_predicate_only() {
        let body = StreamError::body("boom");
        assert!(body.is_body() && !body.is_drained() && body.source().is_some());
        assert_eq!(body.into_inner().expect("the inner error").to_string(), "boom");
        let drained = StreamError::ended(Ended::Drained);
        assert!(drained.is_drained() && !drained.is_max_silence() && !drained.is_max_lifetime() && !drained.is_body());
        assert!(drained.into_inner().is_none());
    }
}
