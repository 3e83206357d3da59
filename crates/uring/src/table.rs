//! The requests of one ring: submitted to the kernel, waiting for room, or finished.
//!
//! ```text
//!  start --> waiting --fill--> in the kernel --drain--> finished --take--> (gone)
//!               ^                   |    \
//!               +--drain: the rest--+     +--drain, when abandoned before--> (gone)
//! ```
//! An entry whose request is waiting or in the kernel leaves the table only by `drain`, also if its ticket is dropped.
//!
//! When the kernel refuses the ring (`refuse`), the requests that it has not taken yet are carried by system calls at
//! once, and so are those that come later. Those that it has taken are waited for as long as [`ring::patience`] says;
//! then nobody knows how they went, and the kernel may use their memory for ever, so that memory is given up. A read of
//! these is carried again, to other memory; anything else fails.

use std::collections::VecDeque;
use std::mem;
use std::time::Instant;

use f2fs_device::{Completion, DeviceError, DeviceErrorKind, Op, Request};
use io_uring::{Parameters, cqueue, squeue::EntryMarker};

use crate::carrier::{Carrier, Ring};
use crate::ring::{self, Refused};
use crate::{flight::Flight, progress::Landing};

/// Names a request in the table; used again once the request was taken or has been abandoned and is over.
pub(crate) type Id = u32;

#[derive(Debug)]
enum Entry {
    Free,
    Flying { flight: Flight, abandoned: bool },
    Finished(Completion),
}

/// The requests of one ring. A caller of [`fill`](Self::fill), [`drain`](Self::drain) or [`refuse`](Self::refuse) must
/// be the only one that uses the ring's queues at that time.
#[derive(Debug)]
pub(crate) struct Table {
    entries: Vec<Entry>,
    free: Vec<Id>,
    waiting: VecDeque<Id>,
    in_kernel: usize,
    /// How many may be in the kernel, so that the completion queue cannot overflow.
    limit: usize,
    /// The last that were put in the submission queue, as many as it has entries, each at its number modulo that.
    pushed: Vec<Id>,
    /// How many were.
    pushes: usize,
    refusal: Option<Refusal>,
}

/// How the ring is left.
#[derive(Clone, Copy, Debug)]
struct Refusal {
    refused: Refused,
    /// Until when completions are waited for; `None` when they are not any more.
    until: Option<Instant>,
}

