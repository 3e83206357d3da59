//! Segment information table: which blocks of each main segment are valid.

use zerocopy::little_endian::{U16, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::{LogType, RawBlock};

/// Entries in a SIT block.
pub const ENTRIES_PER_BLOCK: usize = 55;
/// Bytes of a segment's valid map.
pub const VALID_MAP_SIZE: usize = 64;

/// One segment's entry (`struct f2fs_sit_entry`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct RawSitEntry {
    /// The log type in bits 15..10, the number of valid blocks in bits 9..0.
    pub vblocks: U16,
    /// One bit a block, most significant bit first.
    pub valid_map: [u8; VALID_MAP_SIZE],
    /// Modification time, seconds since the volume was first mounted (`elapsed_time` base).
    pub mtime: U64,
}

const _: () = assert!(size_of::<RawSitEntry>() == 74);

impl RawSitEntry {
    /// A free segment.
    pub const ZERO: RawSitEntry = zerocopy::transmute!([0u8; 74]);

    /// Valid blocks, as stored.
    #[must_use]
    pub fn valid_blocks(&self) -> u32 {
        u32::from(self.vblocks.get() & 0x3ff)
    }

    /// The type number, as stored; numbers above 5 are corrupt.
    #[must_use]
    pub fn type_number(&self) -> u8 {
        (self.vblocks.get() >> 10) as u8
    }

    /// The log that the segment belongs to; `None` if the number is corrupt.
    #[must_use]
    pub fn log_type(&self) -> Option<LogType> {
        LogType::from_number(self.type_number())
    }

    /// Stores count and type.
    pub fn set_blocks(&mut self, log: LogType, valid: u32) {
        self.vblocks = U16::new(u16::from(log.number()) << 10 | (valid & 0x3ff) as u16);
    }
}

/// A block of the table (`struct f2fs_sit_block`).
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct SitBlock {
    /// The entries of segments `55 n .. 55 (n + 1)`.
    pub entries: [RawSitEntry; ENTRIES_PER_BLOCK],
    /// Zero.
    pub padding: [u8; 26],
}

const _: () = assert!(size_of::<SitBlock>() == 4096);

impl core::fmt::Debug for SitBlock {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let used = self.entries.iter().filter(|entry| entry.valid_blocks() != 0).count();
        f.debug_struct("SitBlock").field("segments in use", &used).finish_non_exhaustive()
    }
}

impl SitBlock {
    /// All segments free.
    pub const ZERO: SitBlock = zerocopy::transmute!([0u8; 4096]);

    /// The block as a piece of the table.
    #[must_use]
    pub fn read(block: &RawBlock) -> &SitBlock {
        zerocopy::transmute_ref!(block)
    }

    /// The block as bytes.
    #[must_use]
    pub fn as_block(&self) -> &RawBlock {
        zerocopy::transmute_ref!(self)
    }
}
