//! Tables of 4 NIDs a block for the models.
#![allow(dead_code)]

use f2fs_format::nat::{NatBlock, RawNatEntry};
use f2fs_format::{BlockAddr, Nid};
use f2fs_nat::{Nat, NatConfig, NatSource, Policy, SourceError};
use f2fs_sync::Arc;

/// A table whose NIDs from 3 to `bound` (exclusive) are bound: the node of NID n is at block 100 + n.
pub(crate) struct Filled {
    pub(crate) bound: u32,
}

impl NatSource for Filled {
    fn read_nat_block(&self, index: u32, _second: bool) -> Result<Box<NatBlock>, SourceError> {
        let mut block = Box::new(NatBlock::ZERO);
        for place in 0..4 {
            let nid = index * 4 + place;
            if (3..self.bound).contains(&nid) {
                block.entries[place as usize] =
                    RawNatEntry { version: 0, ino: nid.into(), block_addr: (100 + nid).into() };
            }
        }
        Ok(block)
    }
}

/// A table with a number of blocks, of which the NIDs below `bound` are bound.
pub(crate) fn open(policy: Policy, blocks: u32, bound: u32, lanes: usize) -> Nat {
    let config = NatConfig::new(blocks).policy(policy).lanes(lanes).balance_entries(0).valid_nodes(0);
    Nat::new(config, Arc::new(Filled { bound }), vec![0], &[]).expect("the size is right")
}

/// The same in memory, with all free NIDs known.
pub(crate) fn open_known(policy: Policy, blocks: u32, bound: u32, lanes: usize) -> Nat {
    let nat = open(policy, blocks, bound, lanes);
    for block in 0..blocks {
        // Known by asking for a NID that is not free.
        let reserved = nat.reserve(Nid(block * 4 + 3)).expect("the block can be read");
        if reserved {
            nat.cancel(Nid(block * 4 + 3));
        }
    }
    nat
}

pub(crate) fn allocate(nat: &Nat) -> Option<Nid> {
    nat.allocate().expect("every block can be read")
}

/// Allocates until there is none.
pub(crate) fn drain(nat: &Nat) -> Vec<Nid> {
    let mut all: Vec<Nid> = std::iter::from_fn(|| allocate(nat)).take(64).collect();
    all.sort_unstable();
    all
}

pub(crate) fn bind(nat: &Nat, nid: Nid, addr: u32) {
    nat.bind(nid, nid, BlockAddr(addr)).expect("the NID is ours");
}

/// The NIDs `from..to`.
pub(crate) fn nids(from: u32, to: u32) -> Vec<Nid> {
    (from..to).map(Nid).collect()
}
