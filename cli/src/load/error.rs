//! Why a run did not take place. What ends one stream is a [`Failure`](super::Failure) and never stops the run.

use std::fmt;

/// A run that could not start, or broke down inside.
///
/// The wording is for people and may change; programs ask the predicates.
#[derive(Debug)]
pub struct LoadError {
    kind: Kind,
    message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Config,
    HostLimit,
    Internal,
}

impl LoadError {
    pub(super) fn config(message: impl Into<String>) -> Self {
        Self { kind: Kind::Config, message: message.into() }
    }

    pub(super) fn host_limit(message: impl Into<String>) -> Self {
        Self { kind: Kind::HostLimit, message: message.into() }
    }

    pub(super) fn internal(message: impl Into<String>) -> Self {
        Self { kind: Kind::Internal, message: message.into() }
    }

    /// Tells whether the settings were at fault.
    pub fn is_config(&self) -> bool {
        self.kind == Kind::Config
    }

    /// Tells whether this machine lacks files, ports or memory for the run; the message names the fix.
    pub fn is_host_limit(&self) -> bool {
        self.kind == Kind::HostLimit
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for LoadError {}
