//! Data blocks written since the last checkpoint.
//!
//! Each processor counts its own, and tells all others once in [`BATCH`] blocks. A thread that only has to know whether
//! there are few reads one line, which seldom changes. It adds up the counts of all processors if that line does not
//! tell.
//!
//! # Locking
//!
//! None. A count that happened before the call (by a lock that both took, say) is seen.

use f2fs_sync::atomic::{AtomicU64, Ordering};
use f2fs_sync::{CachePadded, ShardedCounter, processors};

/// Blocks of one processor between two tellings: as many as it gets of a segment.
const BATCH: i64 = 512;

/// The count.
#[derive(Debug)]
pub(crate) struct DataCount {
    exact: ShardedCounter,
    /// Tellings since the last checkpoint.
    told: CachePadded<AtomicU64>,
    /// The most blocks that are counted and not told, all processors together.
    untold: u64,
}

impl DataCount {
    pub(crate) fn new() -> DataCount {
        DataCount {
            exact: ShardedCounter::new(0),
            told: CachePadded::new(AtomicU64::new(0)),
            untold: (processors() as u64).next_power_of_two().saturating_mul(BATCH as u64),
        }
    }

    /// Counts blocks.
    #[inline]
    pub(crate) fn add(&self, blocks: u64) {
        let here = self.exact.add(blocks as i64);
        let batches = here.div_euclid(BATCH) - here.wrapping_sub(blocks as i64).div_euclid(BATCH);
        if batches > 0 {
            self.told.fetch_add(batches as u64, Ordering::Relaxed);
        }
    }

    /// The blocks: reads the line of every processor.
    pub(crate) fn sum(&self) -> u64 {
        self.exact.sum().max(0) as u64
    }

    /// Whether there are at most so many. Adds up only if the shared line does not decide it.
    pub(crate) fn is_at_most(&self, limit: u64) -> bool {
        let told = self.told.load(Ordering::Relaxed).saturating_mul(BATCH as u64);
        told.saturating_add(self.untold) <= limit || self.sum() <= limit
    }

    /// The count begins again with a checkpoint, while nobody counts; gives what it was.
    pub(crate) fn restart(&self) -> u64 {
        let blocks = self.exact.sum();
        self.exact.sub(blocks);
        self.told.store(0, Ordering::Relaxed);
        blocks.max(0) as u64
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_exact_whatever_was_told() {
        let count = DataCount::new();
        let mut sum = 0;
        for round in 0..3 {
            for blocks in [1, 511, 512, 513, 7, 4096, 1, 1, 509].into_iter().cycle().take(100) {
                count.add(blocks);
                sum += blocks;
                assert_eq!(count.sum(), sum, "round {round}");
                assert!(count.is_at_most(sum) && !count.is_at_most(sum - 1), "round {round}, {sum}");
                assert!(count.is_at_most(sum + 1) && count.is_at_most(u64::MAX));
            }
            assert_eq!(count.restart(), sum);
            sum = 0;
            assert!(count.is_at_most(0));
        }
    }

    #[test]
    fn threads_tell_enough() {
        let count = DataCount::new();
        for _ in 0..2 {
            std::thread::scope(|scope| {
                for thread in 0..8 {
                    let count = &count;
                    scope.spawn(move || (0..1000).for_each(|n| count.add(n % 7 * thread)));
                }
            });
            let told = count.told.load(Ordering::Relaxed) * BATCH as u64;
            assert!(told + count.untold >= count.sum(), "{told} of {}", count.sum());
            assert!(!count.is_at_most(count.sum() - 1));
            count.restart();
        }
    }
}
