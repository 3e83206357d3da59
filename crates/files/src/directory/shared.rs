//! State that all directories of a file system share: how they are locked, the budget of the names that they know, and
//! the count of their blocks in memory.
//!
//! # Locking
//!
//! The count is written when a block was read from the device, and by a checkpoint; else it is only read. The budget
//! has a lock of its own ([`Budget`]).

use f2fs_sync::atomic::{AtomicU64, Ordering};
use f2fs_sync::{Budget, CachePadded, stripes_here};

use super::names::NAMES;
use super::{PAGE_SHARDS, STRIPES};
use crate::options::DirectoryLock;

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
