//! Closing: a handle goes, or a file that was kept open.
//!
//! No locks of its own; it takes those of [`InodeEnds`].

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::panicking;

use crate::core::Core;
use crate::free::{InodeEnds, not_freed};
use crate::inode::Inode;
use crate::open_files::{Forgotten, KeptOpen};

/// Files that processors kept open and forgot. Their names may be gone, and with the last handle of each its file ends:
/// this is dropped when no lock is held that others wait for.
#[derive(Debug)]
pub(crate) struct Left<'a> {
    pub(crate) core: &'a Core,
    pub(crate) files: Forgotten,
}

impl Drop for Left<'_> {
    fn drop(&mut self) {
        self.files.drain(..).for_each(|known| leave(self.core, &known.value));
    }
}

/// One uses a file no more that is kept open; the last one closes it. If the processor alone is left, the file rests.
pub(crate) fn leave(core: &Core, kept: &KeptOpen) {
    match kept.leave() {
        0 => close(core, &kept.inode, true),
        1 if !panicking() => InodeEnds(core).rests(&kept.inode),
        _ => {}
    }
}

/// Closes a handle, a shared one if it was `kept`.
pub(crate) fn close(core: &Core, inode: &Inode, kept: bool) {
    if !panicking() {
        if let Err(error) = InodeEnds(core).close_handle(inode, kept) {
            not_freed(inode.ino, &error);
        }
    } else if catch_unwind(AssertUnwindSafe(|| InodeEnds(core).close_handle(inode, kept))).is_err() {
        // A second panic would have ended the process. The volume does not tell the two apart by itself.
        core.volume.stop_after_panic();
    }
}
