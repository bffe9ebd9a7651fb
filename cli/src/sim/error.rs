//! What keeps an engine from starting: settings that make no sense, or an address that cannot be bound.
//!
//! Made by the parsers and by [`Engine::bind`](crate::sim::Engine::bind); what ends one stream is never an [`Error`].

use std::fmt;
use std::io;
use std::net::SocketAddr;

/// Why an engine could not be set up; the text is one line that says what is wrong and what to do.
#[derive(Debug)]
pub struct Error(Kind);

#[derive(Debug)]
enum Kind {
    Settings(String),
    Listen(SocketAddr, io::Error),
}

impl Error {
    pub(crate) fn settings(message: String) -> Self {
        Self(Kind::Settings(message))
    }

    pub(crate) fn listen(address: SocketAddr, source: io::Error) -> Self {
        Self(Kind::Listen(address, source))
    }

    /// Returns whether a setting was refused, or a text did not parse as one.
    pub fn is_settings(&self) -> bool {
        matches!(self.0, Kind::Settings(_))
    }

    /// Returns whether another process already listens on the address.
    pub fn is_address_in_use(&self) -> bool {
        matches!(&self.0, Kind::Listen(_, source) if source.kind() == io::ErrorKind::AddrInUse)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Settings(message) => f.write_str(message),
            Kind::Listen(address, source) if source.kind() == io::ErrorKind::AddrInUse => {
                write!(
                    f,
                    "{address} is in use; stop what listens there, or choose another address (port 0 takes any free one)"
                )
            }
            Kind::Listen(address, source) => write!(f, "cannot listen on {address}: {source}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0 {
            Kind::Settings(_) => None,
            Kind::Listen(_, source) => Some(source),
        }
    }
}
