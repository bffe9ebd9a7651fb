//! Settings that are words or addresses, as people write them. Read from files by `layer`, from flags by the command.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use http::uri::Authority;
use http::{HeaderName, Uri};
use ipnet::IpNet;

use super::units::Written;
use super::{Consent, Fallback, FormChoice, HalfClose, HostHeader};
use crate::proxy::Error;
use crate::values;
use heartline::Cadence;

/// Reads the address of an engine: `http://`, `https://` or `h2c://`, a host, and perhaps a port and a path.
///
/// # Errors
///
/// One line that says what is wrong with the text and what to write.
pub fn engine_url(text: &str) -> Result<Uri, Error> {
    Uri::read(text).map_err(Error::config)
}

impl Written for Uri {
    const EXPECTED: &'static str = "an engine's address such as \"http://127.0.0.1:23333\"";

    fn read(text: &str) -> Result<Self, String> {
        values::engine(text)
    }
}

impl Written for SocketAddr {
    const EXPECTED: &'static str = "an address such as \"127.0.0.1:8080\"";

    fn read(text: &str) -> Result<Self, String> {
        values::socket(text)
    }
}

impl Written for IpNet {
    const EXPECTED: &'static str = "an address or a network such as \"10.0.0.0/8\"";

    fn read(text: &str) -> Result<Self, String> {
        values::network(text)
    }
}

impl Written for HeaderName {
    const EXPECTED: &'static str = "the name of a request header such as \"x-heartbeat\"";

    fn read(text: &str) -> Result<Self, String> {
        values::header(text)
    }
}

impl Written for PathBuf {
    const EXPECTED: &'static str = "the path of a file";

    fn read(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            Err("the path of the file is empty: write it, or leave it out".to_owned())
        } else {
            Ok(text.into())
        }
    }
}

impl Written for HalfClose {
    const EXPECTED: &'static str = "\"abort\" or \"serve\"";

    fn read(text: &str) -> Result<Self, String> {
        word(text, &[("abort", Self::Abort), ("serve", Self::Serve)])
    }
}

impl Written for Consent {
    const EXPECTED: &'static str = "\"known-apis\", \"always\" or \"never\"";

    fn read(text: &str) -> Result<Self, String> {
        word(text, &[("known-apis", Self::KnownApis), ("always", Self::Always), ("never", Self::Never)])
    }
}

impl Written for Cadence {
    const EXPECTED: &'static str = "\"every-tick\" or \"idle-only\"";

    fn read(text: &str) -> Result<Self, String> {
        word(text, &[("every-tick", Self::EveryTick), ("idle-only", Self::IdleOnly)])
    }
}

impl Written for FormChoice {
    const EXPECTED: &'static str = "\"auto\" or a heartbeat form such as \"newline\"";

    fn read(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            form => form.parse().map(Self::Form).map_err(|error: heartline::Error| {
                let message = error.to_string();
                message.replace("use newline,", "use auto, newline,")
            }),
        }
    }
}

impl Written for HostHeader {
    const EXPECTED: &'static str = "\"upstream\", \"preserve\" or a host name";

    fn read(text: &str) -> Result<Self, String> {
        match text {
            "upstream" => Ok(Self::Upstream),
            "preserve" => Ok(Self::Preserve),
            name => match name.parse::<Authority>() {
                Ok(host) if !host.as_str().contains('@') => Ok(Self::Name(name.to_owned())),
                _ => Err(format!("{name:?} is not a host: write upstream, preserve or a name such as engine.local")),
            },
        }
    }
}

impl Written for Fallback {
    const EXPECTED: &'static str = "\"first\", \"refuse\" or the name of an upstream";

    fn read(text: &str) -> Result<Self, String> {
        match text {
            "first" => Ok(Self::First),
            "refuse" => Ok(Self::Refuse),
            name => Ok(Self::Engine(name.to_owned())),
        }
    }
}

/// The value of the word that `text` is.
fn word<T: Copy>(text: &str, words: &[(&str, T)]) -> Result<T, String> {
    let found = words.iter().find(|(word, _)| *word == text);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        format!("{text:?} is not known: write {}", words.join(" or "))
    })
}

/// Makes flags out of what files hold: `FromStr` with the same words and the same errors.
macro_rules! from_text {
    ($($kind:ty),*) => {$(
        impl FromStr for $kind {
            type Err = Error;

            fn from_str(text: &str) -> Result<Self, Error> {
                Self::read(text).map_err(Error::config)
            }
        }
    )*};
}

from_text!(HalfClose, Consent, FormChoice, HostHeader, Fallback);

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
