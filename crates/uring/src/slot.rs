//! A ring that threads share.
//!
//! Locking rules: the lock of `table` (a [`Handover`]) protects the table and, with it, the ring's two queues. Entering
//! the kernel happens without it: the kernel has a lock of its own, and takes only published entries from the
//! submission queue. While somebody reaps, only that thread touches the completion queue. The lock is taken after no
//! other and with none held; the carrier's flush gate may be taken inside it (to poison).

use std::{collections::VecDeque, fmt};

use crate::carrier::{Carrier, Ring};
use crate::{
    ring,
    table::{Id, Table},
};
use f2fs_device::{Completion, Handover, Pending, Request};
use f2fs_sync::Arc;

/// A ring, the requests in it, and their carrier.
pub(crate) struct Slot<C: Carrier> {
    ring: Ring<C>,
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
        let table = Handover::new(Table::new(ring.params().cq_entries() as usize));
        Self { ring, table, carrier }
    }

    /// Starts admitted requests, each with its index in the batch.
    pub(crate) fn start(this: &Arc<Self>, requests: Vec<(usize, Request)>) -> Box<dyn Pending> {
        let mut table = this.table.lock();
        let ids = requests.into_iter().map(|(index, request)| (index, table.start(request, None))).collect();
        let mut flying = Flying { slot: Arc::clone(this), ids };
        let pushed = table.fill(&this.ring, &*this.carrier);
        drop(table);
        ring::submit(&this.ring, pushed);
        flying.until_submitted();
        Box::new(flying)
    }

    /// With the right to reap: takes completions and puts waiting requests in the submission queue, which the reaper's
    /// next sleep, or `start`, hands to the kernel.
    fn drain(&self, table: &mut Table) {
        table.drain(&self.ring, &*self.carrier, None);
        let pushed = table.fill(&self.ring, &*self.carrier);
        if pushed > 0 {
            ring::submit(&self.ring, pushed);
        }
    }
}

impl<C: Carrier> Drop for Slot<C> {
    fn drop(&mut self) {
        // Only here are requests waited for that nobody wants: the memory is the kernel's until then.
        let (ring, table) = (&self.ring, self.table.lock());
        table.wait(|table| table.is_idle().then_some(()), || ring::submit_and_sleep(ring), |table| self.drain(table));
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
            table.wait(
                |table| table.all_submitted().then_some(()),
                || ring::submit_and_sleep(&slot.ring),
                |table| slot.drain(table),
            );
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
            table.wait(
                |table| take_finished(table, ids, out),
                || ring::submit_and_sleep(&slot.ring),
                |table| slot.drain(table),
            );
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
