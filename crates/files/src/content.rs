//! A file's data in memory: the locks of its ranges, its size, and the addresses of its blocks. Made when the
//! data is first used; an inode whose data nobody touches has none.
//!
//! # Locking
//!
//! | Who | locks (before the gate) |
//! |---|---|
//! | read | the blocks it reads, shared; none if it is inside one block, knows its address, and nobody writes it |
//! | write | the blocks it writes, exclusively; the whole file as long as the data stands in the inode |
//! | append, truncate | exclusively from the block of the old or new end on, to infinity |
//! | allocate, punch, zero | its blocks exclusively, to infinity if the file grows; the whole file as long as the data stands in the inode |
//!
//! *Size.* `size` is a copy of `i_size`, changed together with it under the inode's page lock, so that readers need not
//! touch the page. A write that ends behind the size raises it (to the maximum: writers of different ranges may do so
//! in any order); truncation sets it. A reader compares the size after it has its range. All data below the size is
//! written then: the writer that raised the size over a block of the range held that block exclusively until it was
//! written. A reader that asks for more than there is locks only as far as the size reaches, and begins again if the
//! file has grown beyond that.
//!
//! *Data in the page cache.* It raises the size as a write does, and `i_size` in the page only when it has landed
//! (`page_cache.rs`): so `size` is never less than `i_size`, and is more only while pages are dirty.
//!
//! *Inline data* becomes a block once and never goes back, under a lock of the whole file.

use f2fs_extent::{AddressCache, CacheBudget};
use f2fs_format::BLOCK_BYTES;
use f2fs_format::feature::Features;
use f2fs_format::inode::{Inode as RawInode, inline};
use f2fs_format::path::Addresses;
use f2fs_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use f2fs_sync::{Arc, OnceLock, protocol_never, protocol_value};

use crate::idle::LITTLE;
use crate::page_cache::FilePages;
use crate::ranges::{RangeGuard, RangeLock, Ranges};
use crate::times::Times;

/// How often a reader follows a growing file before it locks all that it asked for.
const FOLLOW: u32 = 3;

/// A file's data in memory.
#[derive(Debug)]
pub(crate) struct Content {
    pub(crate) ranges: Ranges,
    pub(crate) cache: AddressCache,
    size: AtomicU64,
    /// When a write changed the times of the file.
    pub(crate) times: Times,
    inline: AtomicBool,
    /// Its part of the page cache, once it was used.
    pages: OnceLock<Box<FilePages>>,
    /// Bytes of `ranges` that [`Idle`](crate::idle::Idle) counts.
    listed: AtomicU64,
    /// Address slots in the nodes.
    pub(crate) addresses: Addresses,
}

/// A part of the file that may be read.
#[derive(Debug)]
pub(crate) struct Readable<'a> {
    pub(crate) _range: RangeGuard<'a>,
    /// How many bytes there are, from the offset that was asked for; at least one.
    pub(crate) len: usize,
}

/// Why nothing may be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// The file ends before, or nothing was asked for.
    End,
    /// Somebody writes there.
    Busy,
}

impl Content {
    /// For an inode as it is now.
    pub(crate) fn new(inode: &RawInode, features: Features, lock: RangeLock, addresses: Arc<CacheBudget>) -> Content {
        Content {
            ranges: Ranges::new(lock),
            cache: AddressCache::new(addresses),
            size: AtomicU64::new(inode.i_size.get()),
            times: Times::default(),
            inline: AtomicBool::new(inode.i_inline & inline::DATA != 0),
            pages: OnceLock::new(),
            listed: AtomicU64::new(0),
            addresses: inode.layout(features).addresses(),
        }
    }

    /// The size in bytes.
    #[inline]
    pub(crate) fn size(&self) -> u64 {
        self.size.load(Ordering::Acquire)
    }

    /// Sets `i_size`. The caller has the inode's page locked.
    pub(crate) fn set_size(&self, inode: &mut RawInode, size: u64) {
        inode.i_size = size.into();
        self.size.store(size, Ordering::Release);
    }

    /// Raises `i_size`, and the size if that is less. The caller has the inode's page locked.
    pub(crate) fn grow(&self, inode: &mut RawInode, size: u64) {
        inode.i_size = size.max(inode.i_size.get()).into();
        self.raise_size(size);
    }

    /// Raises the size to that of data in the page cache; `i_size` follows when it has landed. The caller has the
    /// inode's page locked.
    pub(crate) fn raise_size(&self, size: u64) {
        self.size.fetch_max(size, Ordering::AcqRel);
    }

