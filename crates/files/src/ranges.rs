//! Locks on ranges of a file's blocks, of the kind that the file system was opened with.

use std::time::Duration;

use f2fs_extent::{ExclusiveGuard, ExtentTable, SharedGuard};
#[cfg(feature = "baselines")]
use f2fs_extent::{StateGuard, StateTree};

/// The kind of lock on ranges of a file's blocks ([`Options::range_lock`](crate::Options::range_lock)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RangeLock {
    /// The lock table of `f2fs-extent`: readers share, and write no common cache line unless they read neighbouring
    /// blocks.
    #[default]
    Extent,
    /// A tree of locked ranges under one mutex, on which readers of a block exclude each other: what Btrfs did in Linux
    /// 5.8. For comparisons: the feature `baselines` has it.
    #[cfg(feature = "baselines")]
    Btree,
}

/// How much waiting for a file's ranges there has been ([`File::lock_waits`](crate::File::lock_waits)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockWaits {
    /// Requests that had to wait.
    pub waits: u64,
    /// The time that they waited, added up.
    pub waited: Duration,
    /// The longest single wait.
    pub longest: Duration,
}

/// The range locks of a file.
#[derive(Debug)]
pub(crate) enum Ranges {
    Extent(ExtentTable),
    #[cfg(feature = "baselines")]
    Btree(Box<StateTree>),
}

/// A locked range, until it is dropped.
#[derive(Debug)]
#[must_use]
pub(crate) enum RangeGuard<'a> {
    Shared {
        _guard: SharedGuard<'a>,
    },
    Exclusive {
        _guard: ExclusiveGuard<'a>,
    },
    #[cfg(feature = "baselines")]
    Tree {
        _guard: StateGuard<'a>,
    },
}

impl Ranges {
    pub(crate) fn new(kind: RangeLock) -> Ranges {
        match kind {
            RangeLock::Extent => Ranges::Extent(ExtentTable::new()),
            #[cfg(feature = "baselines")]
            RangeLock::Btree => Ranges::Btree(Box::default()),
        }
    }

    /// Waits until the blocks `first ..= last` may be read.
    #[inline]
    pub(crate) fn shared(&self, first: u64, last: u64) -> RangeGuard<'_> {
        match self {
            Ranges::Extent(table) => RangeGuard::Shared { _guard: table.shared(first..=last) },
            #[cfg(feature = "baselines")]
            Ranges::Btree(tree) => RangeGuard::Tree { _guard: tree.lock(first..=last) },
        }
    }

    /// Waits until the blocks `first ..= last` are the caller's alone.
    #[inline]
    pub(crate) fn exclusive(&self, first: u64, last: u64) -> RangeGuard<'_> {
        match self {
            Ranges::Extent(table) => RangeGuard::Exclusive { _guard: table.exclusive(first..=last) },
            #[cfg(feature = "baselines")]
            Ranges::Btree(tree) => RangeGuard::Tree { _guard: tree.lock(first..=last) },
        }
    }

    /// Whether somebody may be writing the block ([`ExtentTable::may_be_written`]).
    #[inline]
    pub(crate) fn may_be_written(&self, block: u64) -> bool {
        match self {
            Ranges::Extent(table) => table.may_be_written(block),
            // Its readers exclude each other: that is what it is there for.
            #[cfg(feature = "baselines")]
            Ranges::Btree(_) => true,
        }
    }

    /// The blocks, to read, unless that needs waiting.
    #[inline]
    pub(crate) fn try_shared(&self, first: u64, last: u64) -> Option<RangeGuard<'_>> {
        match self {
            Ranges::Extent(table) => table.try_shared(first..=last).map(|_guard| RangeGuard::Shared { _guard }),
            #[cfg(feature = "baselines")]
            Ranges::Btree(tree) => tree.try_lock(first..=last).map(|_guard| RangeGuard::Tree { _guard }),
        }
    }

    /// The blocks for the caller alone, unless that needs waiting.
    #[inline]
    pub(crate) fn try_exclusive(&self, first: u64, last: u64) -> Option<RangeGuard<'_>> {
        match self {
            Ranges::Extent(table) => table.try_exclusive(first..=last).map(|_guard| RangeGuard::Exclusive { _guard }),
            #[cfg(feature = "baselines")]
            Ranges::Btree(tree) => tree.try_lock(first..=last).map(|_guard| RangeGuard::Tree { _guard }),
        }
    }

    /// Bytes of memory that the locks of the blocks that were ever touched take.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Ranges::Extent(table) => table.bytes() as u64,
            // Those that are held at the moment.
            #[cfg(feature = "baselines")]
            Ranges::Btree(_) => 0,
        }
    }

    pub(crate) fn waits(&self) -> LockWaits {
        let stats = match self {
            Ranges::Extent(table) => table.wait_stats(),
            #[cfg(feature = "baselines")]
            Ranges::Btree(tree) => tree.wait_stats(),
        };
        LockWaits { waits: stats.waits, waited: stats.waited, longest: stats.longest }
    }
}

#[cfg(all(test, feature = "baselines"))]
mod tests {
    use super::*;

    #[test]
    fn ranges_exclude_each_other_where_they_must() {
        for kind in [RangeLock::Extent, RangeLock::Btree] {
            let ranges = Ranges::new(kind);
            let writer = ranges.exclusive(10, 19);
            assert!(ranges.try_shared(19, 30).is_none() && ranges.try_exclusive(0, 10).is_none(), "{kind:?}");
            let below = ranges.try_shared(0, 9);
            let above = ranges.try_exclusive(20, u64::MAX);
            assert!(below.is_some() && above.is_some(), "{kind:?}");
            assert!(ranges.try_exclusive(5, 6).is_none(), "{kind:?}");
            drop(writer);
            assert!(ranges.try_exclusive(10, 19).is_some(), "{kind:?}");
            assert!(ranges.try_exclusive(0, u64::MAX).is_none(), "{kind:?}");
            // Readers share the table, and exclude each other in the tree.
            assert_eq!(ranges.try_shared(0, 9).is_some(), kind == RangeLock::Extent);
            drop((below, above));
            drop(ranges.exclusive(0, u64::MAX));
            assert_eq!(ranges.waits().waits, 0);
        }
    }

    #[test]
    fn who_waits_is_woken_and_counted() {
        for kind in [RangeLock::Extent, RangeLock::Btree] {
            let ranges = Ranges::new(kind);
            let writer = ranges.exclusive(3, 5);
            std::thread::scope(|scope| {
                let waiting = scope.spawn(|| drop(ranges.shared(5, 100)));
                // A busy machine may take long to begin with the other thread.
                std::thread::sleep(Duration::from_millis(300));
                assert!(!waiting.is_finished());
                drop(writer);
            });
            let waits = ranges.waits();
            assert_eq!(waits.waits, 1, "{kind:?}");
            assert!(waits.longest <= waits.waited && !waits.longest.is_zero(), "{kind:?}: {waits:?}");
        }
    }
}
