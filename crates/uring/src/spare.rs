//! The ring that a thread has kept.
//!
//! A forked child has the thread's variables, and not the memory of its rings. So a ring is kept with the process that
//! made it, and forgotten in any other: its addresses may be in use for something else there.

use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::process;

use io_uring::{IoUring, cqueue, squeue};

/// The ring of a thread's last queue, idle and without a file.
pub(crate) struct Spare<S: squeue::EntryMarker, A: cqueue::EntryMarker> {
    ring: ManuallyDrop<IoUring<S, A>>,
    process: u32,
}

impl<S: squeue::EntryMarker, A: cqueue::EntryMarker> Spare<S, A> {
    pub(crate) fn new(ring: IoUring<S, A>) -> Spare<S, A> {
        Spare { ring: ManuallyDrop::new(ring), process: process::id() }
    }

    /// The ring, in the process that made it.
    pub(crate) fn take(mut self) -> Option<IoUring<S, A>> {
        let of_this_process = self.process == process::id();
        // Nothing is left for the drop.
        self.process = 0;
        // SAFETY: the drop does not touch the ring any more.
        of_this_process.then(|| unsafe { ManuallyDrop::take(&mut self.ring) })
    }
}

impl<S: squeue::EntryMarker, A: cqueue::EntryMarker> Drop for Spare<S, A> {
    fn drop(&mut self) {
        if self.process == process::id() {
            // SAFETY: nobody else has taken it.
            unsafe { ManuallyDrop::drop(&mut self.ring) }
        }
    }
}

/// Where a thread keeps it.
pub(crate) type Kept<S, A> = Cell<Option<Spare<S, A>>>;