    /// Lowers `i_size`, and the size. The caller has the inode's page locked, and all from `size` on exclusively.
    pub(crate) fn lower_size(&self, inode: &mut RawInode, size: u64) {
        inode.i_size = size.min(inode.i_size.get()).into();
        self.size.fetch_min(size, Ordering::AcqRel);
    }

    /// A write that ended at `from` and raised `i_size` from `to` did not happen. The caller has the inode's page
    /// locked.
    pub(crate) fn take_back_size(&self, inode: &mut RawInode, from: u64, to: u64) {
        inode.i_size = to.into();
        // Unless somebody wrote behind it.
        let _ = self.size.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Its part of the page cache, if it was used.
    #[inline]
    pub(crate) fn pages(&self) -> Option<&FilePages> {
        self.pages.get().map(|pages| &**pages)
    }

    /// The same, made when it is first used.
    #[inline]
    pub(crate) fn pages_or(&self, make: impl FnOnce() -> FilePages) -> &FilePages {
        match self.pages.get() {
            Some(pages) => pages,
            None => self.pages.get_or_init(|| Box::new(make())),
        }
    }

    /// Nobody has the file open: its locks are listed for what they take. Gives the bytes for which they were not yet,
    /// if that is worth it.
    pub(crate) fn list_locks(&self) -> u64 {
        let (bytes, listed) = (self.ranges.bytes(), self.listed.load(Ordering::Relaxed));
        if bytes < listed.saturating_add(LITTLE) {
            return 0;
        }
        bytes.saturating_sub(self.listed.fetch_max(bytes, Ordering::Relaxed))
    }

    /// They are not listed any more.
    pub(crate) fn unlist_locks(&self) {
        self.listed.store(0, Ordering::Relaxed);
    }

    /// The largest size in bytes.
    pub(crate) fn limit(&self) -> u64 {
        f2fs_format::path::max_file_blocks(self.addresses) * BLOCK_BYTES
    }

    /// Whether the data stands in the inode. Once it does not, it never does again.
    #[inline]
    pub(crate) fn is_inline(&self) -> bool {
        self.inline.load(Ordering::Acquire)
    }

    /// The data moved into a block. The caller has the whole file locked.
    pub(crate) fn no_longer_inline(&self) {
        self.inline.store(false, Ordering::Release);
    }

    /// Locks what there is of `len` bytes from `offset` on.
    #[inline]
    pub(crate) fn lock_to_read(&self, offset: u64, len: usize) -> Option<Readable<'_>> {
        self.try_to_read(offset, len, |first, last| Some(self.ranges.shared(first, last))).ok()
    }

