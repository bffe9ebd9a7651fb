//! heartline

#[cfg(feature = "sim")]
pub mod sim;
