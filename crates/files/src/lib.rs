//! The F2FS namespace: inodes, directories, file data and extended attributes, on top of a volume.
//!
//! ```
//! use std::sync::Arc;
//! use f2fs_device::MemoryDevice;
//! use f2fs_files::{FileSystem, Options};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let device = Arc::new(MemoryDevice::new(32 * 1024)); // 128 MiB
//! f2fs_volume::format::format(&*device, &Default::default())?;
//!
//! let fs = FileSystem::open(device, Options::new())?;
//! fs.create_dir("/notes", 0o755)?;
//! let file = fs.create_file("/notes/today", 0o644)?;
//! file.write_at(b"buy bread", 0)?;
//! fs.checkpoint()?; // durable from here on
//!
//! let mut text = [0; 9];
//! fs.open_file("/notes/today")?.read_at(&mut text, 0)?;
//! assert_eq!(&text, b"buy bread");
//! # drop(file);
//! fs.close()?;
//! # Ok(())
//! # }
//! ```
//!
//! # Paths
//!
//! A path begins at the root, with or without a slash. Its last component, and slashes behind it, mean the same as in
//! Linux: a path that ends in a slash means a directory, and a symbolic link there is followed. A path that ends in `.`
//! or `..` can be looked up, but it can neither be made, moved nor removed, and neither can the root. Such a path is
//! refused before anything is changed.
//!
//! # Locking model
//!
//! ```text
//! rename lock (directories that change their parent) > stripes of names, ancestor first > ranges of a file, its xattrs
//!   > the volume's gate > life of an inode > page of a directory > page of a node
//! ```
//!
//! - Names in different stripes of one directory, and names in different directories, do not share an exclusive lock.
//! - Different files share none. Of one file, reads lock the blocks that they read, shared; writes those that they
//!   write, exclusively; a change of the end all blocks from there on ([`Options::range_lock`]). So readers share, a
//!   writer waits for those in its range only, and each call sees the whole of another one or nothing of it.
//! - A thread that holds a range asks for another one only if it need not wait ([`File::read_many`],
//!   [`File::write_many`]): so no two wait for each other.
//! - A read of blocks whose addresses are known touches no node: `f2fs_extent::AddressCache` has the argument why its
//!   addresses are never stale. The size is read without a lock, see `content.rs`.
//! - A lock left of the gate is taken before an operation begins, so that nobody waits for it with the gate held. A
//!   checkpoint, which closes the gate, takes only locks right of it.
//! - File-system-wide: the rename lock, for directories that change their parent. (The kernel's VFS takes it for files, too.)
//!
//! Cache lines, counted and not timed (`cargo xtask counting`, which fails if this table is no longer so):
//!
//! | 8 threads, each on objects of its own | lines written | lines fetched | written by all, each time |
//! |---|--:|--:|--:|
//! | look-up | 10 | 1 | none |
//! | create | 28 | 2 | none |
//! | unlink of a file that was there before | 27 | 2 | none |
//! | rename | 18 | 1 | none |
//! | read 4 KiB | 3 | 0 | none |
//! | overwrite 4 KiB | 19 | 0 | none |
//! | overwrite 4 KiB and sync | 44 | 14 | 8 |
//!
//! A processor remembers the directories on its paths (module `path_cache`), so look-ups write nothing of those. It
//! keeps files open that several threads open (module `open_files`): to open them there writes nothing of the inode. A line
//! that is fetched but not written by all is one where two threads meet by chance: a stripe, a shard, or a segment with
//! files of several threads. A sync joins its group and writes to the one log of warm nodes
//! (`benches/benches/cache_lines.rs` names the lines).
//!
//! In one directory, threads meet in the dentry block in which both change an entry, and, while it is inline, in its
//! inode.
//!
//! # Memory
//!
//! Memory for files that nobody uses has a limit, whatever is on the volume:
//!
//! | Kept | limit |
//! |---|---|
//! | inodes | [`Options::inode_cache`] |
//! | their locks of ranges, a byte for each block that was touched | [`Options::lock_memory`] |
//! | addresses of blocks | [`Options::address_cache`] |
//! | dentry blocks | [`Options::dentry_cache`] |
//! | blocks of files, clean and dirty | [`Options::page_cache`] |
//! | names of directories that were made here | 8 Mi of them |
//! | nodes | [`VolumeOptions::node_cache`](f2fs_volume::VolumeOptions::node_cache) |
//!
//! # What is not stored plainly
//!
//! Volumes with these forms are opened for reading only.
//!
//! | Form | read | not read |
//! |---|---|---|
//! | encrypted directory | its entries, under the names that the kernel shows without the key | the names themselves |
//! | encrypted file | attributes | its data: [`FsError::Encrypted`] |
//! | encrypted symbolic link | its target, as the kernel shows it without the key | the target itself |
//! | casefolded directory | everything; names in ASCII are found in small and capital letters, others by their exact bytes | |
//! | compressed file | clusters that stand uncompressed | the others: [`FsError::Compressed`] |
//! | verity file | its data, which is not verified | |
//! | file that stands for a device | its data: that device's bytes | |
//!
//! To find a name beyond ASCII in a casefolded directory all of its blocks are read, unless the name stands where its
//! own hash leads.
//!
//! # Write path
//!
//! File data goes to the device at once and out of place; nodes and dentry blocks are written by the checkpoint. Until
//! then a crash leaves the last checkpoint.
//!
//! With [`Options::page_cache`] data stays in memory until a sync of the file, a checkpoint, or write-back. A write
//! counts its space, so that it is the write that fails without any; its blocks are taken from the log when they are
//! written, those of a file side by side, small files together. A checkpoint writes all data first: it holds all data
//! that was written before it, as without a cache.
//!
//! # One device, one file system
//!
//! A device is opened once in a process: for writing, or any number of times for reading. [`FileSystem::open`] claims
//! it, and [`FileSystem::close`] or the drop of the last clone and handle lets it go; a file system that is leaked
//! keeps it. Formatting, checking and repairing claim it as well. The refusal is
//! [`VolumeError::AlreadyOpen`](f2fs_volume::VolumeError::AlreadyOpen).
//!
//! # Panics
//!
//! A panic that unwinds a change stops the file system, wherever it comes from: the device, [`Options::clock`], or the
//! library. From then on changes fail with [`VolumeError::Stopped`](f2fs_volume::VolumeError::Stopped), reads go on as
//! far as they can, no lock is left behind, and the next open finds the last checkpoint and the files that were synced
//! since. A panic before the change began changes nothing.
#![forbid(unsafe_code)]

