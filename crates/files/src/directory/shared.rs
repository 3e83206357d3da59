//! State that all directories of a file system share: how they are locked, the budget of the names that they know, and
//! the count of their blocks in memory.
//!
//! # Locking
//!
//! The count is written when a block was read from the device, by a checkpoint, and on large machines once in
//! [`TOLD`] directories; else it is only read. The budget
//! has a lock of its own ([`Budget`]).

use f2fs_sync::atomic::{AtomicU64, Ordering};
use f2fs_sync::{Budget, CachePadded, PerCore, stripes_here};

use super::names::NAMES;
use super::{PAGE_SHARDS, PageMap, STRIPES, Stripe};
use crate::options::DirectoryLock;

/// Directories that come into memory on one processor before their locks are counted.
const TOLD: u64 = 64;

/// The state that all directories share.
#[derive(Debug)]
pub(crate) struct Directories {
    lock: DirectoryLock,
    /// Stripes of the names of each directory, if they are not locked as a whole.
    stripes: usize,
    /// Shards of the map of pages that each has.
    page_shards: usize,
    /// The names that directories may know.
    pub(super) names: Budget,
    /// Dentry blocks that were in memory when all were counted, and those that came since; some of them may have gone.
    /// On a line of its own: the memory beside it is read by every operation.
    blocks: CachePadded<AtomicU64>,
    /// Directories that came on each processor since it told of some. A count that another thread of the processor
    /// overwrites only delays that.
    came: PerCore<AtomicU64>,
}

/// Blocks of memory that the locks of a directory take, beyond those that they take on a small machine: there the limit
/// of inodes bounds them well enough. On 128 processors the locks of one directory take 40 KiB.
fn lock_blocks(stripes: usize, page_shards: usize) -> u64 {
    let beyond = |number: usize, few: usize| number.saturating_sub(few);
    let bytes =
        beyond(stripes, STRIPES) * size_of::<Stripe>() + beyond(page_shards, PAGE_SHARDS) * size_of::<PageMap>();
    (bytes / f2fs_format::BLOCK_SIZE) as u64
}

impl Directories {
    /// For directories that are locked like this.
    pub(crate) fn new(lock: DirectoryLock) -> Directories {
        Directories {
            lock,
            stripes: stripes_here(STRIPES),
            page_shards: stripes_here(PAGE_SHARDS),
            names: Budget::new(NAMES),
            blocks: CachePadded::default(),
            came: PerCore::default(),
        }
    }

    /// Blocks that the locks of each directory count for.
    pub(crate) fn lock_blocks(&self) -> u64 {
        lock_blocks(self.stripes(), self.page_shards)
    }

    /// A directory came into memory.
    pub(super) fn came(&self) {
        let blocks = self.lock_blocks();
        if blocks == 0 {
            return;
        }
        let came = self.came.slot();
        let sum = came.load(Ordering::Relaxed) + 1;
        if sum < TOLD {
            came.store(sum, Ordering::Relaxed);
        } else {
            came.store(0, Ordering::Relaxed);
            self.blocks_came(sum * blocks);
        }
    }

    /// Stripes of names that each has.
    pub(super) fn stripes(&self) -> usize {
        match self.lock {
            DirectoryLock::Bucket => self.stripes,
            #[cfg(feature = "baselines")]
            DirectoryLock::Whole => 1,
        }
    }

    /// Shards of the map of pages that each has.
    pub(super) fn page_shards(&self) -> usize {
        self.page_shards
    }

    /// So many blocks came into memory, or will be clean from now on.
    pub(super) fn blocks_came(&self, blocks: u64) {
        self.blocks.fetch_add(blocks, Ordering::Relaxed);
    }

    /// Dentry blocks that came into memory since they were counted, and those that were there then.
    pub(crate) fn blocks(&self) -> u64 {
        self.blocks.load(Ordering::Relaxed)
    }

    /// So many dentry blocks are in memory: all were counted.
    pub(crate) fn set_blocks(&self, blocks: u64) {
        self.blocks.store(blocks, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn locks_count_on_large_machines() {
        for (times, blocks) in [(1, 0), (2, 1), (8, 8), (16, 18)] {
            assert_eq!(lock_blocks(STRIPES * times, PAGE_SHARDS * times), blocks, "{times} times as many");
        }
        let mut all = Directories::new(DirectoryLock::default());
        (all.stripes, all.page_shards) = (STRIPES, PAGE_SHARDS);
        (0..1000).for_each(|_| all.came());
        assert_eq!(all.blocks(), 0);
        (all.stripes, all.page_shards) = (8 * STRIPES, 8 * PAGE_SHARDS);
        (0..10_000).for_each(|_| all.came());
        // This thread may have gone to other processors meanwhile.
        let untold = TOLD * all.came.slots() as u64;
        assert!((10_000 - untold..=10_000).contains(&(all.blocks() / 8)), "{} blocks", all.blocks());
    }
}
