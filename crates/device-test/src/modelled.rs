//! An SSD and persistent memory in virtual time, for several threads that one thread plays in turn.
//!
//! A [`VirtualClock`] has the time of the thread that is played at the moment. The player sets it before an operation
//! and reads it afterwards. Each request moves it on by its time in the [model](SsdModel), and by the wait for requests
//! that others sent before.
//!
//! ```text
//!   requests:  ──transfer──┤ (one at a time) ──latency──> done
//!   flushes:   ├── one flush ──┤├── the next ──┤       who comes while one runs shares the next with all others who come
//! ```
//!
//! # Locking
//!
//! A device's lock is held to count, and nothing is locked under it.

use std::time::Duration;

use f2fs_device::{BlockDevice, Claims, DeviceError, DeviceInfo, Op, Request, Ticket};
use f2fs_pmem::{Durability, LINE, PersistentRegion, RegionError, lines};
use f2fs_sync::atomic::{AtomicU64, Ordering};
use f2fs_sync::{Mutex, PlainArc};

/// Nanoseconds.
type Nanoseconds = u64;

fn nanoseconds(time: Duration) -> Nanoseconds {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The time of the thread that is played. Clones show the same.
#[derive(Clone, Debug, Default)]
pub struct VirtualClock(PlainArc<AtomicU64>);

impl VirtualClock {
    /// The time since the beginning.
    #[must_use]
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }

    /// Somebody else is played, whose time this is.
    pub fn set(&self, now: Duration) {
        self.0.store(nanoseconds(now), Ordering::Relaxed);
    }
}

/// The costs of an SSD with a volatile cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SsdModel {
    /// From the end of a transfer until a write is acknowledged.
    pub write_latency: Duration,
    /// From the beginning of a read until its first byte comes.
    pub read_latency: Duration,
    /// The transfer of a block; one at a time.
    pub block: Duration,
    /// A flush of the cache. A durable write (FUA) is a write and a flush.
    pub flush: Duration,
    /// Reads cost nothing: a page cache has all of it.
    pub reads_are_cached: bool,
}

/// The flush that began last.
#[derive(Debug, Default)]
struct State {
    busy_until: Nanoseconds,
    begun: Nanoseconds,
    ended: Nanoseconds,
}

/// A device that takes as long as the model says.
#[derive(Debug)]
pub struct ModelledSsd<D> {
    inner: D,
    model: SsdModel,
    clock: VirtualClock,
    state: Mutex<State>,
    flushes: AtomicU64,
}

impl<D: BlockDevice> ModelledSsd<D> {
    /// `inner` as an SSD.
    #[must_use]
    pub fn new(inner: D, model: SsdModel, clock: VirtualClock) -> ModelledSsd<D> {
        ModelledSsd { inner, model, clock, state: Mutex::new(State::default()), flushes: AtomicU64::new(0) }
    }

    /// Flushes that it has done; several callers may have shared one.
    #[must_use]
    pub fn flushes(&self) -> u64 {
        self.flushes.load(Ordering::Relaxed)
    }

    /// When a request is over that is sent at `now`.
    fn transferred(&self, request: &Request, now: Nanoseconds) -> Nanoseconds {
        let transfer = nanoseconds(self.model.block).saturating_mul(request.blocks());
        let latency = match request.op {
            Op::Read if self.model.reads_are_cached => return now,
            Op::Read => self.model.read_latency,
            Op::Write | Op::WriteFua => self.model.write_latency,
            Op::Discard { .. } => return now,
        };
        let mut state = self.state.lock();
        let end = now.max(state.busy_until) + transfer;
        state.busy_until = end;
        end + nanoseconds(latency)
    }

    /// When a flush is over that is asked for at `now`.
    fn flushed(&self, now: Nanoseconds) -> Nanoseconds {
        let mut state = self.state.lock();
        if now > state.begun || state.ended == 0 {
            // The one that runs may have begun before the caller's data came: it waits for the next.
            state.begun = now.max(state.ended);
            state.ended = state.begun + nanoseconds(self.model.flush);
            self.flushes.fetch_add(1, Ordering::Relaxed);
        }
        state.ended
    }

    fn charge(&self, requests: &[Request]) {
        let now = nanoseconds(self.clock.now());
        let over = requests.iter().map(|request| {
            let end = self.transferred(request, now);
            if request.op == Op::WriteFua { self.flushed(end) } else { end }
        });
        self.clock.set(Duration::from_nanos(over.fold(now, u64::max)));
    }
}

impl<D: BlockDevice> BlockDevice for ModelledSsd<D> {
    fn info(&self) -> &DeviceInfo {
        self.inner.info()
    }

    fn claims(&self) -> &Claims {
        self.inner.claims()
    }

    fn submit(&self, requests: Vec<Request>) -> Ticket {
        self.charge(&requests);
        self.inner.submit(requests)
    }

    fn flush(&self) -> Result<(), DeviceError> {
        let end = self.flushed(nanoseconds(self.clock.now()));
        self.clock.set(Duration::from_nanos(end));
        self.inner.flush()
    }
}

