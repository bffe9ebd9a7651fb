//! Settings that are words or addresses, as people write them. Read from files by `layer`, from flags by the command.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use http::uri::{Authority, PathAndQuery};
use http::{HeaderName, Uri};
use ipnet::IpNet;

use super::units::Written;
use super::{Consent, Fallback, FormChoice, HalfClose, HostHeader};
use crate::proxy::Error;
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
        let text = text.trim();
        let Some((scheme, rest)) = text.split_once("://") else {
            let host = if text.is_empty() { "127.0.0.1:23333" } else { text.trim_matches('/') };
            return Err(format!("the engine's address {text:?} has no scheme: write http://{host}"));
        };
        if !SCHEMES.contains(&scheme) {
            return Err(format!("the engine's scheme {scheme:?} is unknown: write http://, https:// or h2c://"));
        }
        // Not repeated in the message: it may hold a password.
        if rest.split('/').next().is_some_and(|authority| authority.contains('@')) {
            return Err("the engine's address holds a user name: take it out, clients send their own keys".to_owned());
        }
        if rest.contains(['?', '#']) {
            return Err(format!("the engine's address {text:?} holds a query: end it before the ? or #"));
        }
        let malformed =
            || format!("the engine's address {text:?} is malformed: write for example {scheme}://127.0.0.1:23333");
        let parts = text.parse::<Self>().map_err(|_| malformed())?.into_parts();
        let authority = parts.authority.filter(|it| !it.host().is_empty()).ok_or_else(malformed)?;
        let port = authority.as_str().strip_prefix(authority.host()).unwrap_or_default();
        if !port.is_empty() && authority.port_u16().is_none_or(|port| port == 0) {
            return Err(format!("the engine's address {text:?} has no usable port: write a number from 1 to 65535"));
        }
        let path = parts.path_and_query.as_ref().map_or("/", PathAndQuery::path).trim_end_matches('/');
        let path = if path.is_empty() { "/" } else { path };
        Self::builder().scheme(scheme).authority(authority).path_and_query(path).build().map_err(|_| malformed())
    }
}

impl Written for SocketAddr {
    const EXPECTED: &'static str = "an address such as \"127.0.0.1:8080\"";

    fn read(text: &str) -> Result<Self, String> {
        text.trim().parse().map_err(|_| {
            let port = text.rsplit(':').next().and_then(|port| port.trim().parse::<u16>().ok()).unwrap_or(8080);
            format!("{text:?} is not an IP address with a port: write 127.0.0.1:{port} or 0.0.0.0:{port}")
        })
    }
}

impl Written for IpNet {
    const EXPECTED: &'static str = "an address or a network such as \"10.0.0.0/8\"";

    fn read(text: &str) -> Result<Self, String> {
        let text = text.trim();
        text.parse().or_else(|_| text.parse::<IpAddr>().map(Self::from)).map_err(|_| {
            format!("{text:?} is neither an address nor a network: write for example 127.0.0.1 or 10.0.0.0/8")
        })
    }
}

impl Written for HeaderName {
    const EXPECTED: &'static str = "the name of a request header such as \"x-heartbeat\"";

    fn read(text: &str) -> Result<Self, String> {
        text.trim().parse().map_err(|_| format!("{text:?} is not a header's name: write for example x-heartbeat"))
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

/// What engines are spoken to in.
const SCHEMES: &[&str] = &["http", "https", "h2c"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engines_address_is_read_with_its_path() {
        for (text, read) in [
            ("http://127.0.0.1:23333", "http://127.0.0.1:23333/"),
            ("https://engine.example/", "https://engine.example/"),
            ("h2c://[::1]:8000/llm/", "h2c://[::1]:8000/llm"),
        ] {
            assert_eq!(engine_url(text).unwrap().to_string(), read);
        }
    }

    #[test]
    fn a_bad_address_says_what_to_write() {
        for (text, fix) in [
            ("127.0.0.1:23333", "write http://127.0.0.1:23333"),
            ("localhost", "write http://localhost"),
            ("", "write http://"),
            ("ftp://host", "https:// or h2c://"),
            ("http://", "write for example http://"),
            ("http://:80", "write for example http://"),
            ("http://host:99999", "from 1 to 65535"),
            ("http://host:0", "from 1 to 65535"),
            ("http://host:", "from 1 to 65535"),
            ("http://ho st/", "write for example http://"),
            ("http://host/?key=1", "before the ?"),
        ] {
            let message = engine_url(text).unwrap_err().to_string();
            assert!(message.contains(fix) && !message.contains('\n'), "{text}: {message}");
        }
        let message = engine_url("http://user:secret@host").unwrap_err().to_string();
        assert!(message.contains("take it out") && !message.contains("secret"), "{message}");
    }

    #[test]
    fn words_are_read_and_others_are_answered_with_them() {
        assert_eq!("serve".parse::<HalfClose>().unwrap(), HalfClose::Serve);
        assert_eq!("never".parse::<Consent>().unwrap(), Consent::Never);
        assert_eq!("auto".parse::<FormChoice>().unwrap(), FormChoice::Auto);
        assert_eq!("a.example:80".parse::<HostHeader>().unwrap(), HostHeader::Name("a.example:80".to_owned()));
        assert_eq!("gpu".parse::<Fallback>().unwrap(), Fallback::Engine("gpu".to_owned()));
        assert!("wait".parse::<HalfClose>().unwrap_err().to_string().contains("write abort or serve"));
        assert!("beep".parse::<FormChoice>().unwrap_err().to_string().contains("use auto, newline"));
        assert!("a b".parse::<HostHeader>().is_err() && IpNet::read("ten").is_err());
        assert_eq!(IpNet::read("::1").unwrap().to_string(), "::1/128");
        assert!(SocketAddr::read("localhost:81").unwrap_err().contains("127.0.0.1:81"));
    }
}
