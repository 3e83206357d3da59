//! Access for the models to parts that users must not reach.

use crate::baseline::Allocator;
use crate::block_set::BlockSet;
use crate::nat::Nat;

impl Nat {
    /// Runs something while a bitmap scan seems to run.
    pub fn within_bitmap_scan(&self, run: impl FnOnce()) {
        match &self.allocator {
            Allocator::Listed(listed) => listed.within_bitmap_scan(run),
            Allocator::Sharded(_) => run(),
        }
    }

    /// Whether the hints lead to every block that has free NIDs.
    #[must_use]
    pub fn hints_are_complete(&self) -> bool {
        match &self.allocator {
            Allocator::Listed(_) => true,
            Allocator::Sharded(sharded) => sharded.hints_are_complete(&self.table),
        }
    }
}

/// A set of NAT blocks.
#[derive(Debug)]
pub struct Blocks(BlockSet);

impl Blocks {
    /// An empty set of numbers below `len`.
    #[must_use]
    pub fn new(len: u32) -> Blocks {
        Blocks(BlockSet::new(len, false))
    }

    /// Adds a block.
    pub fn insert(&self, block: u32) {
        self.0.insert(block);
    }

    /// Removes a block; tells whether it was there.
    pub fn remove(&self, block: u32) -> bool {
        self.0.remove(block)
    }

    /// The first block at or behind `from`.
    #[must_use]
    pub fn next(&self, from: u32) -> Option<u32> {
        self.0.next(from)
    }
}
