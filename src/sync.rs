//! The primitives that `cell` and `lease` are built on; the model checker puts its own in their place (`tests/model.rs`).

pub(crate) use futures::task::AtomicWaker;
pub(crate) use std::sync::Arc;
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
