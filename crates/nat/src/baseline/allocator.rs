//! One allocator of NIDs, whichever policy it follows.

use f2fs_format::Nid;

use crate::config::NatConfig;
use crate::error::NatError;
use crate::policy::Policy;
use crate::sharded::Sharded;
use crate::size::{Bits, nid_at};
use crate::stats::ScanStats;
use crate::table::Table;

use super::listed::Listed;

/// A policy's state.
#[derive(Debug)]
pub(crate) enum Allocator {
    Sharded(Sharded),
    Listed(Box<Listed>),
}

impl Allocator {
    /// The policy of `config`, for this table; `first`: the block where the search begins.
    pub(crate) fn new(config: &NatConfig, table: &Table, first: u32) -> Allocator {
        match config.policy {
            Policy::Sharded => Allocator::Sharded(Sharded::new(config, table, first)),
            policy @ (Policy::KernelScan | Policy::Clue { .. }) => {
                Allocator::Listed(Box::new(Listed::new(policy, table.blocks(), first, config.balance_entries)))
            }
        }
    }

    /// A free NID; `None` is exact.
    #[inline]
    pub(crate) fn allocate(&self, table: &Table, stats: &ScanStats) -> Result<Option<Nid>, NatError> {
        match self {
            Allocator::Sharded(sharded) => sharded.allocate(table, stats),
            Allocator::Listed(listed) => listed.allocate(table, stats),
        }
    }

    /// Finds out which NIDs of a block are free.
    pub(crate) fn know(&self, table: &Table, block: u32) -> Result<(), NatError> {
        match self {
            Allocator::Sharded(sharded) => sharded.know(table, block),
            Allocator::Listed(listed) => listed.know(table, block),
        }
    }

    /// A node is being bound to a NID that had none; its block's lock is held. Tells whether the NID was taken before.
    #[inline]
    pub(crate) fn done(&self, table: &Table, block: u32, index: usize) -> bool {
        match self {
            Allocator::Sharded(sharded) => sharded.done(table, block, index),
            Allocator::Listed(listed) => listed.done(nid_at(block, index)),
        }
    }

    /// A NID that was taken, and never bound, is free again; its block's lock is held. One that is free already stays
    /// so.
    pub(crate) fn put(&self, table: &Table, block: u32, index: usize) {
        match self {
            Allocator::Sharded(sharded) => sharded.put(table, block, index),
            Allocator::Listed(listed) => listed.put(table, block, index),
        }
    }

    /// NIDs that a durable checkpoint has recorded as free; their block's lock is held.
    pub(crate) fn put_all(&self, table: &Table, block: u32, bits: &Bits) {
        match self {
            Allocator::Sharded(sharded) => sharded.put_all(table, block, bits),
            Allocator::Listed(listed) => listed.put_all(table, block, bits),
        }
    }

    /// Takes this NID of a known block, if it is free.
    pub(crate) fn reserve(&self, table: &Table, block: u32, index: usize) -> bool {
        match self {
            Allocator::Sharded(sharded) => sharded.reserve(table, block, index),
            Allocator::Listed(listed) => listed.reserve(table, block, index),
        }
    }

    /// A create or an unlink comes by.
    #[inline]
    pub(crate) fn balance(&self, table: &Table, stats: &ScanStats) {
        match self {
            Allocator::Sharded(_) => {}
            Allocator::Listed(listed) => listed.balance(table, stats),
        }
    }

    /// A checkpoint has ended.
    pub(crate) fn checkpointed(&self, table: &Table, stats: &ScanStats) {
        match self {
            Allocator::Sharded(_) => {}
            Allocator::Listed(listed) => listed.checkpointed(table, stats),
        }
    }

    /// NIDs in the list, where there is one.
    pub(crate) fn listed(&self) -> usize {
        match self {
            Allocator::Sharded(_) => 0,
            Allocator::Listed(listed) => listed.listed(),
        }
    }

    /// Where the next search should begin.
    pub(crate) fn next_nid(&self) -> Nid {
        match self {
            Allocator::Sharded(sharded) => sharded.next_nid(),
            Allocator::Listed(listed) => listed.next_nid(),
        }
    }
}
