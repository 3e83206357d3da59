//! Ranges of blocks.

use std::ops::{Bound, RangeBounds};

/// A range of one or more blocks, both ends included, up to and with block `u64::MAX`.
///
/// ```
/// use f2fs_extent::BlockRange;
///
/// let range = BlockRange::of(10..20).expect("ten blocks");
/// assert_eq!((range.first(), range.last()), (10, 19));
/// assert_eq!(BlockRange::of(10..10), None);
/// assert_eq!(BlockRange::of(..), Some(BlockRange::ALL));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockRange {
    first: u64,
    last: u64,
}

impl BlockRange {
    /// Every block.
    pub const ALL: BlockRange = BlockRange { first: 0, last: u64::MAX };

    /// The blocks `first ..= last`, or `None` if `last` comes before `first`.
    #[inline]
    #[must_use]
    pub const fn new(first: u64, last: u64) -> Option<BlockRange> {
        if first <= last { Some(BlockRange { first, last }) } else { None }
    }

    /// One block.
    #[inline]
    #[must_use]
    pub const fn one(block: u64) -> BlockRange {
        BlockRange { first: block, last: block }
    }

    /// The blocks of a Rust range (`3..8`, `3..=7`, `100..`, `..`), or `None` if there are none.
    #[inline(always)]
    #[must_use]
    pub fn of(range: impl RangeBounds<u64>) -> Option<BlockRange> {
        let first = match range.start_bound() {
            Bound::Included(&first) => first,
            Bound::Excluded(&before) => before.checked_add(1)?,
            Bound::Unbounded => 0,
        };
        let last = match range.end_bound() {
            Bound::Included(&last) => last,
            Bound::Excluded(&end) => end.checked_sub(1)?,
            Bound::Unbounded => u64::MAX,
        };
        BlockRange::new(first, last)
    }

    /// The first block.
    #[inline]
    #[must_use]
    pub const fn first(self) -> u64 {
        self.first
    }

    /// The last block.
    #[inline]
    #[must_use]
    pub const fn last(self) -> u64 {
        self.last
    }

    /// How many blocks, less one: the whole range has 2^64 blocks, which a `u64` cannot count.
    #[inline]
    #[must_use]
    pub const fn blocks_less_one(self) -> u64 {
        self.last - self.first
    }

    /// How many blocks.
    #[inline]
    #[must_use]
    pub const fn blocks(self) -> u128 {
        self.blocks_less_one() as u128 + 1
    }

    /// Whether the block is in the range.
    #[inline]
    #[must_use]
    pub const fn contains(self, block: u64) -> bool {
        self.first <= block && block <= self.last
    }

    /// Whether the ranges have a block in common.
    #[inline]
    #[must_use]
    pub const fn overlaps(self, other: BlockRange) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    /// The blocks that are in both.
    #[inline]
    #[must_use]
    pub fn intersection(self, other: BlockRange) -> Option<BlockRange> {
        BlockRange::new(self.first.max(other.first), self.last.min(other.last))
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn rust_ranges() {
        assert_eq!(BlockRange::of(0..1), Some(BlockRange::one(0)));
        assert_eq!(BlockRange::of(5..), BlockRange::new(5, u64::MAX));
        assert_eq!(BlockRange::of(..=9), BlockRange::new(0, 9));
        assert_eq!(BlockRange::of(..0), None);
        assert_eq!(BlockRange::of((Bound::Excluded(u64::MAX), Bound::Unbounded)), None);
        assert_eq!(BlockRange::of((Bound::Excluded(3), Bound::Included(4))), Some(BlockRange::one(4)));
        assert_eq!(BlockRange::ALL.blocks(), 1 << 64);
    }

    #[test]
    fn overlap_and_intersection_agree() {
        for a in 0..6_u64 {
            for b in a..6 {
                for c in 0..6 {
                    for d in c..6 {
                        let (x, y) = (BlockRange::new(a, b).unwrap(), BlockRange::new(c, d).unwrap());
                        let common: Vec<u64> = (0..6).filter(|&n| x.contains(n) && y.contains(n)).collect();
                        assert_eq!(x.overlaps(y), !common.is_empty());
                        let both = x.intersection(y).map(|r| (r.first()..=r.last()).collect::<Vec<_>>());
                        assert_eq!(both.unwrap_or_default(), common);
                    }
                }
            }
        }
    }
}
