//! Helpers that the benches share.

pub mod instructions;
pub mod report;
pub mod workers;
