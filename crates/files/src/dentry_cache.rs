//! How many dentry blocks stay in memory.
//!
//! A directory keeps the blocks that were looked into for as long as its inode is in memory, and an inode stays there when nobody
//! uses it. A walk over a large tree would keep all of its names. So blocks that come into memory are counted, and now and then
//! those that are there:
//!
//! ```text
//!              more came than there is room for       few are there: go on counting from them
//!   counting ------------------------------------> all ------------------------------------------> counting
//!                                                   |                                                 ^
//!                                                   | too many: directories that nobody uses go,      |
//!                                                   +-- then clean blocks of those in use ------------+
//! ```
//!
//! # Locking
//!
//! One mutex around the look at all, which whoever finds it taken leaves to the one who has it. Under it the shards of the inode
//! table are locked, one at a time, and under those the maps of a directory's pages. So nobody asks for room with one of them
//! held. The count is written when a block was read from the device, and by a checkpoint; else it is only read.

use f2fs_sync::atomic::{AtomicU64, Ordering};
use f2fs_sync::{CachePadded, Mutex};

use crate::inode_table::InodeTable;

/// The count.
#[derive(Debug)]
pub(crate) struct DentryCache {
    /// Blocks that may be there.
    limit: u64,
    /// Blocks that were there when all were counted, and those that came since; some of them may have gone. On a line of its own:
    /// what stands beside it is read by every operation.
    counted: CachePadded<AtomicU64>,
    /// Where all are counted again.
    next: AtomicU64,
    looking: Mutex<()>,
}

impl DentryCache {
    /// So many blocks may be there, about.
    pub(crate) fn new(limit: u64) -> DentryCache {
        DentryCache { limit, counted: CachePadded::default(), next: AtomicU64::new(limit), looking: Mutex::new(()) }
    }

    /// So many blocks came into memory, or will be clean from now on.
    pub(crate) fn came(&self, blocks: u64) {
        self.counted.fetch_add(blocks, Ordering::Relaxed);
    }

    fn is_crowded(&self) -> bool {
        self.counted.load(Ordering::Relaxed) > self.next.load(Ordering::Relaxed)
    }

    /// Makes room if there are more dentry blocks in memory than there should be. Called with neither a shard of inodes nor a map
    /// of pages locked.
    pub(crate) fn trim(&self, inodes: &InodeTable) {
        let DentryCache { limit, counted, next, looking } = self;
        if !self.is_crowded() {
            return;
        }
        let Some(_looking) = looking.try_lock() else { return };
        let mut blocks = 0;
        inodes.each_directory(|directory| blocks += directory.blocks());
        if blocks > *limit {
            let mut surplus = blocks - limit / 2;
            inodes.drop_unused_directories(|directory| {
                let (goes, held) = (surplus > 0, directory.blocks());
                surplus = if goes { surplus.saturating_sub(held) } else { surplus };
                goes && held > 0
            });
            if surplus > limit / 2 {
                inodes.each_directory(|directory| directory.shrink(0));
            }
            blocks = 0;
            inodes.each_directory(|directory| blocks += directory.blocks());
        }
        counted.store(blocks, Ordering::Relaxed);
        // The next look is put off until more blocks have come: those that cannot go now would be looked at each time.
        next.store((*limit).max(blocks) + limit / 4, Ordering::Relaxed);
    }
}