mod access;
mod acl;
mod allocate_flags;
mod api;
mod cached_directory;
mod cleaner;
mod close;
mod content;
mod core;
mod cursor;
mod dentry_cache;
mod device_number;
mod dir;
mod directory;
mod dirty_directories;
mod dirty_files;
mod entry;
mod error;
mod file;
mod file_data;
mod filesystem;
mod flusher;
mod form;
mod free;
mod handle;
mod hazard;
mod hints;
mod idle;
#[cfg(feature = "uring")]
mod image;
mod inode;
mod inode_ref;
mod inode_table;
mod journal;
mod listing;
mod mark;
mod name;
mod namespace;
mod open_files;
mod open_options;
mod options;
mod page_cache;
mod path_cache;
mod ranges;
mod recovery;
mod remembered;
mod requests;
#[cfg(test)]
mod samples;
mod sparse;
mod stat;
mod stats;
mod temperature;
mod times;
mod truncate;
mod view;
mod xattr;

pub use allocate_flags::AllocateFlags;
pub use api::SetTimes;
pub use cleaner::{Cleaner, CleanerOptions, Pace};
pub use cursor::Cursor;
pub use device_number::DeviceNumber;
pub use dir::Dir;
pub use entry::BadEntry;
pub use error::{BadAttribute, FsError};
pub use file::File;
pub use file_data::read_many::ReadSlice;
pub use file_data::write_many::WriteSlice;
pub use filesystem::FileSystem;
pub use flusher::{Flusher, FlusherOptions};
#[cfg(feature = "uring")]
pub use image::ImageError;
pub use inode_ref::{InodeRef, SetAttributes};
pub use journal::create_journal;
pub use listing::{DirEntries, DirEntry, ReadDir};
pub use namespace::create::NewFile;
pub use namespace::path::path_from_bytes;
pub use namespace::rename::RenameMode;
pub use open_options::OpenOptions;
pub use options::{DirectoryLock, JournalOptions, Options};
pub use ranges::{LockWaits, RangeLock};
pub use recovery::{PassedOver, RecoveryReport};
pub use stat::{FileKind, Metadata, Time};
pub use stats::{StatKind, Stats};
pub use temperature::{Temperature, WriteHint};
pub use view::VolumeView;
pub use xattr::Xattr;

pub use f2fs_format::Nid;
pub use f2fs_format::compression::Compression;
pub use f2fs_format::encryption::EncryptionPolicy;
pub use f2fs_format::xattr::SetMode;
pub use f2fs_volume::{GivenUp, JournalMode, JournalRescue, JournalTrouble};

/// The example of this crate's README, so that it is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
