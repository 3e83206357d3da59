//! The precleaner's plan: writes into the holes of dirty segments, and the segments that were cleared for them
//! (`preclean.rs`).
//!
//! ```text
//!   segment cleared ──► not allocatable until a checkpoint is durable ──► its log's: `prepared` blocks more to write before the next step
//! ```
//!
//! # Locking
//!
//! `cleared` is the last in the order of locks. The counts are hints: updates of concurrent writers that get lost
//! change when the next step is due, and nothing else.

use f2fs_format::{BLOCKS_PER_SEGMENT, SegmentNo};
use f2fs_segment::SegmentManager;
use f2fs_segment::plan::Planner;
use f2fs_sync::Mutex;
use f2fs_sync::atomic::{AtomicI64, AtomicU64, Ordering};

use crate::Allocation;

/// The planner of writes into holes, and the segments that were cleared for them.
#[derive(Debug)]
pub(crate) struct Precleaner {
    /// `None`: valid runs in the way of a write are skipped.
    planner: Option<Planner>,
    /// The mean length of users' writes, each weighted by its blocks.
    request_blocks: AtomicU64,
    /// Blocks that the segments cleared last have room for, less what was written since.
    prepared: AtomicI64,
    /// Segments cleared since the last checkpoint.
    cleared: Mutex<Vec<SegmentNo>>,
}

impl Precleaner {
    pub(crate) fn new(allocation: &Allocation) -> Precleaner {
        Precleaner {
            planner: allocation.planner(1.0),
            // Long until it is known better: moving runs out of the way is for long writes.
            request_blocks: AtomicU64::new(BLOCKS_PER_SEGMENT.into()),
            prepared: AtomicI64::new(0),
            cleared: Mutex::new(Vec::new()),
        }
    }

    /// The planner of writes into holes; `None` if there is nothing to choose.
    pub(crate) fn planner(&self) -> Option<&Planner> {
        self.planner.as_ref()
    }

    /// Keeps the mean length of requests, each weighted by its blocks, and what is left of the segments cleared for
    /// them.
    pub(crate) fn note_request(&self, blocks: u64, into_holes: impl FnOnce() -> bool) {
        const WEIGHT: u64 = 4096;
        if self.planner.is_none() {
            return;
        }
        let blocks = blocks.min(WEIGHT);
        let mean = self.request_blocks.load(Ordering::Relaxed);
        let next = (mean * (WEIGHT - blocks) + blocks * blocks).div_ceil(WEIGHT);
        self.request_blocks.store(next, Ordering::Relaxed);
        if into_holes() {
            self.prepared.fetch_sub(blocks as i64, Ordering::Relaxed);
        }
    }

    /// The mean length of a request, at most a segment.
    pub(crate) fn mean_request(&self) -> u32 {
        self.request_blocks.load(Ordering::Relaxed).clamp(1, u64::from(BLOCKS_PER_SEGMENT)) as u32
    }

    /// Whether what was cleared is used up.
    pub(crate) fn is_due(&self, segments: &SegmentManager) -> bool {
        self.planner.is_some() && segments.need_ssr() && self.prepared.load(Ordering::Relaxed) <= 0
    }

    /// So many blocks may be written until the next step is due.
    pub(crate) fn set_prepared(&self, blocks: i64) {
        self.prepared.store(blocks, Ordering::Relaxed);
    }

    /// Segments were cleared: they are nobody's until a checkpoint is durable.
    pub(crate) fn clear_until_checkpoint(&self, segments: &mut Vec<SegmentNo>) {
        self.cleared.lock().append(segments);
    }

    /// Takes the segments that were cleared: the logs may have them when the checkpoint that is being frozen is
    /// durable.
    pub(crate) fn take_cleared(&self) -> Vec<SegmentNo> {
        core::mem::take(&mut *self.cleared.lock())
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests {
    use super::*;

    use f2fs_segment::cost::CostModel;

    #[test]
    fn long_requests_weigh_more() {
        let precleaner = Precleaner::new(&Allocation::partial(CostModel::nvme()));
        assert_eq!(precleaner.mean_request(), 512);
        precleaner.note_request(256, || false);
        assert_eq!(precleaner.mean_request(), 496);
        (0..1000).for_each(|_| precleaner.note_request(256, || false));
        assert!((256..=272).contains(&precleaner.mean_request()));
        precleaner.note_request(u64::MAX, || false);
        assert_eq!(precleaner.mean_request(), 512, "a segment at most");
        let skipping = Precleaner::new(&Allocation::ssr());
        skipping.note_request(256, || unreachable!("nobody asks"));
        assert!(skipping.planner().is_none() && precleaner.planner().is_some());
    }
}
