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
//! [`FileSystem::open`] takes any device instead of a path: in memory, NVMe, or one of your own. [`OpenOptions`] opens
//! files as the standard library's does, [`Cursor`] reads and writes them as streams, [`File::punch_hole`] and its like
//! are `fallocate` and `lseek`, and [`FileSystem::stats`] is for those who export counts.
//!
//! # What a program has to keep to
//!
//! - After `fork` a child must not use a [`FileSystem`], [`File`] or device that was opened before, nor drop it. The
//!   rings are not mapped in the child, which would end with SIGSEGV, and its copy of the volume's state would damage
//!   the volume. It calls `exec` or `_exit`; [`Command`](std::process::Command) does that.
//! - A device of one's own must not call into the file system that lies on it
//!   ([`f2fs_device`](device#a-device-of-ones-own)). Nor may a clock ([`Options::clock`]), or a subscriber of the
//!   feature `tracing`: they are asked and told while locks are held, and a call would wait for them. A subscriber that
//!   writes its lines into the file system hands them to a thread and does not wait for that.
//! - A thread that opens a file system needs 256 KiB of stack; those of `std` have 2 MiB.
//!
//! # Features
//!
//! | Feature | off by default |
//! |---|---|
//! | `tracing` | spans `open`, `recover`, `checkpoint`, `clean`, `plan_repair`, `repair`, with how each ended; without it nothing of them is compiled |
//! | `serde` | [`Stats`] can be serialized |
//!
//! # Layers
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
//! | [`journal`] | a write-ahead log in persistent memory or on a device: a record is durable with one fence |
//! | [`device`] | the block device trait, the memory device, a device of zones |
//! | [`format`](mod@format) | on-disk structures |
//! | [`sync`] | the locks and atomics that all of it uses |
//!
//! The feature `baselines`, off by default, adds what Linux and others do in place of three parts, to measure against:
//! the search for free NIDs, the lock of a directory, the lock of a file's ranges.
#![forbid(unsafe_code)]

pub use f2fs_check as check;
pub use f2fs_device as device;
pub use f2fs_extent as extent;
pub use f2fs_files as files;
pub use f2fs_format as format;
pub use f2fs_journal as journal;
pub use f2fs_nat as nat;
pub use f2fs_pmem as pmem;
pub use f2fs_segment as segment;
pub use f2fs_sync as sync;
pub use f2fs_uring as uring;
pub use f2fs_volume as volume;

// Everything that a signature of these types names stands here, too (`cargo test -p xtask --test facade`).
pub use f2fs_device::{AlignedBuf, AlreadyOpen, BlockDevice, DeviceError, DeviceInfo, SpanError, ZoneState};
pub use f2fs_files::{
    AllocateFlags, BadAttribute, BadEntry, Cleaner, CleanerOptions, Compression, Cursor, DeviceNumber, Dir, DirEntries,
    DirEntry, DirectoryLock, EncryptionPolicy, File, FileKind, FileSystem, Flusher, FlusherOptions, FsError, GivenUp,
    ImageError, InodeRef, JournalMode, JournalOptions, JournalRescue, JournalTrouble, LockWaits, Metadata, NewFile,
    OpenOptions, Options, Pace, PassedOver, RangeLock, ReadDir, ReadSlice, RecoveryReport, RenameMode, SetAttributes,
    SetMode, SetTimes, StatKind, Stats, Temperature, Time, VolumeView, WriteHint, WriteSlice, Xattr, create_journal,
    path_from_bytes,
};
pub use f2fs_format::checkpoint::Checkpoint;
pub use f2fs_format::feature::Features;
pub use f2fs_format::superblock::SuperBlock;
pub use f2fs_format::{BlockAddr, Corruption, FormatError, Geometry, LogType, Nid, SegmentNo};
pub use f2fs_journal::{SharedMedium, Usage as JournalUsage};
pub use f2fs_nat::{NatError, NatStats, Policy as NidPolicy};
pub use f2fs_segment::{SegmentError, SegmentInfo, plan::Strategy};
pub use f2fs_sync::PlainArc;
pub use f2fs_uring::OpenError;
pub use f2fs_volume::devices::DevicesError;
pub use f2fs_volume::format::{FewZones, FormatOptions, FormatReport, FormatVolumeError, Signature};
pub use f2fs_volume::{
    Allocation, ChainNode, CheckpointReport, CleanReport, CleanStep, CostModel, Damage, FsyncMode, StopCause,
    SyncWriters, UnknownAllocation, VictimPolicy, VolumeError, VolumeOptions, VolumeStat, WriteStat,
};

/// The example of this crate's README, so that it is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
