//! The shape of a run: how many streams are there at a time, when each begins, and which part of the run is judged.

use std::time::Duration;

/// How the streams of a run come and go.
///
/// A run ramps up, holds, and drains; what is judged is the hold phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shape {
    /// All streams are held open for so long after the ramp; only this phase is judged. A stream that ends earlier is
    /// not opened again, so that the shortfall shows.
    Hold(Duration),
    /// Every stream runs to its own end; all of its life is judged, and so is the ramp. The run ends with the last
    /// stream, or after this long.
    Complete(Duration),
    /// Closed loop: so many streams at a time, each followed by the next one, until all have been; judged from the end
    /// of the ramp. The run ends with the last stream, or after `within`.
    ///
    /// A server that slows down is asked less often, so what users would have waited does not show; use `Open` for that.
    Closed {
        /// Streams at a time.
        concurrency: usize,
        /// The longest time the run may take after the ramp.
        within: Duration,
    },
    /// Open loop: streams begin at the rate, however the server fares, for so long after the ramp; judged are those
    /// meant to begin after the ramp, from the time each was meant to begin. How many there are follows from the rate.
    Open {
        /// How the beginnings are spread.
        arrivals: Arrivals,
        /// How long streams begin at the full rate.
        length: Duration,
    },
}

impl Shape {
    /// Returns the longest time the judged part of the run may take.
    pub fn length(self) -> Duration {
        match self {
            Self::Hold(length)
            | Self::Complete(length)
            | Self::Closed { within: length, .. }
            | Self::Open { length, .. } => length,
        }
    }

    /// Returns the shape's name, as the report and a configuration file write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hold(_) => "hold",
            Self::Complete(_) => "complete",
            Self::Closed { .. } => "closed",
            Self::Open { .. } => "open",
        }
    }
}

/// How the beginnings of an open loop are spread over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Arrivals {
    /// One every so often.
    #[default]
    Constant,
    /// As independent users come: exponential times between, drawn from the run's seed.
    Poisson,
}

impl Arrivals {
    /// Returns the name, as the report and a configuration file write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Constant => "const",
            Self::Poisson => "poisson",
        }
    }
}
