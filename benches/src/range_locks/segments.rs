//! Segment locks, as pNOVA has them: the file in pieces of equal size with a reader-writer lock each. A range takes the
//! locks of all pieces that it touches, so neighbours wait for each other, and the whole file takes every lock.

use f2fs_sync::{CachePadded, RwLock};

use super::RangeLock;

/// Blocks in a segment: 1 MiB.
const SEGMENT: u64 = 256;

/// A lock for each segment.
#[derive(Debug)]
pub struct SegmentLocks(Vec<CachePadded<RwLock<()>>>);

impl SegmentLocks {
    fn touched(&self, first: u64, last: u64) -> &[CachePadded<RwLock<()>>] {
        let end = self.0.len() - 1;
        &self.0[((first / SEGMENT) as usize).min(end)..=((last / SEGMENT) as usize).min(end)]
    }
}

impl RangeLock for SegmentLocks {
    fn new(blocks: u64) -> Self {
        SegmentLocks((0..blocks.div_ceil(SEGMENT)).map(|_| CachePadded::new(RwLock::new(()))).collect())
    }

    #[inline]
    fn shared<R>(&self, first: u64, last: u64, hold: impl FnOnce() -> R) -> R {
        match self.touched(first, last) {
            [one] => {
                let _guard = one.read();
                hold()
            }
            locks => {
                let _guards: Vec<_> = locks.iter().map(|lock| lock.read()).collect();
                hold()
            }
        }
    }

    #[inline]
    fn exclusive<R>(&self, first: u64, last: u64, hold: impl FnOnce() -> R) -> R {
        match self.touched(first, last) {
            [one] => {
                let _guard = one.write();
                hold()
            }
            locks => {
                let _guards: Vec<_> = locks.iter().map(|lock| lock.write()).collect();
                hold()
            }
        }
    }
}
