//! heartline
