//! A ring that threads share.
//!
//! Locking rules: the lock of `table` (a [`Handover`]) protects the table and, with it, the ring's two queues. Entering
//! the kernel happens without it: the kernel has a lock of its own, and takes only published entries from the
//! submission queue. While somebody reaps, only that thread touches the completion queue. The lock is taken after no
//! other and with none held; the carrier's flush gate may be taken inside it (to poison).
//!
//! When the kernel refuses the ring, the [`Door`] is shut, and whoever has the lock next takes the entries back that
//! the kernel has not taken. A thread that reaps then sleeps for a moment in place of in the ring, and hands that duty on
//! as ever.

use std::{collections::VecDeque, fmt, thread};

use crate::carrier::{Carrier, Ring};
use crate::{
    door::Door,
    ring::{self, Refused},
    table::{Id, Table},
};
use f2fs_device::{Completion, Handover, Pending, Request};
use f2fs_sync::Arc;

/// A ring, the requests in it, and their carrier.
pub(crate) struct Slot<C: Carrier> {
    ring: Ring<C>,
    /// Of the ring.
    door: Door,
    table: Handover<Table>,
    carrier: Arc<C>,
}

impl<C: Carrier> fmt::Debug for Slot<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot").finish_non_exhaustive()
    }
}

impl<C: Carrier> Slot<C> {
    /// A slot with `ring`, which has the files of `carrier` registered and nothing in its queues.
    pub(crate) fn new(ring: Ring<C>, carrier: Arc<C>) -> Self {
        let table = Handover::new(Table::new(ring.params()));
        Self { ring, door: Door::default(), table, carrier }
    }

    /// Whether the kernel has refused the ring: then system calls are the way.
    pub(crate) fn is_refused(&self) -> bool {
        self.door.refused().is_some()
    }

    /// Starts admitted requests, each with its index in the batch.
    pub(crate) fn start(this: &Arc<Self>, requests: Vec<(usize, Request)>) -> Box<dyn Pending> {
        let mut table = this.table.lock();
        let ids = requests.into_iter().map(|(index, request)| (index, table.start(request, None))).collect();
        let mut flying = Flying { slot: Arc::clone(this), ids };
        let pushed = table.fill(&this.ring, &*this.carrier);
        drop(table);
        if !this.enter(|ring| ring::submit(ring, pushed)) {
            this.take_back(&mut this.table.lock());
        }
        flying.until_submitted();
        Box::new(flying)
    }

    /// With the right to reap: takes completions and puts waiting requests in the submission queue, which the reaper's
    /// next sleep, or `start`, hands to the kernel.
    fn drain(&self, table: &mut Table) {
        table.drain(&self.ring, &*self.carrier, None);
        let pushed = table.fill(&self.ring, &*self.carrier);
        if pushed > 0 {
            self.enter(|ring| ring::submit(ring, pushed));
        }
        self.take_back(table);
    }

    /// Enters the ring by `call`; whether that could be.
    fn enter(&self, call: impl FnOnce(&Ring<C>) -> Result<(), Refused>) -> bool {
        if !self.door.go_in() {
            return false;
        }
        let entered = call(&self.ring);
        self.door.go_out();
        if let Err(refused) = entered {
            self.door.shut(refused);
        }
        entered.is_ok()
    }

    /// Sleeps until there is a completion, or for no reason.
    fn sleep(&self) {
        if !self.enter(ring::submit_and_sleep) {
            thread::sleep(ring::PAUSE);
        }
    }

    /// If the ring is refused: takes back what the kernel has not taken of it. Threads that are in the ring come out
    /// when they have handed something over, or when something is finished, so they are waited for with the lock held.
    fn take_back(&self, table: &mut Table) {
        if let Some(refused) = self.door.refused() {
            self.door.wait_until_nobody_is_in();
            table.refuse(&self.ring, &*self.carrier, refused, None);
        }
    }
}

impl<C: Carrier> Drop for Slot<C> {
    fn drop(&mut self) {
        // Only here are requests waited for that nobody wants: the memory is the kernel's until then.
        let table = self.table.lock();
        table.wait(|table| table.is_idle().then_some(()), || self.sleep(), |table| self.drain(table));
        let _ = ring::release_file(&self.ring);
    }
}

/// The requests of a ticket; indices in the batch and names in the table.
#[derive(Debug)]
struct Flying<C: Carrier> {
    slot: Arc<Slot<C>>,
    ids: Vec<(usize, Id)>,
}

impl<C: Carrier> Flying<C> {
    /// Waits until the kernel has all requests of the slot, if there were more than it takes at once.
    fn until_submitted(&mut self) {
        let slot = &self.slot;
        let table = slot.table.lock();
        if !table.all_submitted() {
            table.wait(|table| table.all_submitted().then_some(()), || slot.sleep(), |table| slot.drain(table));
        }
    }
}

/// Moves finished requests out of the table; whether that was anything, or there is nothing left.
fn take_finished(table: &mut Table, ids: &mut Vec<(usize, Id)>, out: &mut VecDeque<(usize, Completion)>) -> Option<()> {
    let before = ids.len();
    ids.retain(|&(index, id)| match table.take(id) {
        Some(completion) => {
            out.push_back((index, completion));
            false
        }
        None => true,
    });
    (ids.len() < before || ids.is_empty()).then_some(())
}

impl<C: Carrier> Pending for Flying<C> {
    fn collect(&mut self, block: bool, out: &mut VecDeque<(usize, Completion)>) {
        let (slot, ids) = (&self.slot, &mut self.ids);
        let mut table = slot.table.lock();
        if block {
            table.wait(|table| take_finished(table, ids, out), || slot.sleep(), |table| slot.drain(table));
        } else {
            table.try_drain(|table| slot.drain(table));
            take_finished(&mut table, ids, out);
        }
    }
}

impl<C: Carrier> Drop for Flying<C> {
    fn drop(&mut self) {
        let mut table = self.slot.table.lock();
        for &(_, id) in &self.ids {
            table.abandon(id);
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests;
