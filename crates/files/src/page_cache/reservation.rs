//! Room for the pages of a write, taken before it locks anything.
//!
//! A write that has its range must not wait for write-back, which may wait for that range. So it takes room for its pages, and the right to make them
//! dirty, in front of all locks; with them it cannot fail for lack of memory. Blocks on the device, and nodes that lead to
//! them, are counted by the write itself ([`FileData::write_cached`](crate::file_data::FileData::write_cached)), so that write-back finds them.
//!
//! # Locking
//!
//! `making_room` is held by the one writer that writes back because there was no room; others wait for it with nothing held.

use super::PageCache;
use crate::FsError;
use crate::file_data::FileData;
use crate::file_data::read::blocks_of;

/// How often a writer makes room before it goes past the cache.
const TRIES: u32 = 4;

/// Room for a write.
#[derive(Debug)]
pub(crate) struct Admitted<'a> {
    cache: &'a PageCache,
    /// Pages that may come.
    pages: u64,
    /// Pages that may become dirty.
    dirty: u64,
}

impl Admitted<'_> {
    /// A page came, or became dirty.
    pub(super) fn use_up(&mut self, is_new: bool, was_clean: bool) {
        self.pages -= u64::from(is_new);
        self.dirty -= u64::from(was_clean);
    }
}

impl Drop for Admitted<'_> {
    fn drop(&mut self) {
        self.cache.table.give_room(self.pages);
        self.cache.give_dirty(self.dirty);
    }
}

impl PageCache {
    /// Pages of one write at most; a longer one goes to the device at once.
    fn longest_write(&self) -> u64 {
        (self.most_dirty / 4).min(4096)
    }

    fn admit(&self, pages: u64) -> Option<Admitted<'_>> {
        if !self.clean.try_take(pages) {
            return None;
        }
        if !self.table.take_room(pages) {
            self.give_dirty(pages);
            return None;
        }
        Some(Admitted { cache: self, pages, dirty: pages })
    }

    /// Pages are clean.
    pub(super) fn give_dirty(&self, pages: u64) {
        if pages != 0 {
            self.clean.give(pages);
        }
    }

    /// What is written back at a time for want of room.
    fn share(&self) -> u64 {
        (self.most_dirty / 4).max(512)
    }
}

impl FileData<'_> {
    /// Room in the cache for a write, with nothing locked. `None`: the write goes to the device at once.
    pub(crate) fn admit(&self, offset: u64, len: usize) -> Option<Admitted<'_>> {
        let cache = &self.0.pages;
        if !cache.is_on() || len == 0 {
            return None;
        }
        let (first, last) = blocks_of(offset, len);
        let pages = last - first + 1;
        if pages > cache.longest_write() {
            return None;
        }
        if cache.is_overdue(self.now()) {
            // An error is kept for those who have the file open.
            let _ = self.write_back_some(u64::MAX);
        }
        for _ in 0..TRIES {
            if let Some(admitted) = cache.admit(pages) {
                return Some(admitted);
            }
            let _alone = cache.making_room.lock();
            // Somebody may have made it meanwhile.
            if let Some(admitted) = cache.admit(pages) {
                return Some(admitted);
            }
            let written: Result<u64, FsError> = self.write_back_some(cache.share());
            if written.is_err() {
                // The error is not this writer's: it goes to the device, and meets its own.
                return None;
            }
        }
        None
    }
}
