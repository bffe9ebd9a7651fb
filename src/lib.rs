//! heartline

#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;
mod boundary;
mod choice;
mod content;
mod error;
mod format;
mod head;
mod heartbeat;
mod inject;
mod ndjson;
mod neutral;

pub use error::Error;
pub use format::Format;
pub use heartbeat::Form;
