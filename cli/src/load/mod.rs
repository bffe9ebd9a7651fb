//! Holds many streams open and measures the silence of each: the `load` command, `demo`, and tests use it.
//!
//! One stream's life: `plan` says when it begins, on which worker and from which address. Its task (`client`) connects,
//! sends the request and reads the body to its end, over `http1` or `http2`; `record` is told of every step, lets `reader`
//! decode the bytes and `judge` look at the events, and works out silences, gaps and latencies, which go into the
//! worker's `tally`. A stream needs no timer: the run's end drops the task, and the record closes itself. Around it `run`
//! leads through ramp, hold and drain, `canary` notices when the client itself is late, and `verdict` says whether to
//! believe the `report`.
//!
//! ```no_run
//! # async fn example() -> Result<(), heartline_cli::load::LoadError> {
//! use std::time::Duration;
//! use heartline_cli::load::{self, Settings, Shape};
//!
//! let mut settings = Settings::new("http://127.0.0.1:8900/events".parse().expect("a URL"));
//! settings.streams = 1_000;
//! settings.shape = Shape::Hold(Duration::from_secs(60));
//! let report = load::run(settings, |_| {}).await?;
//! println!("{report}");
//! # Ok(())
//! # }
//! ```

mod bodies;
mod settings;
mod shape;
mod target;

mod plan;
mod preflight;
mod schedule;
mod seed;

mod canary;
mod phases;
mod run;
mod worker;

mod client;
mod dial;
mod framing;
mod head;
mod http1;
mod http2;
mod request;

mod digest;
mod judge;
mod reader;
mod record;

mod asked;
mod beats;
mod histograms;
mod live;
mod packed;
mod report;
mod slices;
mod spread;
mod summary;
mod tally;
mod timeline;
mod verdict;
mod words;

mod compare;
mod merge;
#[cfg(test)]
mod test_report;
mod threshold;

mod error;
mod failure;

pub use asked::Asked;
pub use beats::Regularity;
pub use bodies::{Prompt, Streaming, Template, targets_of_lines};
pub use compare::{Change, Comparison};
pub use digest::{DIGESTS_MAX, Digest, Digests, digest_of};
pub use error::LoadError;
pub use failure::Failure;
pub use histograms::Histograms;
pub use live::{Live, SEEN_BELOW, Seen, Silent};
pub use merge::{Allowed, Merged, Part, merge};
pub use report::{Client, Events, Heartbeats, Hold, Report, Streams, WouldBeCut};
pub use run::{Phase, Progress, run, run_until};
pub use settings::{Protocol, Settings, Shard, Trust, WORKERS_MAX};
pub use shape::{Arrivals, Shape};
pub use slices::Slices;
pub use spread::Distribution;
pub use target::{Target, Targets};
pub use threshold::{Outcome, Threshold};
pub use timeline::{Point, Timeline};
