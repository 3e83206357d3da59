//! The announcement of covering locks: the only thing about them that a lock of a few blocks looks at.
//!
//! The hull is a range that contains every covering claim of the table, waiting or granted; it is empty when there is
//! none. It is written under the queue's lock and read without one, from a line that is otherwise only read.
//!
//! ```text
//!   a lock of a few blocks (or a release)        a covering request
//!   ─────────────────────────────────────        ──────────────────
//!   A1  change the word                          B1  widen the hull
//!   A2  look at the hull                         B2  look at the words
//! ```
//!
//! All four are sequentially consistent, so at least one side sees the other: a taker that sees the hull backs out and
//! queues; a releaser that sees it looks into the queue; a covering request that sees a holder waits for it.
//!
//! The two bounds are read one after the other. Each alone is proof enough: a request that ends before `low`, as read,
//! is disjoint from every covering claim announced before that read, and so is one that starts after `high`.

use f2fs_sync::atomic::{AtomicU64, Ordering::SeqCst};
use f2fs_sync::protocol_step;

use crate::order::store_load;
use crate::range::BlockRange;

/// A range that contains every covering claim.
#[derive(Debug)]
pub(crate) struct Hull {
    low: AtomicU64,
    high: AtomicU64,
}

impl Hull {
    pub(crate) fn new() -> Hull {
        Hull { low: AtomicU64::new(u64::MAX), high: AtomicU64::new(0) }
    }

    /// Whether no covering claim reaches into the blocks, whose words the caller has just changed.
    #[inline]
    pub(crate) fn misses(&self, range: BlockRange) -> bool {
        protocol_step!("hull_look_fence", store_load());
        range.last() < self.low.load(SeqCst) || range.first() > self.high.load(SeqCst)
    }

    /// Announces the bounds of all covering claims, or that there is none. Under the queue's lock, before a new claim's
    /// owner looks at the words.
    pub(crate) fn announce(&self, claims: impl Iterator<Item = BlockRange>) {
        let (mut low, mut high) = (u64::MAX, 0);
        for range in claims {
            low = low.min(range.first());
            high = high.max(range.last());
        }
        self.low.store(low, SeqCst);
        self.high.store(high, SeqCst);
        protocol_step!("hull_announce_fence", store_load());
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn only_what_reaches_no_covering_claim_is_missed() {
        let hull = Hull::new();
        let range = |first, last| BlockRange::new(first, last).expect("a range of blocks");
        let misses = |first, last| hull.misses(range(first, last));
        assert!(misses(0, 0) && misses(1, u64::MAX - 1), "there are none");
        hull.announce([range(5000, 6000), range(100, 200)].into_iter());
        assert!(misses(0, 99) && misses(6001, 6001) && misses(6001, u64::MAX));
        for (first, last) in [(0, 100), (100, 100), (150, 150), (6000, 6000), (5999, 7000), (0, u64::MAX)] {
            assert!(!misses(first, last), "{first}..={last}");
        }
        hull.announce(std::iter::empty());
        assert!(misses(0, 0) && misses(1, u64::MAX - 1), "there are none any more");
    }
}
