//! The files with dirty pages, for write-back.
//!
//! ```text
//!   a file's first page becomes dirty ── add ──► on the list ── front, tidy: seen to be clean ──► off it
//! ```
//!
//! # Locking
//!
//! One list for each processor, with a mutex for a push or a pass over it; under it only the dirty blocks of a file are
//! looked at. A file stands on one list at most: a flag in its [`FilePages`] says so, which changes together with its
//! dirty blocks.

use f2fs_sync::atomic::{AtomicU64, Ordering};
use f2fs_sync::{Arc, CachePadded, Mutex, PerCore, PlainArc};

use crate::inode::Inode;
use crate::page_cache::FilePages;
use crate::{FsError, Time};

/// Seconds after which a dirty page is written back by operations that pass.
const AGE: i64 = 5;

/// The files with dirty pages.
pub(crate) struct DirtyFiles {
    /// The one that became dirty first in front. A file stays here until it is seen to be clean.
    lists: PerCore<Mutex<Vec<Arc<Inode>>>>,
    /// When the first file came, in seconds; 0: there is none.
    oldest: CachePadded<AtomicU64>,
}

impl DirtyFiles {
    pub(crate) fn new() -> DirtyFiles {
        DirtyFiles { lists: PerCore::new(|_| Mutex::new(Vec::new())), oldest: CachePadded::default() }
    }

    /// Puts a file on the list: its first page became dirty, and [`FilePages::dirtied`] says that nobody else puts it
    /// there.
    pub(crate) fn add(&self, inode: &Arc<Inode>, now: Time) {
        self.lists.slot().lock().push(inode.clone());
        if self.oldest.load(Ordering::Relaxed) == 0 {
            self.oldest.store((now.seconds as u64).max(1), Ordering::Relaxed);
        }
    }

    /// Whether something is dirty for long.
    pub(crate) fn is_overdue(&self, now: Time) -> bool {
        let oldest = self.oldest.load(Ordering::Relaxed);
        oldest != 0 && now.seconds.saturating_sub(oldest as i64) >= AGE
    }

    /// Drops the files that are clean, and returns files from the front until `pages` dirty pages are covered.
    pub(crate) fn front(&self, pages: u64) -> Vec<Arc<Inode>> {
        let mut files = Vec::new();
        let mut found = 0;
        for list in self.lists.iter() {
            list.lock().retain(|inode| {
                let dirty = inode.pages().map_or(0, FilePages::still_dirty);
                if dirty != 0 && found < pages {
                    found = found.saturating_add(dirty);
                    files.push(inode.clone());
                }
                dirty != 0
            });
        }
        // Files that were made one after the other lie together.
        files.sort_unstable_by_key(|inode| inode.ino);
        files
    }

    /// Drops the files that are clean; what is left counts as dirty from now on.
    pub(crate) fn tidy(&self, now: Time) {
        let mut left = false;
        for list in self.lists.iter() {
            let mut list = list.lock();
            list.retain(|inode| inode.pages().is_some_and(|pages| pages.still_dirty() != 0));
            left |= !list.is_empty();
        }
        self.oldest.store(if left { (now.seconds as u64).max(1) } else { 0 }, Ordering::Relaxed);
    }
}

/// Notes an error for all handles of these files, if the file is dirty.
pub(crate) fn note_error(files: &[Arc<Inode>], error: &PlainArc<FsError>) {
    for pages in files.iter().filter_map(|inode| inode.pages()) {
        if pages.is_dirty() {
            pages.errors.note(error.clone());
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    #![allow(clippy::unwrap_used)] // a test fails by panicking

    use f2fs_sync::PlainArc;

    use super::*;
    use crate::samples::formatted;
    use crate::{File, FileSystem, Options};

    fn file_system() -> FileSystem {
        let device = formatted(32 * 1024);
        let fs = FileSystem::open(device, Options::new().page_cache(4 << 20)).unwrap();
        // The first sync writes a checkpoint, and with that all files.
        fs.create_file("/first", 0o644).unwrap().sync_all().unwrap();
        fs
    }

    /// A file with two dirty pages.
    fn dirty(fs: &FileSystem, name: &str) -> File {
        let file = fs.create_file(name, 0o644).unwrap();
        file.write_at(&[1; 8192], 0).unwrap();
        file
    }

    fn at(seconds: i64) -> Time {
        Time { seconds, nanoseconds: 0 }
    }

    /// The first file counts, and after a look those that are left count anew.
    #[test]
    fn dirty_pages_are_overdue_after_a_while() {
        let fs = file_system();
        let (one, other) = (dirty(&fs, "/one"), dirty(&fs, "/other"));
        let files = DirtyFiles::new();
        assert!(!files.is_overdue(at(i64::MAX)), "there are none");
        files.add(&one.handle.inode, at(100));
        files.add(&other.handle.inode, at(103));
        assert!(!files.is_overdue(at(104)) && files.is_overdue(at(105)));
        files.tidy(at(200));
        assert!(!files.is_overdue(at(204)) && files.is_overdue(at(205)));
        one.sync_all().unwrap();
        files.tidy(at(300));
        assert!(!files.is_overdue(at(304)) && files.is_overdue(at(305)));
        let left = files.front(u64::MAX);
        assert!(left.len() == 1 && left[0].ino == other.ino());
        drop(left);
        other.sync_all().unwrap();
        files.tidy(at(400));
        assert!(!files.is_overdue(at(i64::MAX)), "all are clean");
        assert!(files.lists.iter().all(|list| list.lock().is_empty()), "and nothing holds them");
        files.add(&one.handle.inode, at(0));
        assert!(files.is_overdue(at(6)), "a clock may begin at 0");
    }

    #[test]
    fn files_are_taken_from_the_front_until_they_have_so_many_pages() {
        let fs = file_system();
        let all: Vec<_> = (0..3).map(|number| dirty(&fs, &format!("/{number}"))).collect();
        let files = DirtyFiles::new();
        // In the reverse order of their numbers.
        let mut inodes: Vec<_> = all.iter().map(|file| file.handle.inode.clone()).collect();
        inodes.sort_unstable_by_key(|inode| core::cmp::Reverse(inode.ino));
        let list = files.lists.iter().next().unwrap();
        list.lock().extend(inodes.iter().cloned());
        let numbers = |pages| files.front(pages).iter().map(|inode| inode.ino).collect::<Vec<_>>();
        let (high, middle, low) = (inodes[0].ino, inodes[1].ino, inodes[2].ino);
        assert_eq!(numbers(0), []);
        for (pages, taken) in [(1, vec![high]), (2, vec![high]), (3, vec![middle, high]), (4, vec![middle, high])] {
            assert_eq!(numbers(pages), taken, "{pages} pages");
        }
        assert_eq!(numbers(u64::MAX), [low, middle, high]);
        assert_eq!(list.lock().len(), 3, "they stay until they are clean");
        all.iter().find(|file| file.ino() == middle).unwrap().sync_all().unwrap();
        assert_eq!((numbers(u64::MAX), list.lock().len()), (vec![low, high], 2));
    }

    /// An error of write-back is told of the files that it was about.
    #[test]
    fn an_error_is_told_of_the_files_that_are_dirty() {
        let fs = file_system();
        let (one, other) = (dirty(&fs, "/one"), dirty(&fs, "/other"));
        other.sync_all().unwrap();
        note_error(&[one.handle.inode.clone(), other.handle.inode.clone()], &PlainArc::new(FsError::NotFound));
        assert!(matches!(one.sync_all(), Err(FsError::WriteBack(_))));
        one.sync_all().unwrap();
        other.sync_all().unwrap();
    }
}
