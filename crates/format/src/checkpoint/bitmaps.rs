//! The version bitmaps of a checkpoint: which of its two copies each SIT and NAT block is valid in.
//!
//! ```text
//! usual:                  header | SIT bitmap | NAT bitmap | ... | checksum at 4092
//! cp_payload > 0:         header | NAT bitmap | ... | checksum at 4092 || SIT bitmap in the payload blocks
//! large_nat_bitmap flag:  header | checksum at 192 | NAT bitmap | SIT bitmap, running on into the payload blocks
//! ```
//!
//! Source: `__bitmap_ptr` in `fs/f2fs/f2fs.h`.

use alloc::vec::Vec;
use core::ops::Range;

use super::{CHECKSUM_OFFSET, CheckpointBlock, HEADER_SIZE, flags};
use crate::{BLOCK_SIZE, Corruption, Geometry, RawBlock};

/// Both version bitmaps, most significant bit first; a set bit means the second copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionBitmaps {
    /// One bit a SIT block.
    pub sit: Vec<u8>,
    /// One bit a NAT block.
    pub nat: Vec<u8>,
}

/// Where the bitmaps stand in the checkpoint block and its payload taken as one run of bytes: (SIT, NAT).
fn places(ckpt_flags: u32, geometry: &Geometry) -> Result<(Range<usize>, Range<usize>), Corruption> {
    let (sit, nat) = (geometry.sit_bitmap_size(), geometry.nat_bitmap_size());
    let payload = geometry.cp_payload as usize;
    let all = BLOCK_SIZE * (1 + payload);
    let fits = |end: usize, limit: usize| {
        if end <= limit {
            Ok(())
        } else {
            let (found, max) = (end as u64, limit as u64);
            Err(Corruption::Range { what: "end of the version bitmaps", found, min: 0, max })
        }
    };
    if ckpt_flags & flags::LARGE_NAT_BITMAP != 0 {
        let nat = HEADER_SIZE + 4..HEADER_SIZE + 4 + nat;
        let sit = nat.end..nat.end + sit;
        fits(sit.end, all)?;
        Ok((sit, nat))
    } else if payload > 0 {
        let nat = HEADER_SIZE..HEADER_SIZE + nat;
        let sit = BLOCK_SIZE..BLOCK_SIZE + sit;
        fits(nat.end, CHECKSUM_OFFSET)?;
        fits(sit.end, all)?;
        Ok((sit, nat))
    } else {
        let sit = HEADER_SIZE..HEADER_SIZE + sit;
        let nat = sit.end..sit.end + nat;
        fits(nat.end, CHECKSUM_OFFSET)?;
        Ok((sit, nat))
    }
}

impl VersionBitmaps {
    /// All blocks valid in their first copies.
    #[must_use]
    pub fn new(geometry: &Geometry) -> VersionBitmaps {
        VersionBitmaps {
            sit: alloc::vec![0; geometry.sit_bitmap_size()],
            nat: alloc::vec![0; geometry.nat_bitmap_size()],
        }
    }

    /// Takes the bitmaps from the first checkpoint block of a pack and the payload blocks behind it.
    ///
    /// # Errors
    /// [`Corruption::Range`] if the bitmaps do not fit, [`Corruption::Mismatch`] if `payload` is not `cp_payload`
    /// blocks.
    pub fn read(
        block: &CheckpointBlock,
        payload: &[RawBlock],
        geometry: &Geometry,
    ) -> Result<VersionBitmaps, Corruption> {
        let (sit, nat) = places(block.header.ckpt_flags.get(), geometry)?;
        check_payload(payload.len(), geometry)?;
        let bytes = [block.as_block().as_slice(), payload.as_flattened()].concat();
        Ok(VersionBitmaps { sit: bytes[sit].to_vec(), nat: bytes[nat].to_vec() })
    }