impl Table {
    /// For a ring with these parameters.
    pub(crate) fn new(ring: &Parameters) -> Self {
        Self {
            entries: Vec::new(),
            free: Vec::new(),
            waiting: VecDeque::new(),
            in_kernel: 0,
            limit: ring.cq_entries() as usize,
            pushed: vec![0; (ring.sq_entries() as usize).next_power_of_two()],
            pushes: 0,
            refusal: None,
        }
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

    /// Whether the kernel has refused the ring.
    pub(crate) fn is_refused(&self) -> bool {
        self.refusal.is_some()
    }

    /// Puts waiting requests in the submission queue while there is room; returns the length of that queue, or 0 if
    /// the ring is refused.
    pub(crate) fn fill<C: Carrier>(&mut self, ring: &Ring<C>, carrier: &C) -> usize {
        if self.is_refused() {
            return 0;
        }
        // SAFETY: the caller is the only one that uses the ring's queues, so this is the only submission queue.
        let mut queue = unsafe { ring.submission_shared() };
        while self.in_kernel < self.limit && !queue.is_full() {
            let Some(id) = self.waiting.pop_front() else { break };
            let Entry::Flying { flight, .. } = &mut self.entries[id as usize] else { continue };
            let mut entry = carrier.entry(flight);
            entry.set_user_data(u64::from(id));
            // SAFETY: the entry points into memory owned by the flight, which stays in the table until `drain` has seen
            // its completion, or `refuse` has taken the entry back, which nobody hands to the kernel any more, or
            // `give_up` has left the memory to the kernel for good. The table is not dropped before that (see `Slot`
            // and `RingQueue`).
            if unsafe { queue.push(&entry) }.is_err() {
                self.waiting.push_front(id);
                break;
            }
            let last = self.pushed.len() - 1;
            self.pushed[self.pushes & last] = id;
            self.pushes = self.pushes.wrapping_add(1);
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
        if self.refusal.is_some_and(|refusal| refusal.until.is_none()) {
            // A completion would be one of a request that was given up, whose name may be another one's now.
            return self.carry_waiting(carrier, &mut finished);
        }
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
            let Entry::Flying { flight, .. } = mem::replace(entry, Entry::Free) else { continue };
            let request = flight.into_request();
            let result = result.map_err(|kind| carrier.failed(&request, kind));
            self.finish(id, abandoned, Completion { request, result }, &mut finished);
        }
        if let Some(Refusal { refused, until: Some(until) }) = self.refusal {
            self.carry_waiting(carrier, &mut finished);
            if self.in_kernel > 0 && Instant::now() >= until {
                self.give_up(carrier, refused, &mut finished);
            }
        }
    }

    /// Puts the completion of a request where it is taken from.
    fn finish(
        &mut self,
        id: Id,
        abandoned: bool,
        completion: Completion,
        finished: &mut Option<&mut VecDeque<Completion>>,
    ) {
        match finished {
            Some(finished) => finished.push_back(completion),
            None if !abandoned => {
                self.entries[id as usize] = Entry::Finished(completion);
                return;
            }
            None => drop(completion),
        }
        self.free.push(id);
    }

    /// The kernel has refused the ring, which nobody enters any more, and nobody is in. Requests that it has not taken
    /// are carried by system calls.
    #[cold]
    pub(crate) fn refuse<C: Carrier>(
        &mut self,
        ring: &Ring<C>,
        carrier: &C,
        refused: Refused,
        mut finished: Option<&mut VecDeque<Completion>>,
    ) {
        if self.refusal.is_none() {
            // SAFETY: the caller is the only one that uses the ring's queues, so this is the only submission queue.
            let queued = unsafe { ring.submission_shared() }.len();
            // A thread of the kernel that takes entries by itself may do so at any time.
            let not_taken = if ring.params().is_setup_sqpoll() { 0 } else { queued };
            let last = self.pushed.len() - 1;
            for back in 1..=not_taken {
                self.waiting.push_front(self.pushed[self.pushes.wrapping_sub(back) & last]);
            }
            self.in_kernel -= not_taken;
            self.refusal = Some(Refusal { refused, until: Some(Instant::now() + ring::patience(ring)) });
        }
        self.carry_waiting(carrier, &mut finished);
    }

    /// Carries the waiting requests by system calls. Of one that is transferred in part, all is transferred again.
    fn carry_waiting<C: Carrier>(&mut self, carrier: &C, finished: &mut Option<&mut VecDeque<Completion>>) {
        while let Some(id) = self.waiting.pop_front() {
            let entry = mem::replace(&mut self.entries[id as usize], Entry::Free);
            let Entry::Flying { flight, abandoned } = entry else { continue };
            let mut request = flight.into_request();
            let result = carry(carrier, &mut request);
            self.finish(id, abandoned, Completion { request, result }, finished);
        }
    }

    /// Completions are not waited for any more.
    fn give_up<C: Carrier>(&mut self, carrier: &C, refused: Refused, finished: &mut Option<&mut VecDeque<Completion>>) {
        self.refusal = Some(Refusal { refused, until: None });
        self.in_kernel = 0;
        // Nothing is waiting: all that has not landed was in the kernel.
        for id in 0..self.entries.len() {
            if !matches!(self.entries[id], Entry::Flying { .. }) {
                continue;
            }
            let Entry::Flying { flight, abandoned } = mem::replace(&mut self.entries[id], Entry::Free) else {
                continue;
            };
            let mut request = flight.leave_memory();
            let result = match request.op {
                Op::Read => carry(carrier, &mut request),
                _ => Err(carrier.failed(&request, DeviceErrorKind::Unanswered { errno: refused.errno })),
            };
            self.finish(id as Id, abandoned, Completion { request, result }, finished);
        }
    }

    /// Takes a finished request out.
    pub(crate) fn take(&mut self, id: Id) -> Option<Completion> {
        let entry = &mut self.entries[id as usize];
        if !matches!(entry, Entry::Finished(_)) {
            return None;
        }
        let Entry::Finished(completion) = mem::replace(entry, Entry::Free) else { return None };
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

/// Carries a request by system calls that was admitted some time ago.
fn carry<C: Carrier>(carrier: &C, request: &mut Request) -> Result<(), DeviceError> {
    carrier.admit(request)?;
    carrier.run(request)
}
