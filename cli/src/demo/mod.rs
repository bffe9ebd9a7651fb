//! The problem and the cure, side by side, on one machine: `heartline demo`.
//!
//! The story, file by file:
//!
//! 1. [`Settings`] become a [`Plan`] once they can show anything (`plan`).
//! 2. [`run`] lives it twice, first without heartbeats, then with (`run.rs`): an engine whose requests queue as under a
//!    burst of long prompts, a gateway in front of it, and a load through both, over real sockets.
//! 3. The gateway forwards each request and cuts any response that stays silent, as Cloudflare does (`gateway`, `cut`).
//! 4. What became of the streams is a [`Report`]; a [`Verdict`] says whether it shows what it should.
//!
//! ```no_run
//! # async fn example() -> Result<(), heartline_cli::demo::Error> {
//! use heartline_cli::demo::{self, Settings, Verdict};
//!
//! let plan = Settings::default().plan()?;
//! let report = demo::run(&plan, |_| {}).await?;
//! println!("{report}\n\n{}", Verdict::of(&report));
//! # Ok(())
//! # }
//! ```

mod cut;
mod error;
mod gateway;
mod plan;
mod report;
mod run;
mod verdict;

use std::time::Duration;

pub use error::Error;
pub use plan::{Plan, Settings};
pub use report::{Figures, Report, Spread};
pub use run::Run;
pub use verdict::Verdict;

/// How far a demo has come.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Progress {
    /// The run that is going on.
    pub run: Run,
    /// Streams of this run.
    pub streams: usize,
    /// Streams of this run that are over.
    pub ended: usize,
    /// How long this run has lasted.
    pub elapsed: Duration,
}

/// Runs the demo and reports; tells `progress` a few times a second how far it is.
///
/// Takes about the plan's wait and its cut together. Needs a tokio runtime with timer and I/O; one with two or more
/// threads keeps engine and gateway from waiting for each other.
///
/// # Errors
///
/// When the engine refuses the interval ([`Error::is_settings`]), when this machine cannot hold the streams
/// ([`Error::is_host_limit`]), or when sockets or threads cannot be made. Streams that end badly are no error.
///
/// # Cancel safety
///
/// Dropping the future closes every connection of the demo and ends its threads; there is no report then.
pub async fn run(plan: &Plan, mut progress: impl FnMut(Progress)) -> Result<Report, Error> {
    let targets = run::targets(plan)?;
    let without = Run::Without.live(plan, targets.clone(), &mut progress).await?;
    let with = Run::With.live(plan, targets, &mut progress).await?;
    Ok(Report {
        streams: plan.streams,
        cut_after_ms: report::milliseconds(plan.cut_after),
        interval_ms: report::milliseconds(plan.interval),
        without: without.figures,
        with: with.figures,
        events_identical: without.identical && with.identical,
    })
}
