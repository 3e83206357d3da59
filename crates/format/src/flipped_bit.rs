//! One bit of an inode that was flipped, found by its checksum.
//!
//! A CRC is linear: two blocks that differ in one bit have checksums that differ by a word which depends on the place of
//! that bit alone, and no two places of a block share theirs. So the word says which bit it was. What is damaged more
//! than that looks like one flipped bit in one case of 130,000.

use crate::crc;
use crate::inode::{CHECKSUM_AT, checksum};
use crate::node::NodeBlock;

/// Where `i_generation` stands, and the inode number in the footer: they go into the checksum twice.
const TWICE: [usize; 2] = [4096 - 24 + 4, GENERATION_AT];
const GENERATION_AT: usize = core::mem::offset_of!(crate::inode::Inode, i_generation);

/// A bit in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bit {
    /// The byte in the block.
    pub byte: usize,
    /// 0 to 7: the bit in the byte, from the least.
    pub bit: u32,
}

impl Bit {
    /// Flips it.
    #[must_use]
    pub fn flip(self, block: &NodeBlock) -> NodeBlock {
        let mut bytes = *block.as_block();
        if let Some(byte) = bytes.get_mut(self.byte) {
            *byte ^= 1 << self.bit;
        }
        *NodeBlock::read(&bytes)
    }
}

/// The bit which, flipped, makes an inode fit its checksum. `None`: it fits as it is, or there is none. The caller knows
/// that the block is to be an inode with a checksum; what the block says about that is not looked at.
#[must_use]
pub fn in_inode(block: &NodeBlock, seed: u32) -> Option<Bit> {
    let stored = |block: &NodeBlock| {
        let bytes = block.as_block();
        u32::from_le_bytes([0, 1, 2, 3].map(|at| bytes[CHECKSUM_AT + at]))
    };
    let fits = |block: &NodeBlock| stored(block) == checksum(block, seed);
    let wrong_by = stored(block) ^ checksum(block, seed);
    if wrong_by == 0 {
        return None;
    }
    // The difference that each bit of the byte makes: of the last byte at first.
    let mut makes: [u32; 8] = core::array::from_fn(|bit| crc::update(0, &[1 << bit]));
    for byte in (0..block.as_block().len()).rev() {
        let is_special = [CHECKSUM_AT].iter().chain(&TWICE).any(|field| (*field..field + 4).contains(&byte));
        for (bit, makes) in (0..8).zip(&mut makes) {
            let found = Bit { byte, bit };
            if (*makes == wrong_by || is_special) && fits(&found.flip(block)) {
                return Some(found);
            }
            *makes = crc::update(*makes, &[0]);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Nid;

    fn inode() -> NodeBlock {
        let mut bytes = [0; 4096];
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = ((at as u32).wrapping_mul(2_654_435_761) >> 24) as u8;
        }
        let mut block = *NodeBlock::read(&bytes);
        (block.footer.nid, block.footer.ino) = (Nid(9).into(), Nid(9).into());
        let sum = checksum(&block, 5);
        bytes = *block.as_block();
        bytes[CHECKSUM_AT..CHECKSUM_AT + 4].copy_from_slice(&sum.to_le_bytes());
        *NodeBlock::read(&bytes)
    }

    #[test]
    fn every_bit_is_found() {
        let good = inode();
        assert_eq!(in_inode(&good, 5), None);
        for at in (0..4096 * 8).step_by(97).chain([CHECKSUM_AT * 8 + 31, GENERATION_AT * 8, TWICE[0] * 8 + 17]) {
            let flipped = Bit { byte: at / 8, bit: at as u32 % 8 };
            let bad = flipped.flip(&good);
            assert_eq!(in_inode(&bad, 5), Some(flipped));
            assert_eq!(flipped.flip(&bad).as_block(), good.as_block());
        }
    }

    #[test]
    fn two_bits_are_none() {
        let good = inode();
        for at in 0..64 {
            let bad = Bit { byte: at * 60, bit: 1 }.flip(&Bit { byte: 4000 - at * 7, bit: 5 }.flip(&good));
            assert_eq!(in_inode(&bad, 5), None, "{at}");
        }
    }
}
