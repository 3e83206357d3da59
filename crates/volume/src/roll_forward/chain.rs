//! The places of the chain, where syncs write to it side by side.
//!
//! ```text
//!   sync A   take 7 ─────────────────── write ── done ── wait for 6 ─────────── flush
//!   sync B        take 8 ── write ── done ── wait for 7 ─────────────────────── flush
//! ```
//!
//! A node names the place of the next one, so places are taken one after the other, and written in any order. A sync has
//! not reached the end of the chain before all places in front of its own are written: roll-forward would stop at a
//! gap. Its flush comes behind that, and makes what stands in front of it durable as well.
//!
//! A sync that fails, or panics, before its nodes are written leaves a gap for good. Those behind it fail as well, and
//! the volume stops.
//!
//! # Locking
//!
//! `next` is held while a place is taken; under it the locks of the segment manager are. A sync holds the lock of its
//! file ([`NodePage::syncing`]) from before it takes a place until its flush is done. It waits for nobody while it has
//! places that are not written.
//!
//! [`NodePage::syncing`]: crate::node_page::NodePage::syncing

use f2fs_sync::{BrokenOff, CachePadded, InOrder, Mutex, protocol_value};

use crate::VolumeError;

/// The places that were taken since the volume was opened.
#[derive(Debug)]
pub(crate) struct Chain {
    /// The number of the next one.
    next: CachePadded<Mutex<u64>>,
    written: InOrder,
}

/// The places of one sync. Dropping it before they are [written](Self::written) leaves a gap.
#[derive(Debug)]
pub(crate) struct Links<'a> {
    chain: &'a Chain,
    taken: Vec<u64>,
    handed_in: bool,
}

impl Chain {
    pub(crate) fn new() -> Chain {
        Chain { next: CachePadded::new(Mutex::new(0)), written: InOrder::new() }
    }

    /// No place yet.
    pub(crate) fn links(&self) -> Links<'_> {
        Links { chain: self, taken: Vec::new(), handed_in: false }
    }
}

impl Links<'_> {
    /// Takes the next place with `allocate`.
    pub(crate) fn take<T>(&mut self, allocate: impl FnOnce() -> Result<T, VolumeError>) -> Result<T, VolumeError> {
        let mut next = self.chain.next.lock();
        let place = allocate()?;
        self.taken.push(*next);
        *next += 1;
        Ok(place)
    }

    /// All places of this sync are written: waits until those in front of them are.
    ///
    /// # Errors
    /// [`BrokenOff`]: some never will be.
    pub(crate) fn written(&mut self) -> Result<(), BrokenOff> {
        self.handed_in = true;
        let Some((last, earlier)) = self.taken.split_last() else { return Ok(()) };
        let order = &self.chain.written;
        earlier.iter().try_for_each(|number| order.done(*number))?;
        protocol_value!("sync_forgets_those_in_front", order.finish(*last), order.done(*last))?;
        self.taken.clear();
        Ok(())
    }

    /// Whether nobody was promised anything yet that stands behind the first of these places.
    pub(crate) fn may_be_cut(&self) -> bool {
        !self.handed_in
    }
}

impl Drop for Links<'_> {
    fn drop(&mut self) {
        if !self.taken.is_empty() {
            self.chain.written.break_off();
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests {
    use super::*;

    #[test]
    fn places_are_taken_in_turn_and_none_by_an_error() {
        let chain = Chain::new();
        let (mut one, mut other) = (chain.links(), chain.links());
        one.take(|| Ok(())).unwrap();
        assert!(other.take(|| Err::<(), _>(VolumeError::ReadOnly)).is_err());
        other.take(|| Ok(())).unwrap();
        one.take(|| Ok(())).unwrap();
        assert_eq!((&*one.taken, &*other.taken), (&[0, 2][..], &[1][..]));
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| other.written());
            one.written().unwrap();
            waits.join().unwrap().unwrap();
        });
        drop((one, other));
        chain.links().written().unwrap();
    }

    #[test]
    fn a_sync_that_gives_up_leaves_a_gap() {
        let chain = Chain::new();
        let (mut given_up, mut behind) = (chain.links(), chain.links());
        given_up.take(|| Ok(())).unwrap();
        behind.take(|| Ok(())).unwrap();
        drop(given_up);
        assert_eq!(behind.written(), Err(BrokenOff));
    }
}
