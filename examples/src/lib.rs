//! Helpers that the examples share.
