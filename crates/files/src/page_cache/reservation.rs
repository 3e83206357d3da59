//! Room for the pages of a write, taken before it locks anything.
//!
//! A write that has its range must not wait for write-back, which may wait for that range. So it takes room for its
//! pages, and the right to make them dirty, in front of all locks; with them it cannot fail for lack of memory. Blocks
//! on the device, and nodes that lead to them, are counted by the write itself, so that write-back finds them.
//!
//! # Locking
//!
//! None of its own: the budgets are counters. `making_room` is held by the one writer that writes back because there
//! was no room (`file_data/room.rs`); others wait for it with nothing held.

use super::PageCache;

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
    pub(crate) fn longest_write(&self) -> u64 {
        (self.most_dirty / 4).min(4096)
    }

    /// Room for a write of so many pages, if there is some.
    pub(crate) fn admit(&self, pages: u64) -> Option<Admitted<'_>> {
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
    pub(crate) fn give_dirty(&self, pages: u64) {
        if pages != 0 {
            self.clean.give(pages);
        }
    }

    /// Pages that are written back at a time for want of room.
    pub(crate) fn share(&self) -> u64 {
        (self.most_dirty / 4).max(512)
    }
}
