//! Helpers that the benches share.

pub mod instructions;
