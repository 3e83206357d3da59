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
