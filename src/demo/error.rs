//! Why a demo could not be run at all; what ends one stream is a figure of the report instead.

use std::fmt;

/// The error of a demo; its text is one line that says what is wrong and what to do.
#[derive(Debug)]
pub struct Error(Kind);

#[derive(Debug)]
enum Kind {
    Settings(String),
    Host(Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    pub(super) fn settings(message: String) -> Self {
        Self(Kind::Settings(message))
    }

    pub(super) fn host(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self(Kind::Host(error.into()))
    }

    /// Returns whether the settings contradict each other.
    pub fn is_settings(&self) -> bool {
        matches!(self.0, Kind::Settings(_))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Settings(message) => f.write_str(message),
            Kind::Host(error) => write!(f, "the demo could not be set up: {error}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0 {
            Kind::Settings(_) => None,
            Kind::Host(error) => Some(&**error),
        }
    }
}
