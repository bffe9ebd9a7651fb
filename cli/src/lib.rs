//! What the command `heartline` is made of: a proxy, a load harness, a scripted engine, and a demonstration of the three.
//!
//! - [`proxy`] stands in front of an engine that has no heartbeats and gives them to its streams.
//! - [`load`] holds thousands of streams and reports the silence that each one saw.
//! - [`sim`] is an engine to test against: it speaks the real APIs and is as slow as its script says.
//! - [`demo`] is the problem and the cure side by side, in seconds.
//!
//! The heartbeats themselves are the library's, `heartline`, by its public face only.

#![forbid(unsafe_code)]

// In reading order; each imports only from below (`tests/tidy.rs`).
pub mod demo;

pub mod load;
pub mod proxy;
pub mod sim;

#[doc(hidden)]
pub mod values;
