//! Node address table: where each node's block is.

use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::RawBlock;

/// Entries in a NAT block.
pub const ENTRIES_PER_BLOCK: usize = 455;

/// One entry (`struct f2fs_nat_entry`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct RawNatEntry {
    /// Rises when the node is freed, so that a stale block is not taken for live.
    pub version: u8,
    /// The inode that the node belongs to.
    pub ino: U32,
    /// Where the node's block is; 0: the NID is free.
    pub block_addr: U32,
}

const _: () = assert!(size_of::<RawNatEntry>() == 9);

/// A block of the table (`struct f2fs_nat_block`): the entries of NIDs `455 n .. 455 (n + 1)`.
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct NatBlock {
    /// The entries.
    pub entries: [RawNatEntry; ENTRIES_PER_BLOCK],
    /// Zero.
    pub padding: u8,
}

const _: () = assert!(size_of::<NatBlock>() == 4096);

impl core::fmt::Debug for NatBlock {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let used = self.entries.iter().filter(|entry| entry.block_addr.get() != 0).count();
        f.debug_struct("NatBlock").field("used", &used).finish_non_exhaustive()
    }
}

impl NatBlock {
    /// All entries free.
    pub const ZERO: NatBlock = zerocopy::transmute!([0u8; 4096]);

    /// The block as a piece of the table.
    #[must_use]
    pub fn read(block: &RawBlock) -> &NatBlock {
        zerocopy::transmute_ref!(block)
    }

    /// The block as bytes.
    #[must_use]
    pub fn as_block(&self) -> &RawBlock {
        zerocopy::transmute_ref!(self)
    }
}
