//! Why heartline ended a stream (I8). Used by `live` and `error`; how its client is told, `api` says.

use std::fmt;

/// Why a stream ended before its engine ended it well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ended {
    /// No content went out for [`max_silence`](crate::Builder::max_silence).
    MaxSilence,
    /// The stream lived for [`max_lifetime`](crate::Builder::max_lifetime).
    MaxLifetime,
    /// [`drain`](crate::Heartline::drain) ended what its grace period left.
    Drained,
    /// The inner body failed, and its client is told so ([`Failures`](crate::Failures)).
    Failed,
}

impl Ended {
    /// A stable word for logs, metrics and error codes: `max_silence`, `max_lifetime`, `drained` or `failed`.
    pub fn code(self) -> &'static str {
        match self {
            Self::MaxSilence => "max_silence",
            Self::MaxLifetime => "max_lifetime",
            Self::Drained => "drained",
            Self::Failed => "failed",
        }
    }

    /// The number that stands for this reason in a stream's channel (1 to 3); nobody orders a failure.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::MaxSilence => 1,
            Self::MaxLifetime => 2,
            Self::Drained | Self::Failed => 3,
        }
    }

    pub(crate) fn of_number(number: u8) -> Self {
        match number {
            1 => Self::MaxSilence,
            2 => Self::MaxLifetime,
            _ => Self::Drained,
        }
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MaxSilence => "the engine sent no content for the longest silence allowed",
            Self::MaxLifetime => "the stream reached the longest lifetime allowed",
            Self::Drained => "the server is shutting down",
            Self::Failed => "the engine failed before its answer was complete",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_survive_the_channel() {
        for ended in [Ended::MaxSilence, Ended::MaxLifetime, Ended::Drained] {
            assert_eq!(Ended::of_number(ended.number()), ended);
        }
    }
}
