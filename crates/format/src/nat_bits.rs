//! NAT bits: which NAT blocks are completely full or completely empty, kept in the last blocks of a checkpoint pack.
//!
//! ```text
//! | u64: checkpoint version, checksum above it | full map | empty map |     one bit a NAT block, lowest first
//! ```
//!
//! They are meaningful only if the checkpoint says so ([`flags::NAT_BITS`](crate::checkpoint::flags::NAT_BITS)) and the
//! number in front agrees with it. Source: `__get_nat_bitmaps` and `load_free_nid_bitmap` in `fs/f2fs/node.c`,
//! `f2fs_write_check_point_pack` in f2fs-tools.

use alloc::vec::Vec;

use crate::bits::lsb;
use crate::checkpoint::CheckpointBlock;
use crate::nat::{ENTRIES_PER_BLOCK, NatBlock};
use crate::{BLOCK_SIZE, BLOCKS_PER_SEGMENT, Corruption, Geometry, RawBlock};

/// Blocks that the NAT bits of a volume take.
#[must_use]
pub const fn block_count(geometry: &Geometry) -> u32 {
    // One bit a NAT block in each of two maps: 64 bytes a segment of one NAT copy.
    let map = geometry.nat_segments as u64 / 2 * (BLOCKS_PER_SEGMENT as u64 / 8);
    (8 + 2 * map).div_ceil(BLOCK_SIZE as u64) as u32
}

/// The block of a pack, counted from its first one, in which the NAT bits begin; `None` if a pack of `pack_blocks`
/// blocks leaves no room for them, and the flag must stay clear.
#[must_use]
pub const fn first_block(geometry: &Geometry, pack_blocks: u32) -> Option<u32> {
    match BLOCKS_PER_SEGMENT.checked_sub(block_count(geometry)) {
        Some(first) if pack_blocks <= first => Some(first),
        _ => None,
    }
}

/// The number that NAT bits carry to belong to a checkpoint: its version, with its checksum above
/// (`get_cp_crc` in f2fs-tools), whatever its flags say.
///
/// # Errors
/// [`Corruption::Range`] if the checksum's place is impossible.
pub fn signature(checkpoint: &CheckpointBlock) -> Result<u64, Corruption> {
    let (stored, _) = checkpoint.checksums()?;
    Ok(checkpoint.header.checkpoint_ver.get() | u64::from(stored) << 32)
}

/// The NAT bits of a pack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NatBits {
    /// Must be the [`signature`] of the checkpoint.
    pub signature: u64,
    /// NAT blocks without a free entry.
    pub full: Vec<u8>,
    /// NAT blocks without a used entry. Block 0, which holds the reserved NIDs, never is.
    pub empty: Vec<u8>,
}

impl NatBits {
    /// NAT bits of a table whose blocks are all empty but the first.
    #[must_use]
    pub fn new(signature: u64, geometry: &Geometry) -> NatBits {
        let size = geometry.nat_bitmap_size();
        let mut bits = NatBits { signature, full: alloc::vec![0; size], empty: alloc::vec![0xff; size] };
        lsb::clear(&mut bits.empty, 0);
        bits
    }

    /// Takes NAT bits from their blocks; `None` if these are fewer than [`block_count`].
    #[must_use]
    pub fn read(blocks: &[RawBlock], geometry: &Geometry) -> Option<NatBits> {
        let bytes = blocks.as_flattened();
        let size = geometry.nat_bitmap_size();
        let (signature, rest) = bytes.split_first_chunk()?;
        let full = rest.get(..size)?.to_vec();
        let empty = rest.get(size..2 * size)?.to_vec();
        Some(NatBits { signature: u64::from_le_bytes(*signature), full, empty })
    }

    /// The blocks to write.
    #[must_use]
    pub fn to_blocks(&self) -> Vec<RawBlock> {
        let bytes = [&self.signature.to_le_bytes()[..], &self.full, &self.empty].concat();
        let mut blocks = alloc::vec![[0; BLOCK_SIZE]; bytes.len().div_ceil(BLOCK_SIZE)];
        blocks.as_flattened_mut()[..bytes.len()].copy_from_slice(&bytes);
        blocks
    }

    /// Records what NAT block `index` holds now (`__update_nat_bits`). Tells whether there is such a block.
    pub fn update(&mut self, index: u32, block: &NatBlock) -> bool {
        let index = index as usize;
        if index / 8 >= self.full.len() {
            return false;
        }
        // NID 0 counts as used.
        let used = block
            .entries
            .iter()
            .enumerate()
            .filter(|(slot, entry)| (index == 0 && *slot == 0) || entry.block_addr.get() != 0);
        let used = used.count();
        let put = |map: &mut [u8], on| if on { lsb::set(map, index) } else { lsb::clear(map, index) };
        put(&mut self.full, used == ENTRIES_PER_BLOCK);
        put(&mut self.empty, used == 0);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::tests::geometry;

    #[test]
    fn places() {
        let mut geometry = geometry();
        geometry.nat_segments = 2;
        assert_eq!((block_count(&geometry), first_block(&geometry, 6)), (1, Some(511)));
        geometry.nat_segments = 2 * 31;
        assert_eq!(block_count(&geometry), 1);
        geometry.nat_segments = 2 * 32;
        assert_eq!(block_count(&geometry), 2, "4096 bytes of maps and the number in front");
        assert_eq!((first_block(&geometry, 510), first_block(&geometry, 511)), (Some(510), None));
        geometry.nat_segments = u32::MAX;
        assert_eq!(first_block(&geometry, 6), None);
    }

    #[test]
    fn blocks_round_trip_and_update() {
        let geometry = geometry();
        let mut bits = NatBits::new(0x1234_0000_0001, &geometry);
        let blocks = bits.to_blocks();
        assert_eq!(blocks.len() as u32, block_count(&geometry));
        assert_eq!(NatBits::read(&blocks, &geometry), Some(bits.clone()));
        assert_eq!(NatBits::read(&[], &geometry), None);
        assert_eq!(bits.empty[0], 0xfe);

        let mut block = NatBlock::ZERO;
        block.entries[1].block_addr = 5.into();
        assert!(bits.update(9, &block));
        assert_eq!((bits.empty[1], bits.full[1]), (0xfd, 0));
        block.entries.iter_mut().for_each(|entry| entry.block_addr = 5.into());
        assert!(bits.update(9, &block));
        assert_eq!((bits.empty[1], bits.full[1]), (0xfd, 2));
        assert!(bits.update(9, &NatBlock::ZERO) && bits.update(0, &NatBlock::ZERO));
        assert_eq!((bits.empty[1], bits.full[1], bits.empty[0]), (0xff, 0, 0xfe));
        assert!(!bits.update(u32::MAX, &block));
    }
}