    /// Puts the bitmaps into a checkpoint block and the payload blocks behind it. Seal the block afterwards.
    ///
    /// # Errors
    /// [`Corruption::Range`] if the bitmaps do not fit, [`Corruption::Mismatch`] if `payload` is not `cp_payload`
    /// blocks, or a bitmap has another size than the geometry says.
    pub fn write(
        &self,
        block: &mut CheckpointBlock,
        payload: &mut [RawBlock],
        geometry: &Geometry,
    ) -> Result<(), Corruption> {
        let (sit, nat) = places(block.header.ckpt_flags.get(), geometry)?;
        check_payload(payload.len(), geometry)?;
        let mut bytes = [block.as_block().as_slice(), payload.as_flattened()].concat();
        for (place, bitmap) in [(sit, &self.sit), (nat, &self.nat)] {
            if place.len() != bitmap.len() {
                let (expected, found) = (place.len() as u64, bitmap.len() as u64);
                return Err(Corruption::Mismatch { what: "bytes of a version bitmap", expected, found });
            }
            bytes[place].copy_from_slice(bitmap);
        }
        let (first, rest) = bytes.split_at(BLOCK_SIZE);
        block.tail.copy_from_slice(&first[HEADER_SIZE..]);
        payload.as_flattened_mut().copy_from_slice(rest);
        Ok(())
    }
}

fn check_payload(blocks: usize, geometry: &Geometry) -> Result<(), Corruption> {
    let (expected, found) = (u64::from(geometry.cp_payload), blocks as u64);
    if expected == found {
        Ok(())
    } else {
        Err(Corruption::Mismatch { what: "payload blocks of the checkpoint", expected, found })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::tests::geometry;

    fn round_trip(geometry: &Geometry, ckpt_flags: u32, sit_at: usize, nat_at: usize) {
        let mut block = CheckpointBlock::ZERO;
        block.header.ckpt_flags = ckpt_flags.into();
        let offset = if ckpt_flags & flags::LARGE_NAT_BITMAP == 0 { CHECKSUM_OFFSET } else { HEADER_SIZE };
        block.header.checksum_offset = (offset as u32).into();
        let mut payload = alloc::vec![[0; BLOCK_SIZE]; geometry.cp_payload as usize];
        let mut maps = VersionBitmaps::new(geometry);
        maps.sit.fill(0x11);
        maps.nat.fill(0x22);
        maps.write(&mut block, &mut payload, geometry).unwrap();
        block.seal();
        block.verify().unwrap();
        let bytes = [block.as_block().as_slice(), payload.as_flattened()].concat();
        assert!(bytes[sit_at..sit_at + maps.sit.len()].iter().all(|byte| *byte == 0x11));
        assert!(bytes[nat_at..nat_at + maps.nat.len()].iter().all(|byte| *byte == 0x22));
        assert_eq!(VersionBitmaps::read(&block, &payload, geometry).unwrap(), maps);
        payload.push([0; BLOCK_SIZE]);
        assert!(VersionBitmaps::read(&block, &payload, geometry).is_err());
    }

    #[test]
    fn the_three_layouts() {
        let mut geometry = geometry();
        (geometry.sit_segments, geometry.nat_segments) = (2, 4);
        round_trip(&geometry, 0, 192, 192 + 64);
        round_trip(&geometry, flags::LARGE_NAT_BITMAP, 196 + 128, 196);
        geometry.cp_payload = 2;
        geometry.sit_segments = 2 * 65;
        round_trip(&geometry, 0, 4096, 192);
        round_trip(&geometry, flags::LARGE_NAT_BITMAP, 196 + 128, 196);
    }

    #[test]
    fn too_large() {
        let mut geometry = geometry();
        geometry.nat_segments = 2 * 61;
        let error = VersionBitmaps::read(&CheckpointBlock::ZERO, &[], &geometry).unwrap_err();
        assert_eq!(
            error,
            Corruption::Range { what: "end of the version bitmaps", found: 192 + 62 * 64, min: 0, max: 4092 }
        );
    }
}
