//! Requests on their way through rings, or through system calls where rings are forbidden.
//!
//! Locking rules: each thread uses one slot, chosen by its number, so that threads meet only when there are more of
//! them than slots. There is no lock around all slots: a slot is made once and stays.

use std::hash::{Hash, Hasher};

use f2fs_device::{Completion, Request, Ticket};
use f2fs_sync::{Arc, OnceLock, PerCore};

use crate::carrier::{Carrier, Ring};
use crate::{
    Engine, Polling,
    queue::{MAX_ENTRIES, RingQueue},
    ring::{self, SHARED_ENTRIES, Users},
    slot::Slot,
    thread_ring::ThreadRing,
};

/// How many slots there are. A ring takes some 20 KiB and a descriptor, and is made when a thread first uses its slot.
const SLOTS: usize = 64;

/// The variable that forbids `io_uring`.
const FORBID: &str = "F2FS_NO_IO_URING";

/// The carrier of a device's requests, and its rings. Dropping it waits for all requests in flight, also those whose
/// tickets were dropped.
#[derive(Debug)]
pub(crate) struct Traffic<C: Carrier> {
    carrier: Arc<C>,
    rings: Option<Rings<C>>,
    /// Of the rings of queues.
    polling: Polling,
}

#[derive(Debug)]
struct Rings<C: Carrier> {
    /// The ring of threads for whose slot none could be made.
    first: Arc<Slot<C>>,
    slots: PerCore<OnceLock<Arc<Slot<C>>>>,
}

/// The first ring, or the reason why there is none.
pub(crate) fn first_ring<C: Carrier>(carrier: &C, engine: Engine) -> Result<Ring<C>, String> {
    match engine {
        Engine::Syscalls => Err("as asked".to_owned()),
        Engine::Auto if forbidden() => Err(format!("{FORBID} is set")),
        Engine::Auto | Engine::IoUring => ring::new(carrier, SHARED_ENTRIES, Users::Many, Polling::default()),
    }
}

/// Whether a queue can poll, or why not, where that was asked for.
pub(crate) fn try_polling<C: Carrier>(carrier: &C, has_ring: bool, polling: Polling) -> Result<(), String> {
    if polling == Polling::default() {
        return Ok(());
    }
    if !has_ring {
        return Err("there is no io_uring".to_owned());
    }
    let ring = ring::new(carrier, 1, Users::ThisThread, polling)?;
    ring::release_file(&ring);
    Ok(())
}

impl<C: Carrier> Traffic<C> {
    /// Through rings of which `ring` is the first, or by system calls.
    pub(crate) fn new(carrier: C, ring: Option<Ring<C>>, polling: Polling) -> Self {
        let carrier = Arc::new(carrier);
        let rings = ring.map(|ring| {
            let slots = PerCore::with_slots(SLOTS, |_| OnceLock::new());
            Rings { first: Arc::new(Slot::new(ring, Arc::clone(&carrier))), slots }
        });
        Self { carrier, rings, polling }
    }

    pub(crate) fn carrier(&self) -> &C {
        &self.carrier
    }

    /// Whether there are rings.
    pub(crate) fn has_rings(&self) -> bool {
        self.rings.is_some()
    }

    /// Starts a batch.
    pub(crate) fn submit(&self, requests: Vec<Request>) -> Ticket {
        let total = requests.len();
        let slot = self.rings.as_ref().map(|rings| rings.slot(&self.carrier)).filter(|slot| !slot.is_refused());
        let (mut finished, mut rest) = (Vec::new(), Vec::with_capacity(total));
        for (index, request) in requests.into_iter().enumerate() {
            match self.answer(request, slot.is_some()) {
                Ok(completion) => finished.push((index, completion)),
                Err(request) => rest.push((index, request)),
            }
        }
        match slot {
            Some(slot) if !rest.is_empty() => Ticket::pending(total, finished, Slot::start(slot, rest)),
            _ => Ticket::ready(finished.into_iter().map(|(_, completion)| completion).collect()),
        }
    }

