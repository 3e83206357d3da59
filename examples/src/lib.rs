//! Helpers that the examples share.

/// The example of the repository's README, so that it is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
