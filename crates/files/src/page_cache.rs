//! The page cache: blocks of files in memory: clean ones for later reads, and dirty ones that are still to be written.
//!
//! ```text
//!              read from the device                write               write-back has landed
//!   absent ───────────────────────► clean ────────────────► dirty ──────────────────────────► clean
//!      │                              │                       ▲ │
//!      │            write             │ evicted, or           │ │ the file is freed
//!      └──────────────────────────────┼───────────────────────┘ │
//!   absent ◄──────────────────────────┴─────────────────────────┘
//! ```
//!
//! The edge that must not exist leads from dirty to absent while the file lives: what was written would be lost.
//!
//! | Module | Noun |
//! |---|---|
//! | `page` | a block in memory |
//! | `table` | all pages, found by file and block; the memory that they may take |
//! | `dirty` | the dirty blocks of one file, in order |
//! | `file_pages` | what one file has of the cache |
//! | `reservation` | room for the pages of a write, taken before it locks anything |
//! | `alarm` | what wakes flushers before their time |
//! | `read_ahead` | what is read beyond what was asked for |
//! | `error_sequence` | an error of write-back, told to each handle once |
//!
//! Nothing here knows an inode: [`DirtyFiles`](crate::dirty_files::DirtyFiles) lists the files with dirty pages, and
//! [`WriteBack`](crate::core::write_back::WriteBack) writes these to the device.
//!
//! # Locking
//!
//! ```text
//!   writing (a file's write-back) > ranges of the file > gate > pages of nodes > dirty blocks of a file > [leaf]
//!                                                      list of dirty files > dirty blocks of a file > [leaf]
//!                                                               a bucket of the table > [leaf]
//! ```
//!
//! - A page is read with its block's range held shared, and changed with it held exclusively: the same locks that
//!   readers and writers of the device take. The lock of its bucket keeps the memory whole, and is held for one copy.
//! - A page becomes dirty, or clean, within an operation on the volume. So with the gate closed no page changes its
//!   state but by the checkpoint, which takes no range: it writes all that is dirty, and its snapshot has the data of
//!   all that was written.
//! - Write-back beside operations holds the range shared, so that readers go on, and `writing` of the file, so that no
//!   two of them write the same pages. A thread that holds a range exclusively writes back without it.
//! - A second file's `writing` and range are asked for only if they need not be waited for.
//!
//! # Size
//!
//! A write past the end raises the size in memory at once ([`Content::size`](crate::content::Content::size)), and
//! `i_size` in the node only when the data has landed: a sync or a checkpoint makes no size durable whose data is not.

mod alarm;
mod dirty;
mod error_sequence;
mod file_pages;
mod page;
mod read_ahead;
mod reservation;
mod table;

use f2fs_format::BLOCK_SIZE;
use f2fs_sync::atomic::{AtomicU64, Ordering};
use f2fs_sync::{Budget, CachePadded, Mutex};

pub(crate) use alarm::Alarm;
pub(crate) use error_sequence::Seen;
pub(crate) use file_pages::FilePages;
pub(crate) use page::Key;
pub(crate) use reservation::Admitted;
use table::PageTable;

/// Memory for a page, with what is needed to find it, in bytes.
const PAGE_COST: u64 = BLOCK_SIZE as u64 + 128;
/// Pages at most: 256 GiB. More are not worth the table that finds them.
const MOST_PAGES: u64 = 1 << 26;
/// The smallest cache: less would not take a write.
const FEWEST_PAGES: u64 = 16;

/// The page cache of a file system.
#[derive(Debug)]
pub(crate) struct PageCache {
    table: PageTable,
    pub(crate) alarm: Alarm,
    /// Pages that may become dirty.
    clean: Budget,
    /// Pages that may be dirty at most; 0 without a cache.
    most_dirty: u64,
    /// One writer at a time makes room; the others wait for it.
    pub(crate) making_room: CachePadded<Mutex<()>>,
    /// Numbers for files' pages: a file that gets the inode number of another one does not find its pages.
    files: CachePadded<AtomicU64>,
}

impl PageCache {
    /// A cache of so many bytes; with less than a page none.
    pub(crate) fn new(bytes: u64) -> PageCache {
        let pages = if bytes == 0 { 0 } else { (bytes / PAGE_COST).clamp(FEWEST_PAGES, MOST_PAGES) };
        PageCache {
            table: PageTable::new(pages),
            alarm: Alarm::new(pages / 2),
            clean: Budget::new(pages / 2),
            most_dirty: pages / 2,
            making_room: CachePadded::default(),
            files: CachePadded::new(AtomicU64::new(1)),
        }
    }

    /// Whether there is one.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.most_dirty != 0
    }

    /// The part of the cache that a file has.
    pub(crate) fn new_file(&self) -> FilePages {
        FilePages::new(self.files.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn table(&self) -> &PageTable {
        &self.table
    }

    /// Pages that are dirty. Stops the counts of all processors for a moment.
    pub(crate) fn dirty_pages(&self) -> u64 {
        self.most_dirty - self.clean.available_exact().min(self.most_dirty)
    }

    /// How many to write back where more than an eighth of the cache is dirty, so that half of that is left; 0 up to
    /// there.
    pub(crate) fn surplus(&self) -> u64 {
        let (dirty, most) = (self.dirty_pages(), self.most_dirty / 4);
        if dirty > most { dirty - most / 2 } else { 0 }
    }
}

impl PageCache {
    /// Keeps a block that was read, whose file has `size` bytes, if there is room. The caller holds the block's range.
    pub(crate) fn keep(&self, pages: &FilePages, block: u64, data: &[u8; BLOCK_SIZE], size: u64) {
        let key = pages.key(block);
        pages.reaches(block);
        if !self.table.take_room(1) {
            return;
        }
        let left = size.saturating_sub(block * BLOCK_SIZE as u64);
        let kept = if left >= BLOCK_SIZE as u64 {
            self.table.insert_clean(key, data)
        } else {
            // Bytes behind the end must read as zeros when the file has grown.
            let mut data = *data;
            data[left as usize..].fill(0);
            self.table.insert_clean(key, &data)
        };
        if !kept {
            self.table.give_room(1);
        }
    }

    /// Writes into a page, with room that the write took; whether it was clean, or not there. See [`PageTable::write`].
    pub(crate) fn write(
        &self,
        key: Key,
        from: usize,
        bytes: &[u8],
        hole: bool,
        base: Option<&[u8]>,
        room: &mut Admitted<'_>,
    ) -> bool {
        let put = self.table.write(key, from, bytes, hole, base);
        room.use_up(put.is_new, put.was_clean);
        self.alarm.count(u64::from(put.was_clean));
        put.was_clean
    }

    /// Drops the clean pages of blocks of a file.
    pub(crate) fn drop_clean(&self, pages: &FilePages, first: u64, last: u64) {
        let last = last.min(pages.reach());
        if first <= last {
            self.table.drop_clean(pages.file(), first, last);
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
