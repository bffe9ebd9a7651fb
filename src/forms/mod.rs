//! The formats of streams, the forms of heartbeats, and events: written and read.

pub mod decode;
pub(crate) mod event;
pub(crate) mod format;
pub(crate) mod heartbeat;
pub(crate) mod neutral;
