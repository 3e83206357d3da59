//! Block devices for tests: they fail, record, list what a power cut may leave, and charge virtual time.
//!
//! Each of them implements or wraps a [`BlockDevice`](f2fs_device::BlockDevice), so that a storage engine runs on it unchanged.
//! All are safe code and depend on nothing but their calls: the same calls give the same faults, images and times.
//!
//! | Item | What it is |
//! |---|---|
//! | [`FaultDevice`], [`FaultRule`] | errors, torn and lost writes at a chosen operation |
//! | [`RecordingDevice`], [`CrashLog`], [`Replay`] | every write and flush in order, and the images that a power cut may leave |
//! | [`CutPlan`], [`Cut`] | all of those images, or a choice of them, each with a name to find it again by |
//! | [`TimingDevice`] | virtual time for each request, and counts of requests by size |
//! | [`pmem`] | persistent memory whose power can be cut between any two stores; a region that counts lines and fences |
//!
//! # Locking model
//!
//! These devices are made to be exact, not to scale. [`RecordingDevice`] applies one change at a time, since its point is a total
//! order. [`FaultDevice`] counts operations under a lock, which it does not hold during I/O. [`TimingDevice`] adds to shared counters.
//! [`SimulatedRegion`](pmem::SimulatedRegion) has one lock for all of a region.
#![forbid(unsafe_code)]

mod crash;
mod cut;
mod fault;
pub mod pmem;
mod record;
mod timing;

pub use crash::{CrashLog, Event, Replay};
pub use cut::{Cut, CutPlan, ParseCutError, Tear};
pub use fault::{Fault, FaultDevice, FaultRule};
pub use record::{IoCounts, RecordingDevice};
pub use timing::{TimingDevice, TimingStat, Traffic};

/// The example of this crate's README, so that it is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