    /// Answers a request that needs no ring, because it is refused or empty, or system calls carry it; gives back any
    /// other one, if there is a ring.
    fn answer(&self, request: Request, by_ring: bool) -> Result<Completion, Request> {
        let by_ring = by_ring && !self.carrier.needs_call(request.op);
        if by_ring && request.blocks() > 0 && self.carrier.admit(&request).is_ok() {
            return Err(request);
        }
        Ok(self.call(request))
    }

    /// Carries one request by system calls.
    pub(crate) fn call(&self, mut request: Request) -> Completion {
        let result = match self.carrier.admit(&request) {
            Ok(()) if request.blocks() > 0 => self.carrier.run(&mut request),
            other => other,
        };
        Completion { request, result }
    }

    /// A queue with a ring of its own, if there are rings.
    pub(crate) fn queue(&self, depth: usize) -> Option<RingQueue<C>> {
        self.rings.as_ref().filter(|rings| !rings.first.is_refused())?;
        let entries = u32::try_from(depth).unwrap_or(MAX_ENTRIES).clamp(1, MAX_ENTRIES);
        let ring = ThreadRing::new(&*self.carrier, entries, self.polling).ok()?;
        Some(RingQueue::new(ring, Arc::clone(&self.carrier), depth, self.polling.submissions.is_some()))
    }
}

impl<C: Carrier> Rings<C> {
    /// This thread's slot.
    fn slot(&self, carrier: &Arc<C>) -> &Arc<Slot<C>> {
        let index = thread_number() & (self.slots.slots() - 1);
        let Some(slot) = self.slots.get(index) else { return &self.first };
        if let Some(slot) = slot.get() {
            return slot;
        }
        if self.first.is_refused() {
            return &self.first;
        }
        match ring::new(&**carrier, SHARED_ENTRIES, Users::Many, Polling::default()) {
            Ok(ring) => slot.get_or_init(|| Arc::new(Slot::new(ring, Arc::clone(carrier)))),
            Err(_) => &self.first,
        }
    }
}

/// A number that differs between the threads of a process; consecutive threads have consecutive numbers.
fn thread_number() -> usize {
    /// Keeps the number that a `ThreadId` is hashed by.
    #[derive(Default)]
    struct Keep(u64);

    impl Hasher for Keep {
        fn finish(&self) -> u64 {
            self.0
        }

        fn write(&mut self, bytes: &[u8]) {
            for &byte in bytes {
                self.0 = self.0.rotate_left(8) ^ u64::from(byte);
            }
        }

        fn write_u64(&mut self, number: u64) {
            self.0 ^= number;
        }
    }

    f2fs_sync::thread_local! {
        static NUMBER: usize = {
            let mut keep = Keep::default();
            std::thread::current().id().hash(&mut keep);
            keep.finish() as usize
        };
    }
    NUMBER.with(|&number| number)
}

fn forbidden() -> bool {
    std::env::var_os(FORBID).is_some_and(|value| !value.is_empty() && value != "0")
}

#[cfg(all(test, not(any(loom, shuttle))))]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests {
    use f2fs_device::AlignedBuf;

    use super::*;
    use crate::rehearsal::{Pipe, refuse_after};

    #[test]
    fn after_a_refusal_nobody_tries_rings_again() {
        let ring = ring::new(&*Pipe::new(), SHARED_ENTRIES, Users::Many, Polling::default()).unwrap();
        let Some(pipe) = Arc::into_inner(Pipe::new()) else { unreachable!("nobody else has it") };
        let traffic = Traffic::new(pipe, Some(ring), Polling::default());
        let first = &traffic.rings.as_ref().unwrap().first;
        assert!(traffic.queue(4).is_some());
        refuse_after(0, 1);
        let read = |start| Request::read(start, AlignedBuf::new(1));
        let done = Slot::start(first, vec![(0, read(1))]);
        assert!(first.is_refused());
        drop(done);
        // If it made a ring, it could.
        refuse_after(u32::MAX, 1);
        let ticket = traffic.submit(vec![read(2), read(3)]);
        assert_eq!(traffic.carrier().called(), [1, 2, 3], "before the ticket is looked at");
        assert!(ticket.wait().iter().all(|done| done.result.is_ok()));
        assert!(traffic.rings.as_ref().unwrap().slots.iter().all(|slot| slot.get().is_none()));
        assert!(traffic.queue(4).is_none());
    }
}
