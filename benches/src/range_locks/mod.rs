//! Range locks behind one trait: the lock table of f2fs-extent, and what others do in its place.

mod btree;
mod list;
mod segments;

use f2fs_extent::ExtentTable;
use f2fs_sync::RwLock;
use range_lock::VecRangeLock;

pub use btree::StateTree;
pub use list::ListLock;
pub use segments::SegmentLocks;

/// Locks on ranges of blocks of one file.
pub trait RangeLock: Send + Sync + 'static {
    /// A file of so many blocks, nothing locked.
    fn new(blocks: u64) -> Self;

    /// Calls `hold` while the blocks `first ..= last` are shared.
    fn shared<R>(&self, first: u64, last: u64, hold: impl FnOnce() -> R) -> R;

    /// Calls `hold` while the blocks `first ..= last` are the caller's alone.
    fn exclusive<R>(&self, first: u64, last: u64, hold: impl FnOnce() -> R) -> R;
}

impl RangeLock for ExtentTable {
    fn new(_blocks: u64) -> Self {
        ExtentTable::new()
    }

    #[inline]
    fn shared<R>(&self, first: u64, last: u64, hold: impl FnOnce() -> R) -> R {
        let _guard = ExtentTable::shared(self, first..=last);
        hold()
    }

    #[inline]
    fn exclusive<R>(&self, first: u64, last: u64, hold: impl FnOnce() -> R) -> R {
        let _guard = ExtentTable::exclusive(self, first..=last);
        hold()
    }
}

/// One reader-writer lock for the file, as in ext4 and F2FS.
#[derive(Debug)]
pub struct FileLock(RwLock<()>);

impl RangeLock for FileLock {
    fn new(_blocks: u64) -> Self {
        FileLock(RwLock::new(()))
    }

    #[inline]
    fn shared<R>(&self, _first: u64, _last: u64, hold: impl FnOnce() -> R) -> R {
        let _guard = self.0.read();
        hold()
    }

    #[inline]
    fn exclusive<R>(&self, _first: u64, _last: u64, hold: impl FnOnce() -> R) -> R {
        let _guard = self.0.write();
        hold()
    }
}

/// The `range-lock` crate. It knows no sharing and no waiting: readers exclude each other, and who cannot have the
/// range tries again.
#[derive(Debug)]
pub struct CrateLock(VecRangeLock<u8>);

impl RangeLock for CrateLock {
    fn new(blocks: u64) -> Self {
        CrateLock(VecRangeLock::new(vec![0; blocks as usize]))
    }

    fn shared<R>(&self, first: u64, last: u64, hold: impl FnOnce() -> R) -> R {
        self.exclusive(first, last, hold)
    }

    fn exclusive<R>(&self, first: u64, last: u64, hold: impl FnOnce() -> R) -> R {
        let range = first as usize..(last as usize).saturating_add(1).min(self.0.data_len());
        loop {
            if let Ok(_guard) = self.0.try_lock(range.clone()) {
                return hold();
            }
            std::thread::yield_now();
        }
    }
}

#[cfg(test)]
mod tests {
    use f2fs_sync::atomic::{AtomicI64, Ordering::SeqCst};

    use super::*;

    const BLOCKS: u64 = 64;
    const WRITER: i64 = 1 << 32;

    /// Ranges that overlap: in one block, in several, in all; one up to the last block that there can be.
    const RANGES: [(u64, u64); 5] = [(7, 7), (5, 9), (9, 30), (0, BLOCKS - 1), (0, u64::MAX)];

    fn enter(inside: &[AtomicI64], (first, last): (u64, u64), weight: i64) {
        let blocks = &inside[first as usize..=last.min(BLOCKS - 1) as usize];
        for block in blocks {
            let others = block.fetch_add(weight, SeqCst);
            assert!(others == 0 || weight == 1 && others < WRITER, "a writer is not alone: {others}");
        }
        std::thread::yield_now();
        for block in blocks {
            block.fetch_sub(weight, SeqCst);
        }
    }

    /// Checks that what is measured is a lock.
    fn excludes<L: RangeLock>() {
        let lock = L::new(BLOCKS);
        let inside: Vec<AtomicI64> = (0..BLOCKS).map(|_| AtomicI64::new(0)).collect();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (lock, inside) = (&lock, &inside);
                scope.spawn(move || {
                    for round in 0..400 {
                        let range = RANGES[(thread * 7 + round * 3) % RANGES.len()];
                        if (thread + round) % 3 == 0 {
                            lock.exclusive(range.0, range.1, || enter(inside, range, WRITER));
                        } else {
                            lock.shared(range.0, range.1, || enter(inside, range, 1));
                        }
                    }
                });
            }
        });
        assert!(inside.iter().all(|block| block.load(SeqCst) == 0));
    }

    #[test]
    fn every_peer_excludes() {
        excludes::<ExtentTable>();
        excludes::<FileLock>();
        excludes::<SegmentLocks>();
        excludes::<ListLock>();
        excludes::<StateTree<0>>();
        excludes::<StateTree<50>>();
        excludes::<CrateLock>();
    }
}
