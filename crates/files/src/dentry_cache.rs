//! How many dentry blocks stay in memory, and how many directories on machines with many processors.
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
//! The more processors, the more locks a directory has ([`Directories::lock_blocks`]). They may take as much memory
//! again as the blocks: then directories that nobody uses go as well, with blocks or without.
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
    /// Blocks that the locks of each directory count for.
    locks: u64,
    /// Held by the thread that counts.
    counting: Mutex<()>,
}

impl DentryCache {
    /// So many blocks may be there, about.
    pub(crate) fn new(limit: u64, directories: Arc<Directories>) -> DentryCache {
        let locks = directories.lock_blocks();
        DentryCache { limit, directories, next: AtomicU64::new(limit), locks, counting: Mutex::new(()) }
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
        let DentryCache { limit, directories, next, locks, counting } = self;
        let Some(_counting) = counting.try_lock() else { return };
        let (mut blocks, mut locked) = (0, 0);
        inodes.each_directory(|directory| {
            blocks += directory.blocks();
            locked += locks;
        });
        let above = |held: u64| if held > *limit { held - limit / 2 } else { 0 };
        let (mut surplus, mut surplus_locked) = (above(blocks), above(locked));
        if surplus.max(surplus_locked) > 0 {
            inodes.drop_unused_directories(|directory| {
                let held = directory.blocks();
                let goes = surplus_locked > 0 || (surplus > 0 && held > 0);
                if goes {
                    surplus = surplus.saturating_sub(held);
                    surplus_locked = surplus_locked.saturating_sub(*locks);
                }
                goes
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

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    #![allow(clippy::unwrap_used)] // a test fails by panicking

    use super::*;
    use crate::samples::formatted;
    use crate::{Dir, FileKind, FileSystem, InodeRef, NewFile, Options};

    const LARGE: usize = 6;

    /// A file system with some large directories and many small ones in another one, none of them in memory.
    fn file_system() -> (FileSystem, InodeRef) {
        opened(Options::new())
    }

    fn opened(options: Options) -> (FileSystem, InodeRef) {
        let device = formatted(32 * 1024);
        let fs = FileSystem::open(device, options).unwrap();
        let new = |kind| NewFile::new(kind, 0o755);
        let above = fs.root().unwrap().create("above", &new(FileKind::Directory)).unwrap();
        for number in 0..LARGE {
            let directory = above.create(format!("large-{number}"), &new(FileKind::Directory)).unwrap();
            for name in 0..30 {
                directory.create(format!("{name:0>200}"), &new(FileKind::Fifo)).unwrap();
            }
        }
        for number in 0..40 {
            above.create(format!("small-{number}"), &new(FileKind::Directory)).unwrap();
        }
        fs.checkpoint().unwrap();
        fs.core.inodes.drop_unused();
        // The root may be held by a processor.
        fs.core.inodes.each_directory(|directory| directory.shrink(0));
        assert_eq!(blocks(&fs), 0);
        (fs, above)
    }

    /// A limit that the locks of directories do not count for, on any machine.
    fn blocks_alone(limit: u64, fs: &FileSystem) -> DentryCache {
        DentryCache { locks: 0, ..DentryCache::new(limit, fs.core.directories.clone()) }
    }

    fn blocks(fs: &FileSystem) -> u64 {
        let mut blocks = 0;
        fs.core.inodes.each_directory(|directory| blocks += directory.blocks());
        blocks
    }

    /// Has all of a directory in memory.
    fn read(above: &InodeRef, name: &str) -> Dir {
        let directory = above.lookup(name).unwrap().open_dir().unwrap();
        directory.read(0, usize::MAX).unwrap();
        directory
    }

    /// Has so many large directories in memory; how many blocks each has.
    fn read_large(fs: &FileSystem, above: &InodeRef, directories: usize) -> u64 {
        (0..directories).for_each(|number| drop(read(above, &format!("large-{number}"))));
        let each = blocks(fs) / directories as u64;
        assert!(each > 1 && blocks(fs) == each * directories as u64);
        each
    }

    #[test]
    fn directories_that_nobody_uses_go_until_half_is_left() {
        let (fs, above) = file_system();
        let each = read_large(&fs, &above, LARGE);
        let small: Vec<_> = (0..40).map(|number| read(&above, &format!("small-{number}")).ino()).collect();
        let (inodes, all) = (&fs.core.inodes, &fs.core.directories);
        let cache = blocks_alone(4 * each, &fs);
        all.set_blocks(4 * each);
        cache.trim(inodes);
        assert_eq!(blocks(&fs), 6 * each, "so many may have come");
        all.set_blocks(4 * each + 1);
        cache.trim(inodes);
        assert_eq!((blocks(&fs), all.blocks()), (2 * each, 2 * each));
        assert!(small.iter().all(|ino| inodes.in_memory(*ino).is_some()), "they have no blocks");
        // They are counted again when so many more may be there.
        for (came, counted) in [(5 * each, 5 * each), (5 * each + 1, 2 * each)] {
            all.set_blocks(came);
            cache.trim(inodes);
            assert_eq!(all.blocks(), counted);
        }
    }

    /// On a machine with many processors, directories without any block in memory go as well.
    #[test]
    fn directories_go_for_their_locks() {
        let (fs, above) = file_system();
        let small: Vec<_> = (0..40).map(|number| read(&above, &format!("small-{number}")).ino()).collect();
        let (inodes, all) = (&fs.core.inodes, &fs.core.directories);
        let cache = DentryCache { locks: 8, ..blocks_alone(100, &fs) };
        all.set_blocks(101);
        cache.trim(inodes);
        // Of 40, the one above and the root, 6 stay.
        let (mut left, small) = (0, small.iter().filter(|ino| inodes.in_memory(**ino).is_some()).count());
        inodes.each_directory(|_| left += 1);
        assert!(left == 6 && small >= 4, "{left} directories, {small} of the small ones");
        assert!(inodes.in_memory(above.ino()).is_some());
    }

    #[test]
    fn as_many_as_there_may_be_stay() {
        let (fs, above) = file_system();
        let each = read_large(&fs, &above, 4);
        let cache = blocks_alone(4 * each, &fs);
        fs.core.directories.set_blocks(100 * each);
        cache.trim(&fs.core.inodes);
        assert_eq!((blocks(&fs), fs.core.directories.blocks()), (4 * each, 4 * each));
    }

    /// Directories in use lose their blocks only if the others were too few.
    #[test]
    fn blocks_of_directories_in_use_go_last() {
        let (fs, above) = file_system();
        let each = read_large(&fs, &above, LARGE);
        let (inodes, all) = (&fs.core.inodes, &fs.core.directories);
        let cache = blocks_alone(4 * each, &fs);
        let open = |directories: usize| -> Vec<_> {
            read_large(&fs, &above, LARGE);
            (0..directories).map(|number| read(&above, &format!("large-{number}"))).collect()
        };
        let held = open(4);
        all.set_blocks(6 * each);
        cache.trim(inodes);
        assert_eq!((blocks(&fs), all.blocks()), (4 * each, 4 * each));
        drop(held);
        let held = open(5);
        all.set_blocks(6 * each);
        cache.trim(inodes);
        assert_eq!((blocks(&fs), all.blocks()), (0, 0));
        drop(held);
        let held = open(5);
        all.set_blocks(5 * each);
        cache.trim(inodes);
        assert_eq!(blocks(&fs), 6 * each, "it is not counted before so many more came");
        drop(held);
    }

    /// Who lists one directory after the other makes room among those that were listed.
    #[test]
    fn listings_stay_about_within_the_limit() {
        const LIMIT: u64 = 8;
        let (fs, above) = opened(Options::new().dentry_cache(core::num::NonZeroUsize::new(LIMIT as usize).unwrap()));
        let all: Vec<_> =
            (0..LARGE).map(|number| above.lookup(format!("large-{number}")).unwrap().open_dir().unwrap()).collect();
        let mut each = 0;
        for directory in &all {
            let before = blocks(&fs);
            directory.read(0, usize::MAX).unwrap();
            each = each.max(blocks(&fs).saturating_sub(before));
            assert!(blocks(&fs) <= LIMIT + LIMIT / 4 + each, "{} blocks", blocks(&fs));
        }
        assert!(each * LARGE as u64 > 2 * LIMIT, "the test is too small: {each}");
    }
}
