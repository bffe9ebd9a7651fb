//! heartline
#[cfg(feature = "cli")]
pub mod demo;
