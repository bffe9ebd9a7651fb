//! Why a demo could not be run at all; what ends one stream is a figure of the report instead.

use std::fmt;

use crate::load::LoadError;
use crate::sim;
use heartline::BoxError;

/// The error of a demo; its text is one line that says what is wrong and what to do.
#[derive(Debug)]
pub struct Error {
    kind: Kind,
    source: BoxError,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Settings,
    HostLimit,
    Internal,
}

impl Error {
    pub(super) fn settings(message: String) -> Self {
        Self { kind: Kind::Settings, source: message.into() }
    }

    pub(super) fn internal(source: impl Into<BoxError>) -> Self {
        Self { kind: Kind::Internal, source: source.into() }
    }

    /// Returns whether the settings contradict each other or are out of range.
    pub fn is_settings(&self) -> bool {
        self.kind == Kind::Settings
    }

    /// Returns whether this machine lacks files, ports or memory for the streams.
    pub fn is_host_limit(&self) -> bool {
        self.kind == Kind::HostLimit
    }
}

impl From<sim::Error> for Error {
    fn from(error: sim::Error) -> Self {
        let kind = if error.is_settings() { Kind::Settings } else { Kind::Internal };
        Self { kind, source: error.into() }
    }
}

impl From<LoadError> for Error {
    fn from(error: LoadError) -> Self {
        let kind = if error.is_host_limit() { Kind::HostLimit } else { Kind::Internal };
        Self { kind, source: error.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Kind::Settings | Kind::HostLimit => self.source.fmt(f),
            Kind::Internal => write!(f, "the demo broke down: {}", self.source),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.source)
    }
}
