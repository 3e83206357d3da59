//! F2FS in user space: byte-compatible volumes with no file-system-wide lock on a hot path.
//!
//! This crate gathers the family. Most users want a [`FileSystem`] on a device:
//!
//! ```
//! use f2fs::{FileSystem, Options};
//!
//! # fn main() -> std::io::Result<()> {
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("volume.img");
//! let fs = FileSystem::create_path(&path, 128 << 20, &Default::default(), Options::new())?;
//! fs.create_file("/hello", 0o644)?.write_at(b"world", 0)?;
//! fs.close()?;
//! drop(fs); // and with it the lock on the file
//!
//! let fs = FileSystem::open_path(&path, Options::new().read_only(true))?;
//! assert_eq!(fs.metadata("/hello")?.size, 5);
//! # Ok(())
//! # }
//! ```
//!
//! [`FileSystem::open`] takes any device instead of a path: in memory, NVMe, or one of your own.
//!
//! Those who bring their own storage engine take a layer of it:
//!
//! | Module | What it is |
//! |---|---|
//! | [`files`] | names, files, directories, attributes |
//! | [`check`] | check and repair |
//! | [`volume`] | superblock, checkpoint packs, node store; format |
//! | [`nat`] | node address table and free-NID allocator |
//! | [`segment`] | segment information, summaries, the logs |
//! | [`extent`] | extent-bit lock table |
//! | [`uring`] | io_uring back end for files and block devices |
//! | [`pmem`] | a back end for persistent memory: DAX files and character devices |
//! | [`device`] | the block device trait, the memory device, devices that fail on purpose |
//! | [`format`](mod@format) | on-disk structures |
//! | [`sync`] | the locks and atomics that all of it uses |
#![forbid(unsafe_code)]

pub use f2fs_check as check;
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
    BadAttribute, BadEntry, Compression, Cursor, Dir, DirEntries, DirEntry, DirectoryLock, EncryptionPolicy, File,
    FileKind, FileSystem, FsError, ImageError, InodeRef, LockWaits, Metadata, NewFile, Options, RangeLock, ReadSlice,
    RecoveryReport, RenameMode, SetAttributes, SetMode, SetTimes, Time, WriteSlice,
};
pub use f2fs_volume::{FsyncMode, Volume, VolumeError};

/// The example of this crate's README, so that it is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
