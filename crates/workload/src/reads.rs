//! Reads of 4 KiB from one file, or from a file each, by many threads: the experiment of the paper on single-file reads
//! of Btrfs, with the lock table of `f2fs-extent` and with a tree of locked ranges in Btrfs' shape.
//!
//! ```
//! use std::sync::Arc;
//! use f2fs::device::MemoryDevice;
//! use f2fs_workload::reads::{Files, Setting, prepare};
//!
//! let device = Arc::new(MemoryDevice::new(32 * 1024)); // 128 MiB
//! let files = Files { count: 1, bytes: 4 << 20 };
//! prepare(device.clone(), files, &|_| ())?;
//! let setting = Setting { threads: 2, reads: 1000, ..Setting::default() };
//! let volume = files.open(device, setting.table)?;
//! let measured = volume.measure(&setting)?;
//! assert_eq!(measured.latencies.len(), 1000);
//! volume.close()?;
//! # Ok::<(), f2fs_workload::reads::ReadsError>(())
//! ```
//!
//! # What is measured
//!
//! A fixed number of reads, divided among the threads; the time is that from the first thread's start to the last one's
//! end. With more threads than processors the threads share these, and the figures tell whether anything collapses, not
//! how it scales. Before it is measured the whole file was read once, so that nodes and addresses are in memory; the
//! data is read from the device each time. Every block carries its number, which is compared.
//!
//! At depth 1 a thread calls [`File::read_at`](f2fs::File::read_at), as fio's psync engine calls `pread`. At a depth of
//! `n` it hands [`File::read_many`](f2fs::File::read_many) `64 n` reads at a time, of which `n` are on the device. Of
//! these nobody sees the single read; a sixty-fourth of the call counts as its latency, which is the mean by Little's law.
//!
//! The share of time in locks is the time that threads waited for ranges of the files
//! ([`File::lock_waits`](f2fs::File::lock_waits)), by the time of all threads together. Spinning inside of a lock is
//! not seen.

mod error;
mod files;
mod fio;
mod measured;
mod setting;
mod work;

pub use error::ReadsError;
pub use files::{Files, Volume, fill, prepare};
pub use fio::{Engine, FioError, fio};
pub use measured::Measured;
pub use setting::{Pattern, Setting, Sharing};

/// The paper's measurements (its table 2): jobs, thousands of reads a second of Btrfs with psync, per cent of the time
/// in locks.
pub const PUBLISHED: [(usize, f64, f64); 8] = [
    (1, 10.8, 0.0),
    (5, 54.2, 0.0),
    (10, 99.1, 1.9),
    (20, 165.0, 18.8),
    (30, 164.0, 56.2),
    (50, 82.2, 79.8),
    (80, 72.4, 84.5),
    (120, 119.0, 89.2),
];
