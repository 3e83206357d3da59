//! Helpers that the examples share.
#![forbid(unsafe_code)]

mod output;
pub mod program;

pub use output::Output;

/// The example of the repository's README, so that it is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
