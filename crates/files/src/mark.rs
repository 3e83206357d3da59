//! The hot or cold mark of an inode in memory.

use f2fs_format::inode::advise;
use f2fs_sync::atomic::{AtomicU8, Ordering};
use f2fs_volume::Node;

/// The hot or cold mark of an inode, once it was asked for: a write need not look at the page of its inode.
#[derive(Debug, Default)]
pub(crate) struct Mark(AtomicU8);

impl Mark {
    /// Nobody has asked yet, or it changed.
    const UNKNOWN: u8 = 0;
    const KNOWN: u8 = 1 << 7;
    const MARKS: u8 = advise::COLD | advise::HOT;

    /// The marks, of those in `i_advise`.
    pub(crate) fn get(&self, node: &Node) -> u8 {
        match self.0.load(Ordering::Relaxed) {
            Mark::UNKNOWN => {
                let page = node.read();
                let marks = page.inode().i_advise & Mark::MARKS;
                // With the page locked, so that no older mark replaces a newer one.
                self.0.store(marks | Mark::KNOWN, Ordering::Relaxed);
                marks
            }
            known => known & Mark::MARKS,
        }
    }

    /// The caller changes it, with the page locked.
    pub(crate) fn set(&self, marks: u8) {
        self.0.store(marks & Mark::MARKS | Mark::KNOWN, Ordering::Relaxed);
    }
}

const _: () = assert!(Mark::MARKS & Mark::KNOWN == 0);
