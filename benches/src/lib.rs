//! Helpers that the benches share.

pub mod instructions;
pub mod range_locks;
pub mod report;
pub mod workers;
