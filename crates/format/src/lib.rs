//! F2FS's structures on the device: superblock, checkpoints, tables, nodes, directories, attributes.
//!
//! The crate does no I/O, takes no lock and holds no unsafe code. Without its feature `std` it needs only `alloc`; the
//! feature lets checksums use the processor's own instructions. Raw structures keep the names of the kernel's
//! `include/linux/f2fs_fs.h`, so that a reader with that header open finds each field by search. Checked values are
//! domain types ([`Nid`], [`BlockAddr`], [`SegmentNo`], [`Geometry`]) that cannot be mixed up. `docs/FORMAT.md` in the
//! repository has byte maps of all structures.
//!
//! | Module | What it describes |
//! |---|---|
//! | [`superblock`], [`feature`], [`geometry`] | the two superblocks, feature bits, the areas of a volume |
//! | [`checkpoint`], [`orphan`], [`summary`], [`nat_bits`] | the blocks of a checkpoint pack |
//! | [`nat`], [`sit`] | node address table, segment information table |
//! | [`node`], [`inode`], [`path`] | node blocks, inodes, the tree from file block to address slot |
//! | [`dentry`], [`hash`], [`xattr`] | directories, the name hash, extended attributes |
//! | [`compression`], [`encryption`] | how compressed and encrypted files are stored, and shown without a key |
//! | [`mkfs`] | the layout of a new volume |
//! | [`crc`], [`bits`] | checksums and the two bit orders |
//!
//! Only blocks of 4 KiB are described, with 512 blocks to a segment. Every volume on x86-64 and on arm64 with 4 KiB
//! pages has them.
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
pub mod flipped_bit;
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
/// The same, as places in files and on devices are counted.
pub const BLOCK_BYTES: u64 = BLOCK_SIZE as u64;
/// Blocks in a segment.
pub const BLOCKS_PER_SEGMENT: u32 = 512;
/// One block as bytes.
pub type RawBlock = [u8; BLOCK_SIZE];

/// The example of this crate's README, so that it is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
