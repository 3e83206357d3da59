//! F2FS in user space: byte-compatible volumes with no file-system-wide lock on a hot path.
//!
//! This crate gathers the family. Most users want a [`FileSystem`] on a device:
//!
//! ```
//! use std::sync::Arc;
//! use f2fs::device::MemoryDevice;
//! use f2fs::{FileSystem, Options};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let device = Arc::new(MemoryDevice::new(32 * 1024)); // 128 MiB; a file or NVMe device: f2fs::uring
//! f2fs::volume::format::format(&*device, &f2fs::volume::format::FormatOptions::default())?;
//! let fs = FileSystem::open(device, Options::new())?;
//! fs.create_file("/hello", 0o644)?.write_at(0, b"world")?;
//! fs.close()?;
//! # Ok(())
//! # }
//! ```
//!
//! Those who bring their own storage engine take a layer of it:
//!
//! | Module | What it is |
//! |---|---|
//! | [`files`] | names, files, directories, attributes |
//! | [`volume`] | superblock, checkpoint packs, node store; format and check |
//! | [`nat`] | node address table and free-NID allocator |
//! | [`segment`] | segment information, summaries, the logs |
//! | [`extent`] | extent-bit lock table |
//! | [`uring`] | io_uring back end for files and block devices |
//! | [`pmem`] | a back end for persistent memory: DAX files and character devices |
//! | [`device`] | the block device trait, the memory device, devices that fail on purpose |
//! | [`format`](mod@format) | on-disk structures |
//! | [`sync`] | the locks and atomics that all of it uses |
#![forbid(unsafe_code)]

pub use f2fs_device as device;
pub use f2fs_extent as extent;
pub use f2fs_files as files;
pub use f2fs_format as format;
pub use f2fs_nat as nat;
pub use f2fs_pmem as pmem;
pub use f2fs_segment as segment;
pub use f2fs_sync as sync;
pub use f2fs_uring as uring;
pub use f2fs_volume as volume;

pub use f2fs_files::{
    BadEntry, Compression, Dir, DirEntries, DirEntry, DirectoryLock, EncryptionPolicy, File, FileKind, FileSystem,
    FsError, LockWaits, NewFile, Options, RangeLock, ReadSlice, RecoveryReport, RenameMode, SetMode, SetTimes, Stat,
    Time, WriteSlice,
};
pub use f2fs_volume::{FsyncMode, Volume, VolumeError};

/// The example of the README, so that it is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