    /// The same, without waiting.
    pub(crate) fn try_lock_to_read(&self, offset: u64, len: usize) -> Result<Readable<'_>, Unreadable> {
        self.try_to_read(offset, len, |first, last| self.ranges.try_shared(first, last))
    }

    #[inline]
    fn try_to_read<'a>(
        &'a self,
        offset: u64,
        len: usize,
        lock: impl Fn(u64, u64) -> Option<RangeGuard<'a>>,
    ) -> Result<Readable<'a>, Unreadable> {
        let wanted = offset.saturating_add(len as u64);
        for tries in 0.. {
            let size = self.size();
            if offset >= size || len == 0 {
                return Err(Unreadable::End);
            }
            let end = if tries < FOLLOW { wanted.min(size) } else { wanted };
            let last = (end - 1) / BLOCK_BYTES;
            let _range = lock(offset / BLOCK_BYTES, last).ok_or(Unreadable::Busy)?;
            let end = wanted.min(self.size());
            if end <= offset {
                return Err(Unreadable::End);
            }
            if (end - 1) / BLOCK_BYTES <= last {
                return Ok(Readable { _range, len: (end - offset) as usize });
            }
        }
        Err(Unreadable::End)
    }

    /// Locks the blocks of `len` bytes (at least one) from `offset` on, to change them.
    pub(crate) fn lock_to_write(&self, offset: u64, len: u64) -> RangeGuard<'_> {
        if self.is_inline() {
            return self.ranges.exclusive(0, u64::MAX);
        }
        protocol_never!("write_ignores_overlap", return self.ranges.shared(u64::MAX, u64::MAX));
        self.ranges.exclusive(offset / BLOCK_BYTES, offset.saturating_add(len - 1) / BLOCK_BYTES)
    }

    /// Locks the block of byte `offset` and all behind it.
    pub(crate) fn lock_from(&self, offset: u64) -> RangeGuard<'_> {
        let first = if self.is_inline() { 0 } else { offset / BLOCK_BYTES };
        self.ranges.exclusive(first, u64::MAX)
    }

    /// Locks from the end of the file on, so that it stays where it is; returns it.
    pub(crate) fn lock_end(&self) -> (RangeGuard<'_>, u64) {
        loop {
            let seen = self.size();
            let guard = self.lock_from(seen);
            let size = self.size();
            // It may have grown meanwhile, into what is locked now; but a truncation may have cut below.
            if size >= seen {
                return (guard, protocol_value!("append_end_seen_before_its_lock", size, seen));
            }
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    #![allow(clippy::unwrap_used)] // a test fails by panicking

    use std::cell::RefCell;

    use f2fs_format::node::NodeBlock;

    use super::*;

    const B: u64 = BLOCK_BYTES;

    fn content(change: impl FnOnce(&mut RawInode)) -> Content {
        let mut node = NodeBlock::ZERO;
        change(node.inode_mut());
        let budget = Arc::new(CacheBudget::new(1 << 20));
        Content::new(node.inode(), Features::default(), RangeLock::default(), budget)
    }

    fn sized(size: u64) -> Content {
        content(|inode| inode.i_size = size.into())
    }

    #[test]
    fn an_inode_whose_data_nobody_uses_has_a_pointer_and_any_other_few_cache_lines() {
        assert_eq!(size_of::<Content>(), 320);
    }

    /// Of blocks 0 to 4, those that another one could read.
    fn free(content: &Content) -> Vec<u64> {
        (0..5).filter(|block| content.ranges.try_shared(*block, *block).is_some()).collect()
    }

    /// Of blocks 0 to 4, those that another one could write.
    fn untouched(content: &Content) -> Vec<u64> {
        (0..5).filter(|block| content.ranges.try_exclusive(*block, *block).is_some()).collect()
    }

    /// A writer keeps out those of its blocks, and of all blocks while the data stands in the inode.
    #[test]
    fn a_writer_locks_the_blocks_of_its_bytes() {
        let blocks = content(|_| {});
        for (offset, len, others) in [
            (3 * B - 1, 2, vec![0, 1, 4]),
            (B, B, vec![0, 2, 3, 4]),
            (B - 1, 1, vec![1, 2, 3, 4]),
            (2 * B, 1, vec![0, 1, 3, 4]),
            (u64::MAX, 1, vec![0, 1, 2, 3, 4]),
        ] {
            let _writer = blocks.lock_to_write(offset, len);
            assert_eq!(free(&blocks), others, "{len} bytes from {offset}");
        }
        let inline = content(|inode| inode.i_inline = inline::DATA);
        let writer = inline.lock_to_write(0, 1);
        assert!(free(&inline).is_empty());
        drop(writer);
        inline.no_longer_inline();
        let _writer = inline.lock_to_write(0, 1);
        assert_eq!(free(&inline), [1, 2, 3, 4]);
    }

    /// Who appends or cuts keeps out all from the block of the end on.
    #[test]
    fn who_changes_the_end_locks_all_behind_it() {
        let file = sized(2 * B + 1);
        let (end, size) = file.lock_end();
        assert_eq!((free(&file), size), (vec![0, 1], 2 * B + 1));
        assert!(file.ranges.try_shared(u64::MAX, u64::MAX).is_none());
        drop(end);
        let _cut = file.lock_from(4 * B);
        assert_eq!(free(&file), [0, 1, 2, 3]);
        let inline = content(|inode| inode.i_inline = inline::DATA);
        let _cut = inline.lock_from(10);
        assert!(free(&inline).is_empty());
    }

    /// A reader keeps writers off the blocks that it reads, as far as there are any, and off no others.
    #[test]
    fn a_reader_locks_the_blocks_of_the_bytes_that_there_are() {
        let file = sized(3 * B + 10);
        for (offset, len, read, others) in [
            (0, 1, 1, vec![1, 2, 3, 4]),
            (0, B, B, vec![1, 2, 3, 4]),
            (B - 1, 2, 2, vec![2, 3, 4]),
            (B, 2 * B, 2 * B, vec![0, 3, 4]),
            (2 * B + 1, 100 * B, B + 9, vec![0, 1, 4]),
            (3 * B + 9, u64::MAX, 1, vec![0, 1, 2, 4]),
        ] {
            let readable = file.try_lock_to_read(offset, len as usize).unwrap();
            assert_eq!((readable.len as u64, untouched(&file)), (read, others), "{len} bytes from {offset}");
        }
        for (offset, len) in [(3 * B + 10, 1), (u64::MAX, 1), (0, 0), (u64::MAX, 0)] {
            assert_eq!(file.try_lock_to_read(offset, len).unwrap_err(), Unreadable::End, "{len} bytes from {offset}");
            assert!(file.lock_to_read(offset, len).is_none());
        }
        let _writer = file.lock_to_write(B, 1);
        assert_eq!(file.try_lock_to_read(0, 2 * B as usize).unwrap_err(), Unreadable::Busy);
        assert!(file.try_lock_to_read(0, B as usize).is_ok() && file.try_lock_to_read(2 * B, 1).is_ok());
    }

    /// The size may change until the reader has its blocks.
    #[test]
    fn a_reader_whose_file_changes_reads_what_there_is_then() {
        let file = sized(B);
        let asked = RefCell::new(Vec::new());
        let change = |sizes: &[u64], len: u64| {
            asked.borrow_mut().clear();
            let result = file.try_to_read(B / 2, len as usize, |first, last| {
                let tries = asked.borrow().len();
                asked.borrow_mut().push((first, last));
                if let Some(size) = sizes.get(tries) {
                    file.size.store(*size, Ordering::Relaxed);
                }
                file.ranges.try_shared(first, last)
            });
            (result.map(|readable| readable.len as u64), asked.borrow().clone())
        };
        // Cut, to the very byte where the reader begins, in front of it, behind it.
        for (size, left) in [(B / 2, Err(Unreadable::End)), (0, Err(Unreadable::End)), (B / 2 + 1, Ok(1))] {
            file.size.store(B, Ordering::Relaxed);
            assert_eq!(change(&[size], B), (left, vec![(0, 0)]), "{size}");
        }
        // Grown within the last block, and beyond it: the reader follows a few times, and then locks all it asked for.
        file.size.store(B - 1, Ordering::Relaxed);
        assert_eq!(change(&[B], 9 * B), (Ok(B / 2), vec![(0, 0)]));
        file.size.store(B, Ordering::Relaxed);
        assert_eq!(change(&[B + 1], 9 * B), (Ok(B / 2 + 1), vec![(0, 0), (0, 1)]));
        file.size.store(B, Ordering::Relaxed);
        let grows: Vec<u64> = (2..9).map(|blocks| blocks * B).collect();
        assert_eq!(change(&grows, 9 * B), (Ok(5 * B - B / 2), vec![(0, 0), (0, 1), (0, 2), (0, 9)]));
    }

    /// The size in memory and that in the inode go together, but for data that has not landed.
    #[test]
    fn sizes_rise_fall_and_are_taken_back() {
        let mut node = NodeBlock::ZERO;
        let file = sized(0);
        let mut after = |change: &dyn Fn(&mut RawInode)| {
            change(node.inode_mut());
            (node.inode().i_size.get(), file.size())
        };
        assert_eq!(after(&|inode| file.set_size(inode, 10)), (10, 10));
        assert_eq!(after(&|_| file.raise_size(30)), (10, 30));
        assert_eq!(after(&|_| file.raise_size(20)), (10, 30));
        assert_eq!(after(&|inode| file.grow(inode, 20)), (20, 30));
        assert_eq!(after(&|inode| file.grow(inode, 5)), (20, 30));
        assert_eq!(after(&|inode| file.lower_size(inode, 25)), (20, 25));
        assert_eq!(after(&|inode| file.lower_size(inode, 15)), (15, 15));
        assert_eq!(after(&|inode| file.grow(inode, 40)), (40, 40));
        assert_eq!(after(&|inode| file.take_back_size(inode, 40, 15)), (15, 15));
        assert_eq!(after(&|inode| file.grow(inode, 40)), (40, 40));
        // Somebody wrote behind it meanwhile.
        file.raise_size(50);
        assert_eq!(after(&|inode| file.take_back_size(inode, 40, 15)), (15, 50));
    }

    /// The locks of a file are listed for what they grew by since, if that is worth it.
    #[test]
    fn locks_are_listed_for_what_they_grew_by() {
        let file = content(|_| {});
        assert_eq!(file.list_locks(), 0, "nothing was locked");
        (0..4096).for_each(|block| drop(file.ranges.shared(block, block)));
        let first = file.list_locks();
        assert!(first >= LITTLE && first == file.ranges.bytes(), "{first}");
        assert_eq!(file.list_locks(), 0, "nothing came");
        drop(file.ranges.shared(1 << 28, 1 << 28));
        let more = file.list_locks();
        assert!(more >= LITTLE && first + more == file.ranges.bytes(), "{first} {more}");
        file.unlist_locks();
        assert_eq!(file.list_locks(), first + more);
    }
}
