//! What has come together since the last checkpoint: data blocks that were written, nodes that were synced.
//!
//! Each processor counts its own, and tells all others once in a batch. A thread that only has to know whether
//! there are few reads one line, which seldom changes. It adds up the counts of all processors if that line does not
//! tell.
//!
//! # Locking
//!
//! None. A count that happened before the call (by a lock that both took, or a fence behind the count and one in front of
//! the call) is seen.

use f2fs_sync::atomic::{AtomicU64, Ordering};
use f2fs_sync::{CachePadded, ShardedCounter, processors};

/// The count.
#[derive(Debug)]
pub(crate) struct BatchedCount {
    exact: ShardedCounter,
    /// What a processor counts between two tellings.
    batch: i64,
    /// Tellings since the last checkpoint.
    told: CachePadded<AtomicU64>,
    /// The most that is counted and not told, all processors together.
    untold: u64,
}

impl BatchedCount {
    /// Each processor tells the others once in `batch`.
    pub(crate) fn new(batch: u32) -> BatchedCount {
        BatchedCount {
            exact: ShardedCounter::new(0),
            batch: batch.into(),
            told: CachePadded::new(AtomicU64::new(0)),
            untold: (processors() as u64).next_power_of_two().saturating_mul(batch.into()),
        }
    }

    /// Counts so many more.
    #[inline]
    pub(crate) fn add(&self, count: u64) {
        let here = self.exact.add(count as i64);
        let batches = here.div_euclid(self.batch) - here.wrapping_sub(count as i64).div_euclid(self.batch);
        if batches > 0 {
            self.told.fetch_add(batches as u64, Ordering::Relaxed);
        }
    }

    /// Takes back what was counted and did not come about. What was told of it stays told.
    pub(crate) fn take_back(&self, count: u64) {
        self.exact.sub(count as i64);
    }

    /// The count: reads the line of every processor.
    pub(crate) fn sum(&self) -> u64 {
        self.exact.sum().max(0) as u64
    }

    /// As much as it can be, by the shared line alone.
    fn most(&self) -> u64 {
        self.told.load(Ordering::Relaxed).saturating_mul(self.batch.unsigned_abs()).saturating_add(self.untold)
    }

    /// Whether it is at most so much. Adds up only if the shared line does not decide it.
    pub(crate) fn is_at_most(&self, limit: u64) -> bool {
        self.most() <= limit || self.sum() <= limit
    }

    /// Whether both together are at most so much. Adds up only if the shared lines do not decide it.
    pub(crate) fn are_at_most(&self, other: &BatchedCount, limit: u64) -> bool {
        self.most().saturating_add(other.most()) <= limit || self.sum().saturating_add(other.sum()) <= limit
    }

    /// The count begins again with a checkpoint, while nobody counts; gives what it was.
    pub(crate) fn restart(&self) -> u64 {
        let count = self.exact.sum();
        self.exact.sub(count);
        self.told.store(0, Ordering::Relaxed);
        count.max(0) as u64
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_exact_whatever_was_told() {
        let count = BatchedCount::new(512);
        let mut sum = 0;
        for round in 0..3 {
            for blocks in [1, 511, 512, 513, 7, 4096, 1, 1, 509].into_iter().cycle().take(100) {
                count.add(blocks);
                sum += blocks;
                assert_eq!(count.sum(), sum, "round {round}");
                assert!(count.is_at_most(sum) && !count.is_at_most(sum - 1), "round {round}, {sum}");
                assert!(count.is_at_most(sum + 1) && count.is_at_most(u64::MAX));
                assert!(count.are_at_most(&count, 2 * sum) && !count.are_at_most(&count, 2 * sum - 1));
                count.add(5);
                count.take_back(5);
            }
            assert_eq!(count.restart(), sum);
            sum = 0;
            assert!(count.is_at_most(0));
        }
    }

    #[test]
    fn threads_tell_enough() {
        let count = BatchedCount::new(512);
        for _ in 0..2 {
            std::thread::scope(|scope| {
                for thread in 0..8 {
                    let count = &count;
                    scope.spawn(move || (0..1000).for_each(|n| count.add(n % 7 * thread)));
                }
            });
            let told = count.told.load(Ordering::Relaxed) * 512;
            assert!(told + count.untold >= count.sum(), "{told} of {}", count.sum());
            assert!(!count.is_at_most(count.sum() - 1));
            count.restart();
        }
    }
}
