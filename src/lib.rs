//! Keeps slow response streams alive.
//!
//! A response stream that stays silent is cut by some hop on the way: Cloudflare after 100 s or more, nginx and most load
//! balancers after 60 s. heartline writes a few neutral bytes (a newline, every 30 s) into every live stream, so that no hop
//! sees silence, and never where they would change what a client decodes. One registry holds every stream, one interval
//! task walks it.
//!
//! ```
//! use bytes::Bytes;
//! use futures::stream;
//! use heartline::Heartline;
//! use std::time::Duration;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let heart = Heartline::builder().interval(Duration::from_secs(30)).build()?;
//! let tokens = stream::pending::<Result<Bytes, std::io::Error>>(); // the engine's slow stream
//! let stream = heart.keep_alive_stream(tokens); // the same, with a newline every 30 s
//! assert_eq!(heart.active(), 1);
//! drop(stream); // the client went away: the stream is gone from the registry
//! assert_eq!(heart.active(), 0);
//! # Ok(()) }
//! ```
//!
//! Bodies: [`Heartline::keep_alive`]. Sending events: [`Heartline::channel`]. One stream's own settings:
//! [`Heartline::stream`]. A whole service: `Heartline::layer` (feature `tower`). The end: [`Heartline::drain`].

#![forbid(unsafe_code)]

// In reading order, from what a user calls down to the bytes; each imports only from below (`tests/tidy.rs`).
#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;

#[cfg(feature = "tower")]
mod layer;

mod channel;

mod builder;

mod stream;

mod body;

mod live;

mod drain;

mod broadcaster;

mod task;

mod sweep;

mod guard;

mod core;

mod registry;

mod cell;
mod lease;
mod totals;

mod sync;

mod inject;

mod boundary;
mod ndjson;

mod config;

mod content;

mod choice;
mod head;

pub mod api;

pub mod decode;
mod event;
mod heartbeat;

mod neutral;

mod telemetry;

mod error;

mod ending;

mod promises;
mod verdict;

mod format;
pub mod hops;

pub use api::ErrorShape;
pub use body::KeepAlive;
pub use broadcaster::{Heartline, StreamSnapshot, global};
pub use builder::StreamBuilder;
pub use channel::{EventBody, EventSender, SendError};
pub use config::{Builder, Cadence, Failures};
pub use ending::Ended;
pub use error::{BoxError, Error, StreamError};
pub use event::Event;
pub use format::Format;
pub use heartbeat::Form;
#[cfg(feature = "tower")]
pub use layer::{HeartlineFuture, HeartlineLayer, HeartlineService};
pub use stream::KeepAliveStream;
pub use telemetry::describe_metrics;
pub use totals::Totals;
pub use verdict::Verdict;

/// The README and the pages under `docs`, compiled.
#[cfg(all(doctest, feature = "tower"))]
mod prose {
    macro_rules! pages {
        ($($name:ident = $file:literal;)*) => { $(#[doc = include_str!($file)] struct $name;)* };
    }
    pages! {
        Readme = "../README.md";
        Architecture = "../docs/architecture.md";
        Design = "../docs/design.md";
        Forms = "../docs/forms.md";
        Metrics = "../docs/metrics.md";
        Embedding = "../docs/embedding.md";
        Alternatives = "../docs/alternatives.md";
        Hops = "../docs/hops.md";
    }
}
