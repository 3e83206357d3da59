//! Room in the page cache for a write, made by writing back if there is none.
//!
//! # Locking
//!
//! Nothing is held when a write asks. One writer at a time makes room ([`PageCache::making_room`](crate::page_cache::PageCache::making_room));
//! the others wait for it.

use crate::core::write_back::WriteBack;
use crate::file_data::FileData;
use crate::file_data::read::blocks_of;
use crate::page_cache::Admitted;

/// How often a writer makes room before it goes past the cache.
const TRIES: u32 = 4;

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
        if self.0.dirty_files.is_overdue(self.now()) {
            // An error is kept for the open handles of the file.
            let _ = WriteBack(self.0).write_back_some(u64::MAX);
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
            if WriteBack(self.0).write_back_some(cache.share()).is_err() {
                // The error is not this writer's: it goes to the device, and meets its own.
                return None;
            }
        }
        None
    }
}
