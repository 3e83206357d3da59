//! A block of a file in memory.

use f2fs_format::BLOCK_SIZE;
use f2fs_frames::{FRAME, Frame};
use f2fs_sync::atomic::{AtomicBool, Ordering};

/// The block of the file that a page holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    /// The number of the file's pages, which no other file ever has.
    pub(crate) file: u64,
    /// The block in the file.
    pub(crate) block: u64,
}

/// Whether a page has to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The device has the same.
    Clean,
    /// It is newer than what the device has. `reserved`: the block was a hole, and its place on the device is counted
    /// already.
    Dirty { reserved: bool },
}

const _: () = assert!(FRAME == BLOCK_SIZE, "a page is a frame");

/// A page.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) key: Key,
    pub(super) state: State,
    /// Whether somebody read or wrote it since eviction came by.
    used: AtomicBool,
    pub(super) data: Frame,
}

impl Page {
    pub(super) fn new(key: Key, state: State, data: Frame) -> Page {
        Page { key, state, used: AtomicBool::new(false), data }
    }

    /// Notes a use; writes its line only the first time.
    pub(super) fn touch(&self) {
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
    }

    /// Whether it was used since the last call.
    pub(super) fn was_used(&mut self) -> bool {
        self.used.swap(false, Ordering::Relaxed)
    }

    pub(super) fn is_dirty(&self) -> bool {
        self.state != State::Clean
    }
}
