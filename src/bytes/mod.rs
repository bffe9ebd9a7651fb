//! The bytes of a stream that passes: where in it may a heartbeat stand, and what may it be there? Pure: no clock, no I/O.

pub(crate) mod boundary;
pub(crate) mod content;
pub(crate) mod head;
pub(crate) mod inject;
pub(crate) mod ndjson;
