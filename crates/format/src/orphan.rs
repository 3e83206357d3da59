//! Orphan blocks of a checkpoint pack: inodes that are unlinked but were still open.

use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::RawBlock;

/// Inode numbers in one block.
pub const PER_BLOCK: usize = 1020;

/// Blocks that so many inode numbers take in a pack.
#[must_use]
pub const fn blocks_for(count: usize) -> u32 {
    count.div_ceil(PER_BLOCK) as u32
}

/// One block of orphan inode numbers (`struct f2fs_orphan_block`).
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct OrphanBlock {
    /// Inode numbers; `entry_count` of them are in use.
    pub ino: [U32; PER_BLOCK],
    /// Zero.
    pub reserved: U32,
    /// Index of this block among the pack's orphan blocks, from 1.
    pub blk_addr: U16,
    /// How many orphan blocks the pack has.
    pub blk_count: U16,
    /// Inode numbers in this block.
    pub entry_count: U32,
    /// Not computed by any implementation; zero.
    pub check_sum: U32,
}

const _: () = assert!(size_of::<OrphanBlock>() == 4096);

impl core::fmt::Debug for OrphanBlock {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("OrphanBlock")
            .field("blk_addr", &self.blk_addr)
            .field("blk_count", &self.blk_count)
            .field("entry_count", &self.entry_count)
            .finish_non_exhaustive()
    }
}

impl OrphanBlock {
    /// All zero.
    pub const ZERO: OrphanBlock = zerocopy::transmute!([0u8; 4096]);

    /// The block as orphan numbers.
    #[must_use]
    pub fn read(block: &RawBlock) -> OrphanBlock {
        zerocopy::transmute!(*block)
    }

    /// The block as bytes.
    #[must_use]
    pub fn as_block(&self) -> &RawBlock {
        zerocopy::transmute_ref!(self)
    }
}
