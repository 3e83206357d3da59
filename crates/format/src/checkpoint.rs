//! The checkpoint block and its flags.
//!
//! A pack is: checkpoint block, payload blocks (SIT bitmap when it does not fit), orphan blocks, data summaries, node
//! summaries (on unmount), and the checkpoint block again. It is valid if both copies carry a good checksum and the
//! same version; of two valid packs the higher version wins.

mod bitmaps;
mod checked;
mod compose;

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::{Corruption, RawBlock, crc};

pub use bitmaps::VersionBitmaps;
pub use checked::{Checkpoint, LogPosition};
pub use compose::{ComposedPack, NextPack};

/// Size of the fixed part in bytes; the version bitmaps follow.
pub const HEADER_SIZE: usize = 192;
/// Where the checksum usually stands: the last four bytes of the block.
pub const CHECKSUM_OFFSET: usize = 4092;
/// Node logs (and data logs) that the checkpoint has room for; three of each are in use.
pub const MAX_LOGS_PER_KIND: usize = 8;

/// Flags of the checkpoint (`ckpt_flags`).
#[allow(missing_docs)] // the names are the header's
pub mod flags {
    pub const UMOUNT: u32 = 0x0001;
    pub const ORPHAN_PRESENT: u32 = 0x0002;
    pub const COMPACT_SUM: u32 = 0x0004;
    pub const ERROR: u32 = 0x0008;
    pub const FSCK: u32 = 0x0010;
    pub const FASTBOOT: u32 = 0x0020;
    pub const CRC_RECOVERY: u32 = 0x0040;
    pub const NAT_BITS: u32 = 0x0080;
    pub const TRIMMED: u32 = 0x0100;
    pub const NOCRC_RECOVERY: u32 = 0x0200;
    pub const LARGE_NAT_BITMAP: u32 = 0x0400;
    pub const QUOTA_NEED_FSCK: u32 = 0x0800;
    pub const DISABLED: u32 = 0x1000;
    pub const DISABLED_QUICK: u32 = 0x2000;
    pub const RESIZEFS: u32 = 0x4000;

    /// Names in the order of the bits, for reports.
    pub const NAMES: [(u32, &str); 15] = [
        (UMOUNT, "umount"),
        (ORPHAN_PRESENT, "orphan_present"),
        (COMPACT_SUM, "compacted_summary"),
        (ERROR, "error"),
        (FSCK, "fsck"),
        (FASTBOOT, "fastboot"),
        (CRC_RECOVERY, "crc_recovery"),
        (NAT_BITS, "nat_bits"),
        (TRIMMED, "trimmed"),
        (NOCRC_RECOVERY, "nocrc_recovery"),
        (LARGE_NAT_BITMAP, "large_nat_bitmap"),
        (QUOTA_NEED_FSCK, "quota_need_fsck"),
        (DISABLED, "disabled"),
        (DISABLED_QUICK, "disabled_quick"),
        (RESIZEFS, "resizefs"),
    ];
}

/// Allocation types of a log (`alloc_type`).
pub mod alloc_type {
    /// Blocks are taken in order from a free segment.
    pub const LFS: u8 = 0;
    /// Blocks are taken from the holes of a dirty segment (slack space recycling).
    pub const SSR: u8 = 1;
}

/// The fixed part of a checkpoint block (`struct f2fs_checkpoint`).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
#[allow(missing_docs)] // the names are the header's
pub struct CheckpointHeader {
    pub checkpoint_ver: U64,
    pub user_block_count: U64,
    pub valid_block_count: U64,
    pub rsvd_segment_count: U32,
    pub overprov_segment_count: U32,
    pub free_segment_count: U32,
    pub cur_node_segno: [U32; MAX_LOGS_PER_KIND],
    pub cur_node_blkoff: [U16; MAX_LOGS_PER_KIND],
    pub cur_data_segno: [U32; MAX_LOGS_PER_KIND],
    pub cur_data_blkoff: [U16; MAX_LOGS_PER_KIND],
    pub ckpt_flags: U32,
    pub cp_pack_total_block_count: U32,
    pub cp_pack_start_sum: U32,
    pub valid_node_count: U32,
    pub valid_inode_count: U32,
    pub next_free_nid: U32,
    pub sit_ver_bitmap_bytesize: U32,
    pub nat_ver_bitmap_bytesize: U32,
    pub checksum_offset: U32,
    pub elapsed_time: U64,
    pub alloc_type: [u8; 16],
}

const _: () = assert!(size_of::<CheckpointHeader>() == HEADER_SIZE);
const _: () = assert!(core::mem::offset_of!(CheckpointHeader, ckpt_flags) == 132);
const _: () = assert!(core::mem::offset_of!(CheckpointHeader, checksum_offset) == 164);

/// A whole checkpoint block: header, version bitmaps, checksum.
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct CheckpointBlock {
    /// The fixed part.
    pub header: CheckpointHeader,
    /// Version bitmaps, and the checksum at `checksum_offset`.
    pub tail: [u8; 4096 - HEADER_SIZE],
}

const _: () = assert!(size_of::<CheckpointBlock>() == 4096);

impl core::fmt::Debug for CheckpointBlock {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.header.fmt(f)
    }
}

impl CheckpointBlock {
    /// All zero.
    pub const ZERO: CheckpointBlock = zerocopy::transmute!([0u8; 4096]);

