//! F2FS on-disk structures: what stands in the blocks of a volume, and nothing that moves them.
//!
//! The crate does no I/O, takes no lock, holds no unsafe code and needs only `alloc` (without its feature `std`, which lets
//! checksums use what instructions the processor has). Raw structures keep the names of
//! the kernel's `include/linux/f2fs_fs.h`, so that a reader with that header open finds each field by search; what has
//! been checked is a domain type ([`Nid`], [`BlockAddr`], [`SegmentNo`], [`Geometry`]) that cannot be mixed up with another.
//!
//! | Module | What it describes |
//! |---|---|
//! | [`superblock`], [`feature`], [`geometry`] | the two superblocks, feature bits, the areas of a volume |
//! | [`checkpoint`], [`orphan`], [`summary`], [`nat_bits`] | the blocks of a checkpoint pack |
//! | [`nat`], [`sit`] | node address table, segment information table |
//! | [`node`], [`inode`], [`path`] | node blocks, inodes, the tree from file block to address slot |
//! | [`dentry`], [`hash`], [`xattr`] | directories, the name hash, extended attributes |
//! | [`compression`], [`encryption`] | how compressed and encrypted files are stored, and shown without a key |
//! | [`mkfs`] | what a new volume looks like |
//! | [`crc`], [`bits`] | checksums and the two bit orders |
//!
//! Only 4 KiB blocks are described, with 512 blocks to a segment: what every volume on x86-64 and 4 KiB-page arm64 has.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod bits;
pub mod checkpoint;
pub mod compression;
pub mod crc;
pub mod dentry;
pub mod encryption;
mod error;
pub mod feature;
pub mod geometry;
pub mod hash;
pub mod inode;
pub mod mkfs;
pub mod nat;
pub mod nat_bits;
pub mod node;
pub mod orphan;
pub mod path;
pub mod sit;
pub mod summary;
pub mod superblock;
pub mod trouble;
mod types;
pub mod xattr;

pub use error::{Corruption, FormatError};
pub use geometry::Geometry;
pub use types::{BlockAddr, LogType, Nid, SegmentNo};

/// Bytes in a block.
pub const BLOCK_SIZE: usize = 4096;
/// Blocks in a segment.
pub const BLOCKS_PER_SEGMENT: u32 = 512;
/// One block as bytes.
pub type RawBlock = [u8; BLOCK_SIZE];

/// The example of this crate's README, so that it is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
