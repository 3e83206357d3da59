//! Block devices for tests: they fail, record, list what a power cut may leave, and charge virtual time.
//!
//! Each of them implements or wraps a [`BlockDevice`](f2fs_device::BlockDevice), so that a storage engine runs on it
//! unchanged. All are safe code and depend on nothing but their calls: the same calls give the same faults, images and
//! times.
//!
//! | Item | What it is |
//! |---|---|
//! | [`FaultDevice`], [`FaultRule`] | errors, torn and lost writes at a chosen operation |
//! | [`RecordingDevice`], [`CrashLog`], [`Replay`] | every write and flush in order, and the images that a power cut may leave |
//! | [`RecordedPart`] | one of several devices whose changes and flushes stand in one log |
//! | [`LoggingDevice`] | the same into a file, in the format of Linux's `log-writes`; [`CrashLog`] reads such files |
//! | [`CutPlan`], [`Cut`] | all of those images, or a choice of them, each with a name to find it again by |
//! | [`HeldDevice`], [`LateDevice`] | a request that waits until a test lets it go on; requests that happen when somebody waits for them |
//! | [`UnorderedDevice`] | requests that take their time, and end in any order |
//! | [`SlowDevice`] | one request after the other, each for as long as its size costs, in real time |
//! | [`SparseDevice`] | a device as large as you like, of which each copy takes what was changed on it |
//! | [`ModelledSsd`], [`ModelledRegion`], [`play()`] | an SSD and persistent memory in virtual time, for threads that are played in turn |
//! | [`WearingZones`] | a zone that wears out or dies when it is to be changed |
//! | [`TimingDevice`] | virtual time for each request, and counts of requests by size |
//! | [`pmem`] | persistent memory whose power can be cut between any two stores; a region that counts lines and fences |
//! | [`Random`] | random numbers, the same for the same seed |
//!
//! # Locking model
//!
//! These devices are made to be exact, not to scale. [`RecordingDevice`] applies one change at a time, since its point
//! is a total order; so does [`LoggingDevice`] with its log. [`FaultDevice`] counts operations under a lock, which it
//! does not hold during I/O. [`TimingDevice`] adds to shared counters; [`SlowDevice`] gives each request its place in
//! one line. [`SimulatedRegion`](pmem::SimulatedRegion) has one lock for all of a region.
#![forbid(unsafe_code)]

mod crash;
mod cut;
mod fault;
mod flushed;
mod held;
mod late;
mod logging;
mod modelled;
pub mod pmem;
mod random;
mod record;
mod slow;
mod sparse;
mod timing;
mod unordered;
mod wear;
mod write_log;

pub use crash::{CrashLog, Event, Replay};
pub use cut::{Cut, CutPlan, ParseCutError, Tear};
pub use fault::{Fault, FaultDevice, FaultRule, ParseFaultError};
pub use flushed::FlushedDevice;
pub use held::HeldDevice;
pub use late::LateDevice;
pub use logging::LoggingDevice;
pub use modelled::{Charge, Ledger, ModelledRegion, ModelledSsd, NvdimmModel, Place, Played, SsdModel, play};
pub use random::{Random, bytes};
pub use record::{IoCounts, RecordedPart, RecordingDevice};
pub use slow::SlowDevice;
pub use sparse::SparseDevice;
pub use timing::{TimingDevice, TimingStat, Traffic};
pub use unordered::UnorderedDevice;
pub use wear::WearingZones;
pub use write_log::WriteLogError;

/// The example of this crate's README, so that it is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
