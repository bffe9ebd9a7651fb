//! The problem and the cure, side by side, on one machine: `heartline demo`.
mod cut;
mod error;
mod gateway;
mod plan;
mod report;
mod verdict;

pub use error::Error;
pub use plan::{Plan, Settings};
pub use report::{Figures, Report, Spread};
pub use verdict::Verdict;

/// x
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Run {
    /// x
    Without,
    /// x
    With,
}
/// x
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// x
    pub run: Run,
    /// x
    pub ended: usize,
}
/// x
/// # Errors
/// x
pub async fn run(_plan: &Plan, _progress: impl Fn(Progress)) -> Result<Report, Error> {
    Err(Error::host("todo"))
}
