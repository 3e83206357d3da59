//! The requests of one ring: submitted to the kernel, waiting for room, or finished.
//!
//! ```text
//!  start --> waiting --fill--> in the kernel --drain--> finished --take--> (gone)
//!               ^                   |    \
//!               +--drain: the rest--+     +--drain, when abandoned before--> (gone)
//! ```
//! An entry whose request is waiting or in the kernel leaves the table only by `drain`, also if its ticket is dropped.

use std::collections::VecDeque;

use f2fs_device::{Completion, Request};
use io_uring::{cqueue, squeue::EntryMarker};

use crate::carrier::{Carrier, Ring};
use crate::{flight::Flight, progress::Landing};

/// Names a request in the table; used again once the request was taken or has been abandoned and is over.
pub(crate) type Id = u32;

#[derive(Debug)]
enum Entry {
    Free,
    Flying { flight: Flight, abandoned: bool },
    Finished(Completion),
}

/// The requests of one ring. A caller of [`fill`](Self::fill) or [`drain`](Self::drain) must be the only one that uses
/// the ring's queues at that time.
#[derive(Debug)]
pub(crate) struct Table {
    entries: Vec<Entry>,
    free: Vec<Id>,
    waiting: VecDeque<Id>,
    in_kernel: usize,
    /// How many may be in the kernel, so that the completion queue cannot overflow.
    limit: usize,
}

impl Table {
    pub(crate) fn new(limit: usize) -> Self {
        Self { entries: Vec::new(), free: Vec::new(), waiting: VecDeque::new(), in_kernel: 0, limit }
    }

    /// Enters an admitted request, whose only buffer is registered with the ring under an index, or not; it goes to the
    /// kernel with the next [`fill`](Self::fill) that has room.
    pub(crate) fn start(&mut self, request: Request, registered: Option<u16>) -> Id {
        let entry = Entry::Flying { flight: Flight::new(request, registered), abandoned: false };
        let id = match self.free.pop() {
            Some(id) => {
                self.entries[id as usize] = entry;
                id
            }
            None => {
                self.entries.push(entry);
                (self.entries.len() - 1) as Id
            }
        };
        self.waiting.push_back(id);
        id
    }

    /// Whether all requests have been put in the submission queue.
    pub(crate) fn all_submitted(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether no request is waiting or in the kernel.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.in_kernel == 0
    }

    /// Puts waiting requests in the submission queue while there is room; returns the length of that queue.
    pub(crate) fn fill<C: Carrier>(&mut self, ring: &Ring<C>, carrier: &C) -> usize {
        // SAFETY: the caller is the only one that uses the ring's queues, so this is the only submission queue.
        let mut queue = unsafe { ring.submission_shared() };
        while self.in_kernel < self.limit && !queue.is_full() {
            let Some(id) = self.waiting.pop_front() else { break };
            let Entry::Flying { flight, .. } = &mut self.entries[id as usize] else { continue };
            let mut entry = carrier.entry(flight);
            entry.set_user_data(u64::from(id));
            // SAFETY: the entry points into memory owned by the flight, which stays in the table until `drain` has seen
            // its completion; the table outlives the ring or is leaked with it (see `Slot` and `RingQueue`).
            if unsafe { queue.push(&entry) }.is_err() {
                self.waiting.push_front(id);
                break;
            }
            self.in_kernel += 1;
        }
        queue.sync();
        queue.len()
    }

    /// Takes all completions from the ring. Requests that are not over wait for [`fill`](Self::fill) again; finished
    /// ones that nobody abandoned stay to be taken, or go to `finished` if it is given.
    pub(crate) fn drain<C: Carrier>(
        &mut self,
        ring: &Ring<C>,
        carrier: &C,
        mut finished: Option<&mut VecDeque<Completion>>,
    ) {
        // SAFETY: the caller is the only one that uses the ring's queues, so this is the only completion queue.
        for answer in unsafe { ring.completion_shared() } {
            let answer: cqueue::Entry = answer.into();
            let id = answer.user_data() as Id;
            let Some(entry) = self.entries.get_mut(id as usize) else { continue };
            let Entry::Flying { flight, abandoned } = entry else { continue };
            self.in_kernel -= 1;
            let result = match carrier.land(flight, answer.result()) {
                Landing::Again => {
                    self.waiting.push_back(id);
                    continue;
                }
                Landing::Finished(result) => result,
            };
            let abandoned = *abandoned;
            let Entry::Flying { flight, .. } = std::mem::replace(entry, Entry::Free) else { continue };
            let request = flight.into_request();
            let result = result.map_err(|kind| carrier.failed(&request, kind));
            let completion = Completion { request, result };
            match &mut finished {
                Some(finished) => finished.push_back(completion),
                None if !abandoned => {
                    *entry = Entry::Finished(completion);
                    continue;
                }
                None => drop(completion),
            }
            self.free.push(id);
        }
    }

    /// Takes a finished request out.
    pub(crate) fn take(&mut self, id: Id) -> Option<Completion> {
        let entry = &mut self.entries[id as usize];
        if !matches!(entry, Entry::Finished(_)) {
            return None;
        }
        let Entry::Finished(completion) = std::mem::replace(entry, Entry::Free) else { return None };
        self.free.push(id);
        Some(completion)
    }

    /// Nobody will take this request: it leaves the table when it is over.
    pub(crate) fn abandon(&mut self, id: Id) {
        match &mut self.entries[id as usize] {
            Entry::Flying { abandoned, .. } => *abandoned = true,
            Entry::Finished(_) => drop(self.take(id)),
            Entry::Free => {}
        }
    }
}
