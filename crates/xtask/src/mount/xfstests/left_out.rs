//! The tests of `generic` that are not run, or that fail.

/// Tests that the suite does not run on these mounts, by the reason.
pub(super) const NOT_RUN: &[(&str, &[u16])] = &[];

/// Tests that fail, by the reason.
pub(super) const FAIL: &[(&str, &[u16])] = &[];

/// The tests of a quick run.
pub(super) const QUICK: &[u16] = &[1, 2];
