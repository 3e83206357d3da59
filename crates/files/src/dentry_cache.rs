//! How many dentry blocks stay in memory.
//!
//! A directory keeps the blocks that were looked into for as long as its inode is in memory, and an inode stays there
//! when nobody uses it. A walk over a large tree would keep all of its names. So blocks that come into memory are
//! counted, and now and then those that are there:
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
//! A mutex belongs to the thread that counts. Another thread that finds it locked goes on without counting. Under it
//! the shards of the inode table are locked, one at a time, and under those the maps of a directory's pages. So nobody
//! asks for room with one of them held. The count of blocks is the directories' own ([`Directories`]).

use f2fs_sync::atomic::{AtomicU64, Ordering};
use f2fs_sync::{Arc, Mutex};

use crate::directory::Directories;
use crate::inode_table::InodeTable;

/// The limit, and when it is looked after.
#[derive(Debug)]
pub(crate) struct DentryCache {
    /// Blocks that may be there.
    limit: u64,
    /// What all directories share; it has the count of their blocks.
    directories: Arc<Directories>,
    /// The count at which all are counted again.
    next: AtomicU64,
    /// Held by the thread that counts.
    counting: Mutex<()>,
}

impl DentryCache {
    /// So many blocks may be there, about.
    pub(crate) fn new(limit: u64, directories: Arc<Directories>) -> DentryCache {
        DentryCache { limit, directories, next: AtomicU64::new(limit), counting: Mutex::new(()) }
    }

    /// Makes room if there are more dentry blocks in memory than there should be. Called by an operation in front of a
    /// change or behind a look at a directory, with neither a shard of inodes nor a map of pages locked.
    #[inline]
    pub(crate) fn trim(&self, inodes: &InodeTable) {
        if self.directories.blocks() > self.next.load(Ordering::Relaxed) {
            self.count(inodes);
        }
    }

    #[cold]
    fn count(&self, inodes: &InodeTable) {
        let DentryCache { limit, directories, next, counting } = self;
        let Some(_counting) = counting.try_lock() else { return };
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
        directories.set_blocks(blocks);
        // The next look is put off until more blocks have come: those that cannot go now would be looked at each time.
        next.store((*limit).max(blocks) + limit / 4, Ordering::Relaxed);
    }
}