/// The costs of persistent memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NvdimmModel {
    /// A store of a line past the cache; the lines of all threads one after the other.
    pub line: Duration,
    /// A write-back of a line that was stored through the cache.
    pub write_back: Duration,
    /// A fence.
    pub fence: Duration,
}

/// A region that takes as long as the model says. It is persistent memory: durable at a fence.
#[derive(Debug)]
pub struct ModelledRegion<R> {
    inner: R,
    model: NvdimmModel,
    clock: VirtualClock,
    busy_until: AtomicU64,
}

impl<R: PersistentRegion> ModelledRegion<R> {
    /// `inner` as persistent memory.
    #[must_use]
    pub fn new(inner: R, model: NvdimmModel, clock: VirtualClock) -> ModelledRegion<R> {
        ModelledRegion { inner, model, clock, busy_until: AtomicU64::new(0) }
    }

    fn charge(&self, lines: usize, each: Duration) {
        let begin = nanoseconds(self.clock.now()).max(self.busy_until.load(Ordering::Relaxed));
        let end = begin + nanoseconds(each).saturating_mul(lines as u64);
        self.busy_until.store(end, Ordering::Relaxed);
        self.clock.set(Duration::from_nanos(end));
    }
}

impl<R: PersistentRegion> PersistentRegion for ModelledRegion<R> {
    fn len(&self) -> usize {
        self.inner.len()
    }

    fn durability(&self) -> Durability {
        Durability::Fence
    }

    fn load(&self, offset: usize, into: &mut [u8]) -> Result<(), RegionError> {
        self.inner.load(offset, into)
    }

    fn store(&self, offset: usize, bytes: &[u8]) -> Result<(), RegionError> {
        self.inner.store(offset, bytes)
    }

    fn store_nontemporal(&self, offset: usize, bytes: &[u8]) -> Result<(), RegionError> {
        self.charge(bytes.len().div_ceil(LINE), self.model.line);
        self.inner.store_nontemporal(offset, bytes)
    }

    fn write_back(&self, offset: usize, bytes: usize) -> Result<(), RegionError> {
        self.charge(lines(&(offset..offset + bytes)).len(), self.model.write_back);
        self.inner.write_back(offset, bytes)
    }

    fn fence(&self) {
        self.clock.set(self.clock.now() + self.model.fence);
        self.inner.fence();
    }
}

#[cfg(test)]
mod tests {
    use f2fs_device::{AlignedBuf, MemoryDevice};
    use f2fs_pmem::MemoryRegion;

    use super::*;

    const MODEL: SsdModel = SsdModel {
        write_latency: Duration::from_micros(20),
        read_latency: Duration::from_micros(80),
        block: Duration::from_micros(8),
        flush: Duration::from_millis(1),
        reads_are_cached: false,
    };

    fn at(clock: &VirtualClock, micros: u64, work: impl FnOnce()) -> u128 {
        clock.set(Duration::from_micros(micros));
        work();
        clock.now().as_micros()
    }

    #[test]
    fn transfers_wait_for_each_other_and_latencies_do_not() {
        let clock = VirtualClock::default();
        let device = ModelledSsd::new(MemoryDevice::new(64), MODEL, clock.clone());
        let write = |blocks| device.write(0, AlignedBuf::new(blocks)).unwrap();
        assert_eq!(at(&clock, 0, || write(1)), 28);
        assert_eq!(at(&clock, 0, || write(4)), 8 + 32 + 20, "behind the first");
        assert_eq!(at(&clock, 1000, || drop(device.read(0, 2).unwrap())), 1000 + 16 + 80);
        let cached = SsdModel { reads_are_cached: true, ..MODEL };
        let device = ModelledSsd::new(MemoryDevice::new(64), cached, clock.clone());
        assert_eq!(at(&clock, 1000, || drop(device.read(0, 2).unwrap())), 1000);
    }

    #[test]
    fn who_comes_during_a_flush_shares_the_next() {
        let clock = VirtualClock::default();
        let device = ModelledSsd::new(MemoryDevice::new(64), MODEL, clock.clone());
        let flush = || device.flush().unwrap();
        assert_eq!(at(&clock, 100, flush), 1100);
        assert_eq!(at(&clock, 200, flush), 2100, "its data may be newer than the flush that runs");
        assert_eq!(at(&clock, 1000, flush), 2100, "together");
        assert_eq!(at(&clock, 5000, flush), 6000);
        assert_eq!(device.flushes(), 3);
        let durable = || device.write_fua(0, AlignedBuf::new(1)).unwrap();
        assert_eq!(at(&clock, 10_000, durable), 11_028);
    }

    #[test]
    fn lines_and_fences_cost_what_is_said() {
        let clock = VirtualClock::default();
        let nanos = Duration::from_nanos;
        let model = NvdimmModel { line: nanos(10), write_back: nanos(40), fence: nanos(100) };
        let region = ModelledRegion::new(MemoryRegion::new(4096).unwrap(), model, clock.clone());
        region.store_nontemporal(0, &[1; 640]).unwrap();
        region.fence();
        region.store(0, &[2; 8]).unwrap();
        region.write_back(0, 8).unwrap();
        assert_eq!(clock.now(), nanos(100 + 100 + 40));
    }
}
