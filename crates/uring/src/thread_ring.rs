//! The ring of a thread's last queue, kept for its next one.
//!
//! Setting a ring up and taking it down costs the time of several reads, and would be done for each batch. So a thread
//! keeps the ring of its last queue, without a file, until its next queue, on whatever device, or its own end. Such a
//! ring belongs to the thread that made it (`IORING_SETUP_SINGLE_ISSUER`), and a queue never leaves its thread.
//!
//! A forked child has the thread's variables, and not the memory of its rings. So a ring is kept with the process that
//! made it, and forgotten in any other: its addresses may be in use for something else there.

use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::process;

use io_uring::{IoUring, cqueue, squeue};

use crate::Polling;
use crate::carrier::{Carrier, Ring};
use crate::ring::{self, Users};

/// The ring of a thread's last queue, idle and without a file.
pub(crate) struct Spare<S: squeue::EntryMarker, A: cqueue::EntryMarker> {
    ring: ManuallyDrop<IoUring<S, A>>,
    process: u32,
}

impl<S: squeue::EntryMarker, A: cqueue::EntryMarker> Spare<S, A> {
    fn new(ring: IoUring<S, A>) -> Spare<S, A> {
        Spare { ring: ManuallyDrop::new(ring), process: process::id() }
    }

    /// The ring, in the process that made it.
    fn take(mut self) -> Option<IoUring<S, A>> {
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

/// A ring for one thread, with registered files. There must be nothing in its queues when it is dropped.
pub(crate) struct ThreadRing<C: Carrier> {
    /// There until the drop.
    ring: Option<Ring<C>>,
    keep: bool,
}

impl<C: Carrier> ThreadRing<C> {
    /// A ring of at least so many entries, with the files of `carrier` registered.
    pub(crate) fn new(carrier: &C, entries: u32, polling: Polling) -> Result<ThreadRing<C>, String> {
        if polling != Polling::default() {
            let ring = ring::new(carrier, entries, Users::ThisThread, polling)?;
            return Ok(ThreadRing { ring: Some(ring), keep: false });
        }
        let spare = C::spare().try_with(|spare| spare.take()?.take()).ok().flatten();
        let ring = match spare.filter(|ring| ring.params().sq_entries() >= entries) {
            Some(ring) if ring.submitter().register_files(&carrier.files()).is_ok() => ring,
            _ => ring::new(carrier, entries, Users::ThisThread, polling)?,
        };
        Ok(ThreadRing { ring: Some(ring), keep: true })
    }

    /// The ring is not to be used again: it has registered memory, or is refused.
    pub(crate) fn close_afterwards(&mut self) {
        self.keep = false;
    }
}

impl<C: Carrier> Deref for ThreadRing<C> {
    type Target = Ring<C>;

    fn deref(&self) -> &Ring<C> {
        match &self.ring {
            Some(ring) => ring,
            None => unreachable!("only the drop takes the ring"),
        }
    }
}

impl<C: Carrier> Drop for ThreadRing<C> {
    fn drop(&mut self) {
        let Some(ring) = self.ring.take() else { return };
        // The files are let go of at once, which closing the ring does only some time later. One that keeps them is
        // closed.
        let released = ring::release_file(&ring);
        if self.keep && released {
            // A thread that is at its end keeps nothing.
            let _ = C::spare().try_with(|spare| spare.set(Some(Spare::new(ring))));
        }
    }
}
