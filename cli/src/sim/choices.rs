//! The named choices of [`Settings`](crate::sim::Settings), each with the word that the command line and a query use.

use std::fmt;
use std::str::FromStr;

use super::error::Error;
use heartline::Form;

/// What happens to a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Script {
    /// `steady`: the first token after its time, then one after the other.
    #[default]
    Steady,
    /// `cliff`: one prefill at a time, so that each request waits for all that came before it.
    Cliff,
    /// `stall`: steady, with a long silence after half of the tokens.
    Stall,
    /// `torn`: steady, but cut where it hurts: inside characters, between CR and LF, byte by byte.
    Torn,
    /// `late-error`: after half of the tokens an error in the API's own shape, then a clean end.
    LateError,
    /// `hang`: headers, then nothing for ever.
    Hang,
    /// `disconnect`: after half of the tokens the connection breaks between two events. An HTTP/1.0 client, whose
    /// bodies end with the connection, takes it for a clean end, as with any engine that dies.
    Disconnect,
    /// `disconnect-inside`: the same in the middle of an event.
    DisconnectInside,
}

/// When a response's headers are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaitMode {
    /// `usual`: a stream's at once, a JSON answer's together with its body.
    #[default]
    Usual,
    /// `at-once`: before there is anything to say.
    AtOnce,
    /// `first-token`: only together with the first byte of the body.
    FirstToken,
}

/// How lines end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum LineEnd {
    /// `lf`: a line feed.
    #[default]
    Lf,
    /// `crlf`: a carriage return and a line feed.
    Crlf,
    /// `cr`: a carriage return; NDJSON, which has no such line end, falls back to LF.
    Cr,
    /// `mixed`: each line its own, drawn from the seed.
    Mixed,
}

/// Gives a choice the words it is written as.
macro_rules! written {
    ($Choice:ident, $what:literal, $($Variant:ident = $word:literal),+) => {
        impl $Choice {
            /// Every choice there is, in the order of the documentation.
            pub const ALL: &[Self] = &[$(Self::$Variant),+];

            /// Returns the word for this choice.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$Variant => $word),+ }
            }
        }

        impl fmt::Display for $Choice {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }

        impl FromStr for $Choice {
            type Err = Error;

            fn from_str(text: &str) -> Result<Self, Error> {
                Self::ALL.iter().copied().find(|choice| choice.name() == text).ok_or_else(|| {
                    Error::settings(format!(concat!("'{}' is no ", $what, "; write one of: {}"), text, [$($word),+].join(", ")))
                })
            }
        }
    };
}

written!(
    Script,
    "script",
    Steady = "steady",
    Cliff = "cliff",
    Stall = "stall",
    Torn = "torn",
    LateError = "late-error",
    Hang = "hang",
    Disconnect = "disconnect",
    DisconnectInside = "disconnect-inside"
);
written!(WaitMode, "wait mode", Usual = "usual", AtOnce = "at-once", FirstToken = "first-token");
written!(LineEnd, "line end", Lf = "lf", Crlf = "crlf", Cr = "cr", Mixed = "mixed");

/// Which heartbeat the engine embeds.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Heartbeat {
    /// `off`: none, and no broadcaster.
    #[default]
    Off,
    /// `auto`: the form that suits each request's client, see [`Form::auto`].
    Auto,
    /// `newline`, `comment` and what else [`Form`] is parsed from: the same for every stream.
    Form(Form),
}

impl fmt::Display for Heartbeat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::Auto => f.write_str("auto"),
            Self::Form(form) => form.fmt(f),
        }
    }
}

impl FromStr for Heartbeat {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "off" => Ok(Self::Off),
            "auto" => Ok(Self::Auto),
            form => form.parse().map(Self::Form).map_err(|error: heartline::Error| Error::settings(error.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_choice_is_read_as_it_is_written() {
        for script in Script::ALL {
            assert_eq!(script.to_string().parse::<Script>().unwrap(), *script);
        }
        for mode in WaitMode::ALL {
            assert_eq!(mode.to_string().parse::<WaitMode>().unwrap(), *mode);
        }
    }

    #[test]
    fn a_heartbeat_is_off_auto_or_a_form() {
        for text in ["off", "auto", "newline", "comment", "ping"] {
            assert_eq!(text.parse::<Heartbeat>().unwrap().to_string(), text);
        }
        assert!("beep".parse::<Heartbeat>().unwrap_err().is_settings());
    }

    #[test]
    fn an_unknown_word_is_answered_with_the_known_ones() {
        assert_eq!(
            "lfcr".parse::<LineEnd>().unwrap_err().to_string(),
            "'lfcr' is no line end; write one of: lf, crlf, cr, mixed"
        );
    }
}
