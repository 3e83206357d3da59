//! A file or block device behind rings, or behind system calls where rings are forbidden.
//!
//! Locking rules: each thread uses one slot, chosen by its number, so that threads meet only when there are more of them than
//! slots. There is no lock around all slots: a slot is made once and stays.

use std::{
    hash::{Hash, Hasher},
    path::Path,
};

use f2fs_device::{
    AlignedBuf, BLOCK_SIZE, BlockDevice, Claims, Completion, DeviceError, DeviceInfo, IoQueue, Operation, Request,
    Ticket, TicketQueue, Zone, ZoneChange,
};
use f2fs_sync::{Arc, OnceLock, PerCore, PlainArc};

use crate::{
    Engine, OpenError, OpenOptions,
    queue::{MAX_ENTRIES, RingQueue},
    ring::{self, SHARED_ENTRIES, Users},
    slot::Slot,
    target::Target,
    thread_ring::ThreadRing,
};

/// How many slots there are. A ring takes some 20 KiB and a descriptor, and is made when a thread first uses its slot.
const SLOTS: usize = 64;

/// The variable that forbids `io_uring`.
const FORBID: &str = "F2FS_NO_IO_URING";

/// An open file or block device.
///
/// It is one writer's or many readers', across processes: see [`OpenError::AlreadyOpen`]. Dropping it waits for all requests
/// in flight, also those whose tickets were dropped.
#[derive(Debug)]
pub struct UringDevice {
    target: Arc<Target>,
    rings: Option<Rings>,
    claims: Claims,
}

#[derive(Debug)]
struct Rings {
    /// The ring of threads for whose slot none could be made.
    first: Arc<Slot>,
    slots: PerCore<OnceLock<Arc<Slot>>>,
}

impl UringDevice {
    /// Opens a regular file or block device.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(path: impl AsRef<Path>, options: OpenOptions) -> Result<PlainArc<Self>, OpenError> {
        let path = path.as_ref();
        Self::with_target(path, Target::open(path, options)?, options)
    }

    /// Creates a sparse file of `bytes` bytes, which must not exist yet, and opens it (for writing too, whatever the options
    /// say).
    ///
    /// # Errors
    /// See [`OpenError`]; a size that cannot be leaves no file behind.
    pub fn create(path: impl AsRef<Path>, bytes: u64, options: OpenOptions) -> Result<PlainArc<Self>, OpenError> {
        let path = path.as_ref();
        let options = options.read_only(false);
        Self::with_target(path, Target::create(path, bytes, options)?, options)
    }

    fn with_target(path: &Path, mut target: Target, options: OpenOptions) -> Result<PlainArc<Self>, OpenError> {
        let ring = match options.engine {
            Engine::Syscalls => Err("as asked".to_owned()),
            Engine::Auto if forbidden() => Err(format!("{FORBID} is set")),
            Engine::Auto if target.copies() => Err("persistent memory".to_owned()),
            Engine::Auto | Engine::IoUring => {
                ring::new(&target, SHARED_ENTRIES, Users::Many).map_err(|error| format!("io_uring_setup: {error}"))
            }
        };
        let ring = match ring {
            Ok(ring) => Some(ring),
            Err(reason) if options.engine == Engine::IoUring => {
                return Err(OpenError::NoIoUring { path: path.into(), reason });
            }
            Err(reason) => {
                target.describe(&format!("preadv/pwritev ({reason})"), path);
                None
            }
        };
        if ring.is_some() {
            target.describe("io_uring", path);
        }
        let target = Arc::new(target);
        let rings = ring.map(|ring| {
            let slots = PerCore::with_slots(SLOTS, |_| OnceLock::new());
            Rings { first: Arc::new(Slot::new(ring, Arc::clone(&target))), slots }
        });
        Ok(PlainArc::new(Self { target, rings, claims: Claims::new() }))
    }

    /// Whether requests go through `io_uring` rather than `preadv` and `pwritev`.
    #[must_use]
    pub fn uses_io_uring(&self) -> bool {
        self.rings.is_some()
    }

    /// Whether transfers bypass the page cache.
    #[must_use]
    pub fn is_direct(&self) -> bool {
        self.target.is_direct()
    }

    /// Answers a request that needs no ring, because it is refused or empty, or system calls carry it; gives back any other one.
    fn answer(&self, request: Request) -> Result<Completion, Request> {
        let by_ring = self.rings.is_some() && !self.target.needs_syscalls(request.op);
        if by_ring && request.blocks() > 0 && self.target.admit(&request).is_ok() {
            return Err(request);
        }
        Ok(self.call(request))
    }

    /// Carries one request by system calls.
    fn call(&self, mut request: Request) -> Completion {
        let result = match self.target.admit(&request) {
            Ok(()) if request.blocks() > 0 => self.target.run(&mut request),
            other => other,
        };
        Completion { request, result }
    }
}

