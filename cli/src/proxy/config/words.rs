//! Settings that are words. Part of `Config` and `Upstream`.

use std::str::FromStr;

use http::uri::Authority;

use heartline::{Cadence, Form};

use crate::proxy::Error;
use crate::values::word;

/// What a client means that closes its sending side while it waits for the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HalfClose {
    /// It is gone: drop the upstream request at once.
    #[default]
    Abort,
    /// It has said all it had to say and still reads.
    Serve,
}

impl FromStr for HalfClose {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        word(text, &[("abort", Self::Abort), ("serve", Self::Serve)]).map_err(Error::config)
    }
}

/// Whether a format that not every client reads with heartbeats gets them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Consent {
    /// Only where the API is known to be read by clients that take them.
    #[default]
    KnownApis,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl FromStr for Consent {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let words = [("known-apis", Self::KnownApis), ("always", Self::Always), ("never", Self::Never)];
        word(text, &words).map_err(Error::config)
    }
}

/// Where a stream's form comes from.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum FormChoice {
    /// What the request tells about its client ([`Form::auto`]).
    #[default]
    Auto,
    /// Always this one.
    Form(Form),
}

impl FromStr for FormChoice {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "auto" => Ok(Self::Auto),
            form => form.parse().map(Self::Form).map_err(|error: heartline::Error| {
                let message = error.to_string();
                Error::config(message.replace("use newline,", "use auto, newline,"))
            }),
        }
    }
}

/// The `Host` that an upstream is sent; the client's own goes into `X-Forwarded-Host`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HostHeader {
    /// The upstream's own.
    #[default]
    Upstream,
    /// The client's.
    Preserve,
    /// This one.
    Name(String),
}

impl FromStr for HostHeader {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "upstream" => Ok(Self::Upstream),
            "preserve" => Ok(Self::Preserve),
            name => match name.parse::<Authority>() {
                Ok(host) if !host.as_str().contains('@') => Ok(Self::Name(name.to_owned())),
                _ => Err(Error::config(format!(
                    "{name:?} is not a host: write upstream, preserve or a name such as engine.local"
                ))),
            },
        }
    }
}

/// Which engine takes a request that none of those for its path was meant for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Fallback {
    /// The first of them in the order of the settings.
    #[default]
    First,
    /// The engine of this name, if it serves the path.
    Engine(String),
    /// None: the proxy answers 404 itself.
    Refuse,
}

impl FromStr for Fallback {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Ok(match text {
            "first" => Self::First,
            "refuse" => Self::Refuse,
            name => Self::Engine(name.to_owned()),
        })
    }
}

/// Reads the word of a cadence.
pub(super) fn cadence(text: &str) -> Result<Cadence, String> {
    word(text, &[("every-tick", Cadence::EveryTick), ("idle-only", Cadence::IdleOnly)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_and_others_are_answered_with_them() {
        assert_eq!("serve".parse::<HalfClose>().unwrap(), HalfClose::Serve);
        assert_eq!("never".parse::<Consent>().unwrap(), Consent::Never);
        assert_eq!("auto".parse::<FormChoice>().unwrap(), FormChoice::Auto);
        assert_eq!("a.example:80".parse::<HostHeader>().unwrap(), HostHeader::Name("a.example:80".to_owned()));
        assert_eq!("gpu".parse::<Fallback>().unwrap(), Fallback::Engine("gpu".to_owned()));
        assert!("wait".parse::<HalfClose>().unwrap_err().to_string().contains("write abort or serve"));
        assert!("beep".parse::<FormChoice>().unwrap_err().to_string().contains("use auto, newline"));
        assert!("a b".parse::<HostHeader>().is_err());
    }
}
