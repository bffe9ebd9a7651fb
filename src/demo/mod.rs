//! The problem and the cure, side by side, on one machine: `heartline demo`.
mod cut;
mod gateway;
