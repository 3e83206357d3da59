//! Access for the models to parts that users must not reach.

use crate::geometry::BLOCKS_PER_WORD;
use crate::range::BlockRange;
use crate::table::ExtentTable;

impl ExtentTable {
    /// Makes the words of mapped blocks, as the first lock of one of them does.
    pub fn make_words(&self, range: BlockRange) {
        self.install(range);
    }

    /// Whether the block's word is there.
    #[must_use]
    pub fn has_word(&self, block: u64) -> bool {
        self.word(block / BLOCKS_PER_WORD).is_some()
    }

    /// Whether the blocks are announced as those of a covering claim, so that a lock of some of them goes through the
    /// queue.
    #[must_use]
    pub fn announced(&self, range: BlockRange) -> bool {
        !self.hull.misses(range)
    }
}
