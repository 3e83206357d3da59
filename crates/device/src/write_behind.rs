//! Writes that wait in memory until a flush: a volatile cache in front of a device.
//!
//! ```text
//!   defer ──> waits ──flush, or no room for others──> on the device, as few large requests
//!               │  └──read: the memory answers
//!               └──────forget──> gone, the device never gets it (not after a seal)
//! ```
//!
//! Who defers a write lets it be lost with the power until a flush that began afterwards has ended; so does every device
//! with a volatile cache, and nothing else differs. A block that nobody will read any more can be
//! [forgotten](WriteBehind::forget), which saves the write. From a [seal](WriteBehind::seal) on, nothing that waits can
//! be forgotten: somebody is about to name it in a place that becomes durable with the next flush.
//!
//! Other requests go to the device below. A write or discard of a block that waits takes its place.
//!
//! # Memory
//!
//! The memory of a write is kept, and counted as a whole, until the last of its blocks is on the device, forgotten or
//! written anew.
//!
//! # Errors
//!
//! A deferred write that the device refuses when it is sent waits on, with those that were sent together with it and
//! behind it. The flush that sent it gives the error; a later one tries again.
//!
//! # Locking
//!
//! `sending` is held by the one who sends, from its first look at what waits until the device has all of it. Under it
//! stripes are locked one at a time, for a moment. What is being sent stays where readers find it until the device has
//! it. Without the lock of a stripe, its count says whether anything waits there: a count of 0 means that all that ever
//! waited is on the device, or gone.

mod mixed;

use std::collections::BTreeMap;
use std::fmt;

use f2fs_sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use f2fs_sync::{Budget, Mutex, PlainArc, Striped, protocol_never, protocol_value, stripes_here};

use crate::{
    AlignedBuf, BLOCK_SIZE, BlockDevice, Claims, Completion, DeviceError, DeviceInfo, Op, Recycler, Request, Ticket,
};
use crate::{Zone, ZoneChange};
use mixed::Mixed;
use smallvec::SmallVec;

/// Locks for what waits.
const STRIPES: usize = if cfg!(any(loom, shuttle)) { 1 } else { 256 };
/// Neighbouring blocks of one stripe: 256 KiB.
const GROUP: u64 = 64;
/// Blocks of a request that is sent.
const MOST: usize = 128;
/// Blocks that are sent together: 8 MiB, whose memory is used again for the next.
const BATCH: usize = 2048;
/// Blocks that leave without an allocation.
const FEW: usize = 8;

/// Blocks that are to be dropped when no stripe is locked.
type Few = SmallVec<[Waiting; FEW]>;

/// A device, and writes to it that wait for a flush.
///
/// ```
/// use std::sync::Arc;
///
/// use f2fs_device::{AlignedBuf, BlockDevice, MemoryDevice, Request, WriteBehind};
///
/// # fn main() -> Result<(), f2fs_device::DeviceError> {
/// let below = Arc::new(MemoryDevice::new(100));
/// let device = WriteBehind::new(below.clone(), 64);
/// assert!(device.defer(&Arc::new(Request::write(7, AlignedBuf::from_bytes(b"seven")))));
/// assert!(device.read(7, 1)?.as_bytes().starts_with(b"seven"));
/// assert!(!below.read(7, 1)?.as_bytes().starts_with(b"seven"));
/// device.flush()?;
/// assert!(below.read(7, 1)?.as_bytes().starts_with(b"seven"));
/// # Ok(())
/// # }
/// ```
pub struct WriteBehind {
    inner: PlainArc<dyn BlockDevice>,
    stripes: Striped<Stripe>,
    /// Blocks of the writes of which something may wait.
    room: PlainArc<Budget>,
    /// Seals until now.
    seals: AtomicU64,
    sending: Mutex<()>,
    /// Memory of what is being sent.
    recycler: Recycler,
}

#[derive(Default)]
struct Stripe {
    /// How many wait, for those who do not lock.
    count: AtomicUsize,
    waiting: Mutex<BTreeMap<u64, Waiting>>,
}

/// A write of which something waits.
struct Deferred {
    request: PlainArc<Request>,
    room: PlainArc<Budget>,
}

impl Drop for Deferred {
    fn drop(&mut self) {
        self.room.give(self.request.blocks());
    }
}

/// A block that waits. It is dropped with no stripe locked: with the last one of a write its room is given back.
#[derive(Clone)]
struct Waiting {
    write: PlainArc<Deferred>,
    /// Its number in the write.
    at: usize,
    /// The seals when it was deferred.
    seals: u64,
}

impl Waiting {
    fn bytes(&self) -> &[u8; BLOCK_SIZE] {
        let mut at = self.at;
        for buf in &self.write.request.bufs {
            if at < buf.blocks() {
                return buf.block(at);
            }
            at -= buf.blocks();
        }
        &[0; BLOCK_SIZE]
    }

