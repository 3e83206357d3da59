//! A NAT whose first node IDs are in use.

use f2fs_format::nat::{NatBlock, RawNatEntry};
use f2fs_nat::{Nat, NatSource, SourceError};

/// A table of which the NIDs from 3 to `bound` are bound.
#[derive(Clone, Copy, Debug)]
pub struct Filled {
    /// The first NID that is free again.
    pub bound: u32,
}

impl NatSource for Filled {
    fn read_nat_block(&self, index: u32, _second: bool) -> Result<Box<NatBlock>, SourceError> {
        let mut block = Box::new(NatBlock::ZERO);
        for (place, entry) in block.entries.iter_mut().enumerate() {
            let nid = index * Nat::ENTRIES_PER_BLOCK as u32 + place as u32;
            if (3..self.bound).contains(&nid) {
                *entry = RawNatEntry { version: 0, ino: nid.into(), block_addr: nid.into() };
            }
        }
        Ok(block)
    }
}
