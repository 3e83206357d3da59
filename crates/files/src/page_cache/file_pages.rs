//! The pages of one file in the page cache.
//!
//! # Locking
//!
//! A thread that writes the file's pages back beside operations holds `writing`, and takes it before the range and the
//! gate. `dirty` is held for a look or a change; nothing is asked for under it.

use f2fs_sync::Mutex;
use f2fs_sync::atomic::{AtomicU64, Ordering};

use super::dirty::DirtyBlocks;
use super::error_sequence::ErrorSequence;
use super::page::Key;
use super::read_ahead::ReadAhead;

/// The part of a file.
#[derive(Debug)]
pub(crate) struct FilePages {
    /// The number that its pages are found by.
    file: u64,
    /// Blocks that are dirty: changed with `dirty` locked.
    count: AtomicU64,
    dirty: Mutex<Dirty>,
    /// No page of a block behind this one ever came.
    reach: AtomicU64,
    /// Somebody writes pages back.
    pub(crate) writing: Mutex<()>,
    pub(crate) errors: ErrorSequence,
    pub(crate) read_ahead: ReadAhead,
}

#[derive(Debug, Default)]
struct Dirty {
    blocks: DirtyBlocks,
    /// Dirty pages whose block is counted as space, and not yet in `i_blocks`.
    reserved: u64,
    /// Whether the file is on the list of dirty ones.
    listed: bool,
}

impl FilePages {
    pub(super) fn new(file: u64) -> FilePages {
        FilePages {
            file,
            count: AtomicU64::new(0),
            dirty: Mutex::default(),
            reach: AtomicU64::new(0),
            writing: Mutex::default(),
            errors: ErrorSequence::default(),
            read_ahead: ReadAhead::default(),
        }
    }

    pub(crate) fn key(&self, block: u64) -> Key {
        Key { file: self.file, block }
    }

    pub(super) fn file(&self) -> u64 {
        self.file
    }

    /// Whether a page is dirty.
    pub(crate) fn is_dirty(&self) -> bool {
        self.count.load(Ordering::Acquire) != 0
    }

    /// Whether one of blocks `first ..= last` is dirty.
    pub(crate) fn is_dirty_in(&self, first: u64, last: u64) -> bool {
        self.is_dirty() && self.next_dirty(first).is_some_and(|(block, _)| block <= last)
    }

    /// Blocks that are counted on the device and not in the inode.
    pub(crate) fn reserved(&self) -> u64 {
        if self.is_dirty() { self.dirty.lock().reserved } else { 0 }
    }

    /// The first dirty block at or behind `from`, and how many follow.
    pub(crate) fn next_dirty(&self, from: u64) -> Option<(u64, u64)> {
        self.dirty.lock().blocks.next(from)
    }

    /// How many blocks are dirty from `block` on, if it is.
    pub(crate) fn dirty_run(&self, block: u64) -> Option<u64> {
        if !self.is_dirty() {
            return None;
        }
        self.next_dirty(block).filter(|(first, _)| *first == block).map(|(_, len)| len)
    }

    /// The first and the last dirty block within `most` from the first one at or behind `from` on.
    pub(crate) fn dirty_span(&self, from: u64, most: u64) -> Option<(u64, u64)> {
        self.dirty.lock().blocks.span(from, most)
    }

    /// A page of this block comes. Writes the line only if the file reaches further than before.
    pub(super) fn reaches(&self, block: u64) {
        if self.reach.load(Ordering::Relaxed) < block {
            self.reach.fetch_max(block, Ordering::Relaxed);
        }
    }

    /// The last block of which there may be a page. The caller holds the blocks in question exclusively.
    pub(super) fn reach(&self) -> u64 {
        self.reach.load(Ordering::Relaxed)
    }

    /// How many are dirty, for the list of dirty files: with none, the file is not on it any more.
    pub(crate) fn still_dirty(&self) -> u64 {
        let mut dirty = self.dirty.lock();
        let blocks = dirty.blocks.len();
        dirty.listed = blocks != 0;
        blocks
    }

    /// Blocks became dirty, or stay so; `reserved` of them were holes. Whether the caller has to put the file on the
    /// list of dirty ones.
    pub(crate) fn dirtied(&self, first: u64, len: u64, reserved: u64) -> bool {
        self.reaches(first + len - 1);
        let mut dirty = self.dirty.lock();
        dirty.blocks.insert(first, len);
        dirty.reserved += reserved;
        self.count.store(dirty.blocks.len(), Ordering::Release);
        !core::mem::replace(&mut dirty.listed, true)
    }

    /// Blocks are clean or gone.
    pub(crate) fn remove(&self, first: u64, len: u64, reserved: u64) {
        let mut dirty = self.dirty.lock();
        dirty.blocks.remove(first, len);
        dirty.reserved = dirty.reserved.saturating_sub(reserved);
        self.count.store(dirty.blocks.len(), Ordering::Release);
    }
}