    fn is(&self, other: &Waiting) -> bool {
        PlainArc::ptr_eq(&self.write, &other.write) && self.at == other.at
    }
}

/// What memory had of a read.
#[derive(PartialEq, Eq)]
enum Had {
    Nothing,
    Part,
    All,
}

/// What becomes of a request.
enum Prepared {
    /// It goes to the device.
    Below(Request),
    /// It is over.
    Over(Completion),
}

impl fmt::Debug for WriteBehind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriteBehind").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl WriteBehind {
    /// Nothing waits yet; `most` blocks may.
    #[must_use]
    pub fn new(inner: PlainArc<dyn BlockDevice>, most: u64) -> WriteBehind {
        WriteBehind {
            inner,
            stripes: Striped::new(stripes_here(STRIPES), |_| Stripe::default()),
            room: PlainArc::new(Budget::new(most)),
            seals: AtomicU64::new(0),
            sending: Mutex::new(()),
            recycler: Recycler::new(),
        }
    }

    /// Lets a write wait; its memory is shared until then. False: nothing was done, since it is no write within the
    /// device, or there is no room, even after all that waited was sent.
    pub fn defer(&self, request: &PlainArc<Request>) -> bool {
        let blocks = request.blocks();
        if request.op != Op::Write || self.inner.info().check(request).is_err() {
            return false;
        }
        if !self.room.try_take(blocks) && (self.send().is_err() || !self.room.try_take(blocks)) {
            return false;
        }
        let write = PlainArc::new(Deferred { request: request.clone(), room: self.room.clone() });
        let seals = self.seals.load(Ordering::Acquire);
        let mut replaced = Few::new();
        for (stripe, start, end) in self.parts(request.start, blocks) {
            let mut waiting = stripe.waiting.lock();
            for block in start..end {
                let at = (block - request.start) as usize;
                replaced.extend(waiting.insert(block, Waiting { write: write.clone(), at, seals }));
            }
            stripe.count.store(waiting.len(), Ordering::Release);
        }
        true
    }

    /// Nobody will read these blocks before they are written again, which is after the next flush: those that wait need
    /// not be written. Those that were there at the last seal are written all the same.
    pub fn forget(&self, start: u64, blocks: u64) {
        let seals = self.seals.load(Ordering::Acquire);
        let sealed = |waiting: &Waiting| protocol_value!("write_behind_forgets_sealed", waiting.seals != seals, false);
        self.remove(start, blocks, |waiting| !sealed(waiting));
    }

    /// All that waits now will be written by the next flush, and cannot be forgotten. Nobody defers or forgets
    /// meanwhile.
    pub fn seal(&self) {
        self.seals.fetch_add(1, Ordering::AcqRel);
    }

    /// How many blocks wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.stripes.iter().map(|stripe| stripe.count.load(Ordering::Acquire)).sum()
    }

    /// The stripes of a run of blocks, each with its part of the run.
    fn parts(&self, start: u64, blocks: u64) -> impl Iterator<Item = (&Stripe, u64, u64)> {
        let end = start.saturating_add(blocks);
        let mut at = start;
        std::iter::from_fn(move || {
            let (first, next) = (at, (at / GROUP + 1).saturating_mul(GROUP).min(end));
            at = next;
            (first < next).then(|| (self.stripes.stripe(&(first / GROUP)), first, next))
        })
    }

    fn remove(&self, start: u64, blocks: u64, goes: impl Fn(&Waiting) -> bool) {
        let mut removed = Few::new();
        for (stripe, start, end) in self.parts(start, blocks) {
            if stripe.count.load(Ordering::Acquire) == 0 {
                continue;
            }
            let mut waiting = stripe.waiting.lock();
            let going: SmallVec<[u64; FEW]> =
                waiting.range(start..end).filter(|(_, waiting)| goes(waiting)).map(|(block, _)| *block).collect();
            removed.extend(going.iter().filter_map(|block| waiting.remove(block)));
            stripe.count.store(waiting.len(), Ordering::Release);
        }
    }

    /// Writes all that waits, and waits for the device.
    fn send(&self) -> Result<(), DeviceError> {
        let _sending = self.sending.lock();
        let mut all: Vec<(u64, Waiting)> = Vec::new();
        for stripe in self.stripes.iter().filter(|stripe| stripe.count.load(Ordering::Acquire) != 0) {
            all.extend(stripe.waiting.lock().iter().map(|(block, waiting)| (*block, waiting.clone())));
        }
        all.sort_unstable_by_key(|(block, _)| *block);
        let gone = |those: &[(u64, Waiting)]| {
            those.iter().for_each(|(block, sent)| self.remove(*block, 1, |waiting| waiting.is(sent)));
        };
        for batch in all.chunks(BATCH) {
            let runs = batch.chunk_by(|(before, _), (block, _)| before + 1 == *block).flat_map(|run| run.chunks(MOST));
            let requests = runs.map(|run| {
                let mut data = self.recycler.take_empty(run.len());
                run.iter().for_each(|(_, waiting)| data.push(waiting.bytes()));
                Request::write(run[0].0, data)
            });
            let requests = requests.collect();
            protocol_never!("write_behind_gone_before_sent", gone(batch));
            self.inner.execute_all(requests)?.into_iter().try_for_each(|completion| completion.result)?;
            gone(batch);
        }
        Ok(())
    }

    /// Fills a read with what waits.
    fn look(&self, request: &mut Request) -> Had {
        let (start, blocks) = (request.start, request.blocks());
        let mut found = 0;
        for (stripe, from, to) in self.parts(start, blocks) {
            if stripe.count.load(Ordering::Acquire) == 0 {
                continue;
            }
            let waiting = stripe.waiting.lock();
            for (block, waiting) in waiting.range(from..to) {
                let mut at = (block - start) as usize;
                for buf in &mut request.bufs {
                    if at < buf.blocks() {
                        buf.block_mut(at).copy_from_slice(waiting.bytes());
                        found += 1;
                        break;
                    }
                    at -= buf.blocks();
                }
            }
        }
        match found {
            0 => Had::Nothing,
            found if found == blocks => Had::All,
            _ => Had::Part,
        }
    }

    /// Whether anything waits among these blocks.
    fn waits(&self, start: u64, blocks: u64) -> bool {
        self.parts(start, blocks).any(|(stripe, from, to)| {
            stripe.count.load(Ordering::Acquire) != 0 && stripe.waiting.lock().range(from..to).next().is_some()
        })
    }

    /// Prepares a request that goes to the device, unless memory answers it.
    fn prepare(&self, mut request: Request) -> Prepared {
        if self.inner.info().check(&request).is_err() {
            return Prepared::Below(request);
        }
        match request.op {
            Op::Read => match self.look(&mut request) {
                Had::Nothing => {}
                Had::All => return Prepared::Over(Completion { request, result: Ok(()) }),
                Had::Part => {
                    if let Err(error) = self.send() {
                        return Prepared::Over(Completion { request, result: Err(error) });
                    }
                }
            },
            Op::Write | Op::WriteFua | Op::Discard { .. } => {
                let (start, blocks) = (request.start, request.blocks());
                if self.waits(start, blocks) {
                    // What is older may be on its way.
                    let _sending = protocol_value!("write_behind_passes_older", Some(self.sending.lock()), None);
                    self.remove(start, blocks, |_| true);
                }
            }
        }
        Prepared::Below(request)
    }
}

