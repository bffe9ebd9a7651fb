//! The beat: the registry of live streams, the one task that walks it, and what passes between the task and a stream.
//!
//! Each live stream has an entry in a sharded `DashMap` (`registry`), and in the entry the sending end of a channel of its own
//! (`cell`). The task (`task`) walks the entries slice by slice (`sweep`) and sends to those that are due; a guard (`guard`)
//! removes the entry when the stream's body goes.

pub(crate) mod cell;
pub(crate) mod core;
pub(crate) mod guard;
pub(crate) mod lease;
pub(crate) mod live;
pub(crate) mod registry;
pub(crate) mod sweep;
pub(crate) mod sync;
pub(crate) mod task;
pub(crate) mod totals;
