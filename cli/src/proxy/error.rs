//! What stops a proxy from being started or reloaded. Made by `config`, `upstream` and `server`.

use std::fmt;

/// The proxy cannot start with these settings, or cannot take them; the message is one line that says what is wrong and
/// what to do.
#[derive(Debug)]
pub struct Error {
    kind: Kind,
    message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Config,
    Host,
}

impl Error {
    /// A setting was refused.
    pub(crate) fn config(message: impl Into<String>) -> Self {
        Self { kind: Kind::Config, message: message.into() }
    }

    /// The host refused an address or a file.
    pub(crate) fn host(message: impl Into<String>) -> Self {
        Self { kind: Kind::Host, message: message.into() }
    }

    /// Whether a setting was refused.
    pub fn is_config(&self) -> bool {
        self.kind == Kind::Config
    }

    /// Whether the host refused: an address in use, a file that cannot be read.
    pub fn is_host(&self) -> bool {
        self.kind == Kind::Host
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