impl Rings {
    /// This thread's slot.
    fn slot(&self, target: &Arc<Target>) -> &Arc<Slot> {
        let index = thread_number() & (self.slots.slots() - 1);
        let Some(slot) = self.slots.get(index) else { return &self.first };
        if let Some(slot) = slot.get() {
            return slot;
        }
        match ring::new(target, SHARED_ENTRIES, Users::Many) {
            Ok(ring) => slot.get_or_init(|| Arc::new(Slot::new(ring, Arc::clone(target)))),
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

impl BlockDevice for UringDevice {
    fn info(&self) -> &DeviceInfo {
        self.target.info()
    }

    fn claims(&self) -> &Claims {
        &self.claims
    }

    fn submit(&self, requests: Vec<Request>) -> Ticket {
        let total = requests.len();
        let (mut finished, mut rest) = (Vec::new(), Vec::with_capacity(total));
        for (index, request) in requests.into_iter().enumerate() {
            match self.answer(request) {
                Ok(completion) => finished.push((index, completion)),
                Err(request) => rest.push((index, request)),
            }
        }
        match &self.rings {
            Some(rings) if !rest.is_empty() => {
                Ticket::pending(total, finished, Slot::start(rings.slot(&self.target), rest))
            }
            _ => Ticket::ready(finished.into_iter().map(|(_, completion)| completion).collect()),
        }
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.target.flush()
    }

    fn report_zones(&self, start: u64, count: usize) -> Result<Vec<Zone>, DeviceError> {
        self.target.report_zones(start, count)
    }

    fn change_zone(&self, start: u64, change: ZoneChange) -> Result<(), DeviceError> {
        self.target.change_zone(start, change)
    }

    /// By a system call even where there are rings. The thread waits for this one request: a ring would submit it with one entry
    /// to the kernel too, but completes it by work for this thread, and hands it to a worker thread where the device
    /// cannot take it without waiting (persistent memory): two changes of threads for each request.
    fn execute(&self, request: Request) -> Completion {
        self.call(request)
    }

    /// Without a request: it allocates nothing and takes no lock.
    fn read_into(&self, start: u64, buf: &mut AlignedBuf) -> Result<(), DeviceError> {
        let blocks = buf.blocks() as u64;
        self.target.admit_blocks(Operation::Read, start, blocks)?;
        self.target
            .read_bytes(start * BLOCK_SIZE as u64, buf.as_bytes_mut())
            .map_err(|kind| DeviceError::new(Operation::Read, start, blocks, kind))
    }

    /// The same.
    fn write_from(&self, start: u64, buf: &mut AlignedBuf) -> Result<(), DeviceError> {
        let blocks = buf.blocks() as u64;
        self.target.admit_blocks(Operation::Write, start, blocks)?;
        self.target
            .write_bytes(start * BLOCK_SIZE as u64, buf.as_bytes())
            .map_err(|kind| DeviceError::new(Operation::Write, start, blocks, kind))
    }

    fn queue(&self, depth: usize) -> Box<dyn IoQueue + '_> {
        let entries = u32::try_from(depth).unwrap_or(MAX_ENTRIES).clamp(1, MAX_ENTRIES);
        let ring = self.rings.is_some().then(|| ThreadRing::new(&self.target, entries));
        match ring {
            Some(Ok(ring)) => Box::new(RingQueue::new(ring, Arc::clone(&self.target), depth)),
            _ => Box::new(TicketQueue::new(self, depth)),
        }
    }
}
