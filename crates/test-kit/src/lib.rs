//! Shared by the tests of several crates, and by the fuzz targets. It is not published.
//!
//! | Module | What it has |
//! |---|---|
//! | [`volumes`] | small volumes, and the judges of what is left of them |
//! | [`model`], [`worker`] | a naive file system, and random operations on it beside the real one |
//! | [`synced`] | volumes with files that were synced after a checkpoint |
//! | [`entries`] | where entries of NAT and SIT stand, to flip bits of them |
//! | [`harm`] | volumes with one damage, by hand |
//! | [`hostile`] | volumes with arbitrary damage behind right checksums, and what is done with them |
//!
//! Devices that fail, wait, record or are sparse, and random numbers, are those of `f2fs-device-test`.
//!
//! Locking rules: there is no state in common. [`volumes::within`] waits for a thread of its own.
#![forbid(unsafe_code)]
#![allow(missing_docs, missing_debug_implementations, reason = "names say what helpers of tests are")]
#![allow(clippy::unwrap_used, clippy::new_without_default, reason = "a helper that fails is a failed test")]

pub mod entries;
pub mod harm;
pub mod hostile;
pub mod model;
pub mod synced;
pub mod volumes;
pub mod worker;
