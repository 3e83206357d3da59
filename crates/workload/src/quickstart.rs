//! A whole life of a volume: format, create, write, read, unlink, checkpoint, close, open again, verify, check.
//!
//! The files are numbered. Name, directory, size and content of each follow from its number ([`Plan`]). So every byte
//! can be verified after the volume was opened again, without a record of the writes. Half of the small files fit into
//! their inodes, most others are one block, some are up to five blocks and end inside one; a few large ones are written
//! and read in pieces of 2 MiB. Every file with an odd number is unlinked.
//!
//! ```
//! use std::sync::Arc;
//! use f2fs::device::{BlockDevice, MemoryDevice};
//! use f2fs_workload::quickstart::{Config, Phase, run};
//!
//! let config = Config { files: 500, large_files: 1, ..Config::default() };
//! let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(config.volume_bytes() / 4096));
//! let report = run(&|| Ok(device.clone()), &config, &())?;
//! assert_eq!(report.phase(Phase::Unlink).map(|phase| phase.operations), Some(250));
//! # Ok::<(), f2fs_workload::quickstart::QuickstartError>(())
//! ```
//!
//! # What the rates say
//!
//! Operations of a phase over its time, from before its threads start until the last has ended. Paths are resolved from
//! the root each time. Creating and unlinking change nodes and directories in memory, which the checkpoints of the
//! phase (if it is long enough to need one) and the phase `checkpoint` write. Small reads in the phase `read` find
//! inodes in memory; those in `verify` come from the device, node and data, because the volume was opened again.
//!
//! # Locking model
//!
//! Threads take numbers from one counter, 64 at a time; a result is theirs until they end.

mod error;
mod parallel;
mod phases;
mod plan;

use std::time::Duration;

pub use error::QuickstartError;
pub use phases::{OpenDevice, run};
pub use plan::{FileSpec, LARGE_PIECE, Plan};

/// The sizes of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Small files to create.
    pub files: u64,
    /// Directories that they are spread over, at least one.
    pub directories: u64,
    /// Threads, at least one.
    pub threads: usize,
    /// Large files.
    pub large_files: u64,
    /// Bytes in each large file.
    pub large_bytes: u64,
}

impl Default for Config {
    /// 100,000 files in 16 directories, 8 large ones of 32 MiB, 4 threads.
    fn default() -> Self {
        Config { files: 100_000, directories: 16, threads: 4, large_files: 8, large_bytes: 32 << 20 }
    }
}

impl Config {
    /// Size in bytes of a volume on which all of it fits without cleaning: a whole number of 2 MiB segments.
    #[must_use]
    pub fn volume_bytes(&self) -> u64 {
        // A file takes its node twice (two checkpoints may be in between) and two blocks on average.
        let bytes = (256 << 20) + self.files * (24 << 10) + self.large_files * self.large_bytes * 2;
        bytes.next_multiple_of(2 << 20)
    }
}

/// A part of the whole, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// Laying out the volume and opening it. One operation.
    Format,
    /// Creating the small files, empty. An operation is a file.
    Create,
    /// Writing the small files. An operation is a file.
    Write,
    /// Reading the small files and comparing. An operation is a file.
    Read,
    /// Writing the large files. An operation is a piece of 2 MiB.
    WriteLarge,
    /// Reading the large files and comparing. An operation is a piece of 2 MiB.
    ReadLarge,
    /// The checkpoint that makes all of it durable. One operation.
    Checkpoint,
    /// Unlinking the small files with odd numbers. An operation is a file.
    Unlink,
    /// The last checkpoint. One operation.
    Close,
    /// Opening the device and the volume again. One operation.
    Open,
    /// Comparing names, sizes and every byte. An operation is a file, present or absent.
    Verify,
    /// The read-only consistency check. An operation is an inode.
    Check,
}

impl Phase {
    /// All phases, in order.
    pub const ALL: [Phase; 12] = [
        Phase::Format,
        Phase::Create,
        Phase::Write,
        Phase::Read,
        Phase::WriteLarge,
        Phase::ReadLarge,
        Phase::Checkpoint,
        Phase::Unlink,
        Phase::Close,
        Phase::Open,
        Phase::Verify,
        Phase::Check,
    ];

    /// Its name in tables and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Phase::Format => "format",
            Phase::Create => "create",
            Phase::Write => "write",
            Phase::Read => "read",
            Phase::WriteLarge => "write large",
            Phase::ReadLarge => "read large",
            Phase::Checkpoint => "checkpoint",
            Phase::Unlink => "unlink",
            Phase::Close => "close",
            Phase::Open => "open",
            Phase::Verify => "verify",
            Phase::Check => "check",
        }
    }
}

/// The work of a phase, and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseReport {
    /// The phase.
    pub phase: Phase,
    /// Operations, as the phase counts them.
    pub operations: u64,
    /// Bytes of file data.
    pub bytes: u64,
    /// Its time.
    pub time: Duration,
}

impl PhaseReport {
    /// Operations a second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        per_second(self.operations, self.time)
    }

    /// Bytes of file data a second.
    #[must_use]
    pub fn bandwidth(&self) -> f64 {
        per_second(self.bytes, self.time)
    }
}

fn per_second(count: u64, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64().max(1e-9)
}

/// The result of a run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// The configuration.
    pub config: Config,
    /// The device, in its own words.
    pub device: String,
    /// Size of the device in bytes.
    pub volume_bytes: u64,
    /// The phases, in order.
    pub phases: Vec<PhaseReport>,
}

impl Report {
    /// One phase.
    #[must_use]
    pub fn phase(&self, phase: Phase) -> Option<&PhaseReport> {
        self.phases.iter().find(|report| report.phase == phase)
    }
}

/// Somebody who watches: a progress bar, say. `()` does not.
pub trait Observer: Sync {
    /// A phase begins; it has `total` steps.
    fn begin(&self, _phase: Phase, _total: u64) {}
    /// `steps` more are done. Called from any thread of the phase.
    fn advance(&self, _steps: u64) {}
    /// A phase has ended.
    fn end(&self, _report: &PhaseReport) {}
}

impl Observer for () {}
