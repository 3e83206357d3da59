//! Workload drivers shared by the f2fs benches, examples and command
//!
#![forbid(unsafe_code)]

pub mod manifest;