    /// The block as a checkpoint, unchecked.
    #[must_use]
    pub fn read(block: &RawBlock) -> CheckpointBlock {
        zerocopy::transmute!(*block)
    }

    /// The block as bytes.
    #[must_use]
    pub fn as_block(&self) -> &RawBlock {
        zerocopy::transmute_ref!(self)
    }

    /// The stored and the computed checksum; an error if `checksum_offset` is impossible.
    ///
    /// With `large_nat_bitmap` the checksum stands right behind the header and covers both sides of itself.
    ///
    /// # Errors
    /// [`Corruption::Range`] for an offset outside the block.
    pub fn checksums(&self) -> Result<(u32, u32), Corruption> {
        let offset = self.header.checksum_offset.get() as usize;
        if !(HEADER_SIZE..=CHECKSUM_OFFSET).contains(&offset) {
            return Err(Corruption::Range {
                what: "checkpoint checksum_offset",
                found: offset as u64,
                min: HEADER_SIZE as u64,
                max: CHECKSUM_OFFSET as u64,
            });
        }
        let bytes = self.as_block();
        let stored = u32::from_le_bytes([bytes[offset], bytes[offset + 1], bytes[offset + 2], bytes[offset + 3]]);
        let mut computed = crc::checksum(&bytes[..offset]);
        if offset < CHECKSUM_OFFSET {
            computed = crc::update(computed, &bytes[offset + 4..]);
        }
        Ok((stored, computed))
    }

    /// Checks the checksum.
    ///
    /// # Errors
    /// [`Corruption::Checksum`] if it is wrong, [`Corruption::Range`] if its offset is.
    pub fn verify(&self) -> Result<(), Corruption> {
        let (found, expected) = self.checksums()?;
        if found != expected {
            return Err(Corruption::Checksum { what: "checkpoint", expected, found });
        }
        Ok(())
    }

    /// Whether this block ends a pack, of which it is block `offset`: a checkpoint is composed so that its first and its
    /// last block are the same.
    #[must_use]
    pub fn is_end_at(&self, offset: u32) -> bool {
        self.header.cp_pack_total_block_count.get().checked_sub(1) == Some(offset) && self.verify().is_ok()
    }

    /// Whether this is the checkpoint right after `other`, of the same volume.
    #[must_use]
    pub fn follows(&self, other: &CheckpointBlock) -> bool {
        let (one, two) = (&self.header, &other.header);
        let of_volume = |header: &CheckpointHeader| {
            (header.user_block_count, header.overprov_segment_count, header.rsvd_segment_count)
        };
        one.checkpoint_ver.get() == two.checkpoint_ver.get().wrapping_add(1) && of_volume(one) == of_volume(two)
    }

    /// Computes and stores the checksum. Does nothing if `checksum_offset` is impossible.
    pub fn seal(&mut self) {
        if let Ok((_, computed)) = self.checksums() {
            let at = self.header.checksum_offset.get() as usize - HEADER_SIZE;
            self.tail[at..at + 4].copy_from_slice(&computed.to_le_bytes());
        }
    }

    /// The number that goes into node footers (`cp_ver`): the version, with the checksum above it when
    /// `crc_recovery` is set (`cur_cp_version` in `fs/f2fs/node.h`).
    #[must_use]
    pub fn footer_version(&self) -> u64 {
        let version = self.header.checkpoint_ver.get();
        if self.header.ckpt_flags.get() & flags::CRC_RECOVERY == 0 {
            return version;
        }
        match self.checksums() {
            Ok((stored, _)) => version | u64::from(stored) << 32,
            Err(_) => version,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{Checkpoint, LogPosition, flags};
    use crate::feature::Features;
    use crate::{BlockAddr, Geometry, Nid, SegmentNo};

    /// A small volume: 2 + 2 + 2 + 1 segments of metadata, 24 of main area.
    pub(crate) fn geometry() -> Geometry {
        Geometry {
            block_count: 32 * 512,
            features: Features(0),
            segment0_blkaddr: BlockAddr(512),
            cp_blkaddr: BlockAddr(512),
            sit_blkaddr: BlockAddr(3 * 512),
            nat_blkaddr: BlockAddr(5 * 512),
            ssa_blkaddr: BlockAddr(7 * 512),
            main_blkaddr: BlockAddr(8 * 512),
            segment_count: 31,
            sit_segments: 2,
            nat_segments: 2,
            ssa_segments: 1,
            main_segments: 24,
            sections: 24,
            segs_per_sec: 1,
            secs_per_zone: 1,
            cp_payload: 0,
            root_ino: Nid(3),
        }
    }

    /// A checkpoint of that volume that nothing is wrong with.
    pub(crate) fn checkpoint() -> Checkpoint {
        let log = |segment| LogPosition { segment: SegmentNo(segment), next_offset: 1, alloc_type: 0 };
        Checkpoint {
            version: 7,
            flags: flags::UMOUNT | flags::COMPACT_SUM,
            user_blocks: 7000,
            valid_blocks: 100,
            reserved_segments: 4,
            overprovision_segments: 8,
            free_segments: 18,
            logs: [0, 1, 2, 3, 4, 5].map(log),
            pack_blocks: 6,
            start_sum: 1,
            valid_nodes: 50,
            valid_inodes: 40,
            next_free_nid: Nid(51),
            elapsed_time: 12,
            opening: 0x0102_0304_0506_0708,
        }
    }
}
