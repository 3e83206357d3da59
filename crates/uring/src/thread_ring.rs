//! The ring of a thread's last queue, kept for its next one.
//!
//! Setting a ring up and taking it down costs the time of several reads, and would be done for each batch. So a thread
//! keeps the ring of its last queue, without a file, until its next queue, on whatever device, or its own end. Such a
//! ring belongs to the thread that made it (`IORING_SETUP_SINGLE_ISSUER`), and a queue never leaves its thread.

use std::ops::Deref;

use crate::Polling;
use crate::carrier::{Carrier, Ring};
use crate::ring::{self, Users};
use crate::spare::Spare;

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