impl BlockDevice for WriteBehind {
    fn info(&self) -> &DeviceInfo {
        self.inner.info()
    }

    fn claims(&self) -> &Claims {
        self.inner.claims()
    }

    fn submit(&self, requests: Vec<Request>) -> Ticket {
        let total = requests.len();
        let (mut finished, mut places, mut below) = (Vec::new(), Vec::with_capacity(total), Vec::with_capacity(total));
        for (index, request) in requests.into_iter().enumerate() {
            match self.prepare(request) {
                Prepared::Below(request) => {
                    places.push(index);
                    below.push(request);
                }
                Prepared::Over(completion) => finished.push((index, completion)),
            }
        }
        if finished.is_empty() {
            return self.inner.submit(below);
        }
        let ticket = self.inner.submit(below);
        Ticket::pending(total, finished, Box::new(Mixed { ticket, places }))
    }

    fn flush(&self) -> Result<(), DeviceError> {
        protocol_value!("write_behind_sends_before_flush", self.send(), Ok(()))?;
        self.inner.flush()
    }

    fn report_zones(&self, start: u64, count: usize) -> Result<Vec<Zone>, DeviceError> {
        self.inner.report_zones(start, count)
    }

    fn change_zone(&self, start: u64, change: ZoneChange) -> Result<(), DeviceError> {
        self.inner.change_zone(start, change)
    }

    fn execute(&self, request: Request) -> Completion {
        match self.prepare(request) {
            Prepared::Below(request) => self.inner.execute(request),
            Prepared::Over(completion) => completion,
        }
    }

    fn read_into(&self, start: u64, buf: &mut AlignedBuf) -> Result<(), DeviceError> {
        if !self.waits(start, buf.blocks() as u64) {
            return self.inner.read_into(start, buf);
        }
        let mut completion = self.execute(Request::read(start, std::mem::take(buf)));
        *buf = completion.request.bufs.pop().unwrap_or_default();
        completion.result
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
