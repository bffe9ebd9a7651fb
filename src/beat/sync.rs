//! The primitives that `cell` and `lease` are built on; the model checker puts its own in their place (`tests/model.rs`).

pub(crate) use futures::task::AtomicWaker;
pub(crate) use std::sync::Arc;
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Runs a unit test of those files once, as they are; the model checker's twin runs it under every interleaving.
#[cfg(test)]
pub(crate) fn check(test: impl Fn() + Send + Sync + 'static) {
    test();
}
