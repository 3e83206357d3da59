//! Room in the page cache for a write, made by writing back if there is none.
//!
//! # Locking
//!
//! Nothing is held when a write asks. One writer at a time makes room
//! ([`PageCache::making_room`](crate::page_cache::PageCache::making_room)); the others wait for it.

use f2fs_format::BLOCK_BYTES;

use crate::core::write_back::WriteBack;
use crate::file_data::FileData;
use crate::file_data::read::blocks_of;
use crate::page_cache::Admitted;

/// Blocks (1 MiB) from which on a write of whole blocks goes to the device at once: it is a large request by itself,
/// which the cache would copy twice more.
const LONG: u64 = 256;
/// How often a writer makes room before it goes past the cache.
const TRIES: u32 = 4;

impl FileData<'_> {
    /// Room in the cache for a write, with nothing locked. `None`: the write goes to the device at once.
    pub(crate) fn admit(&self, offset: u64, len: usize) -> Option<Admitted<'_>> {
        let cache = &self.0.pages;
        if !cache.is_on() || len == 0 {
            return None;
        }
        if self.0.dirty_files.is_overdue(self.now()) && !cache.alarm.is_heard() {
            // An error is kept for the open handles of the file.
            let _ = WriteBack(self.0).write_back_some(u64::MAX);
        }
        let (first, last) = blocks_of(offset, len);
        let pages = last - first + 1;
        let is_whole = offset.is_multiple_of(BLOCK_BYTES) && (len as u64).is_multiple_of(BLOCK_BYTES);
        if pages > cache.longest_write() || is_whole && pages >= LONG {
            return None;
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
