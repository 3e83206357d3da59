//! The ring of a thread's last queue, kept for its next one.
//!
//! To set a ring up and take it down costs the time of several reads, and who reads in batches does it for each batch. So a thread
//! keeps the ring of its last queue, without a file, until its next queue, on whatever device, or its own end. Such a ring
//! belongs to the thread that made it (`IORING_SETUP_SINGLE_ISSUER`), and a queue never leaves its thread.

use std::cell::Cell;
use std::io;
use std::ops::Deref;
use std::os::fd::AsRawFd;

use io_uring::IoUring;

use crate::ring::{self, Users};
use crate::target::Target;

thread_local! {
    /// The ring of the thread's last queue, idle and without a file.
    static SPARE: Cell<Option<IoUring>> = const { Cell::new(None) };
}

/// A ring for one thread, with a registered file. There must be nothing in its queues when it is dropped.
pub(crate) struct ThreadRing {
    /// There until the drop.
    ring: Option<IoUring>,
    keep: bool,
}

impl ThreadRing {
    /// A ring of at least so many entries, with `target` as its registered file 0.
    pub(crate) fn new(target: &Target, entries: u32) -> io::Result<ThreadRing> {
        let spare = SPARE.try_with(Cell::take).ok().flatten();
        let ring = match spare.filter(|ring| ring.params().sq_entries() >= entries) {
            Some(ring) if ring.submitter().register_files(&[target.fd().as_raw_fd()]).is_ok() => ring,
            _ => ring::new(target, entries, Users::ThisThread)?,
        };
        Ok(ThreadRing { ring: Some(ring), keep: true })
    }

    /// The ring is not to be used again: it has registered memory.
    pub(crate) fn close_afterwards(&mut self) {
        self.keep = false;
    }
}

impl Deref for ThreadRing {
    type Target = IoUring;

    fn deref(&self) -> &IoUring {
        match &self.ring {
            Some(ring) => ring,
            None => unreachable!("only the drop takes the ring"),
        }
    }
}

impl Drop for ThreadRing {
    fn drop(&mut self) {
        let Some(ring) = self.ring.take() else { return };
        // The file is let go of at once, which closing the ring does only some time later. One that keeps it is closed.
        let released = ring::release_file(&ring);
        if self.keep && released {
            // A thread that is at its end keeps nothing.
            let _ = SPARE.try_with(|spare| spare.set(Some(ring)));
        }
    }
}
