//! An SSD and persistent memory in virtual time, for several threads that one thread plays in turn.
//!
//! The devices work at once, and note in a [`Ledger`] what a request costs. [`play`] puts that on the time axis, and has
//! the threads wait for each other's requests.

mod ledger;
mod play;

use std::time::Duration;

use f2fs_device::{BlockDevice, Claims, DeviceError, DeviceInfo, Op, Request, Ticket};
use f2fs_pmem::{Durability, LINE, PersistentRegion, RegionError, lines};

pub use ledger::{Charge, Ledger, Place};
pub use play::{Played, play};

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

/// A device that takes as long as the model says.
#[derive(Debug)]
pub struct ModelledSsd<D> {
    inner: D,
    model: SsdModel,
    ledger: Ledger,
    place: Place,
}

impl<D: BlockDevice> ModelledSsd<D> {
    /// `inner` as an SSD.
    #[must_use]
    pub fn new(inner: D, model: SsdModel, ledger: Ledger) -> ModelledSsd<D> {
        let place = ledger.add_device();
        ModelledSsd { inner, model, ledger, place }
    }

    /// Notes a batch: its requests are transferred one behind the other, and the last one's latency follows.
    fn charge(&self, requests: &[Request]) {
        let (mut time, mut after) = (Duration::ZERO, Duration::ZERO);
        for request in requests {
            let latency = match request.op {
                Op::Read if self.model.reads_are_cached => continue,
                Op::Read => self.model.read_latency,
                Op::Write | Op::WriteFua => self.model.write_latency,
                Op::Discard { .. } => continue,
            };
            after = after.max(latency);
            time += self.model.block * u32::try_from(request.blocks()).unwrap_or(u32::MAX);
        }
        if !time.is_zero() {
            self.ledger.note(Charge::Busy { at: self.place, time, after });
        }
        if requests.iter().any(|request| request.op == Op::WriteFua) {
            self.ledger.note(Charge::Durable { at: self.place, time: self.model.flush });
        }
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
        self.ledger.note(Charge::Flush { at: self.place, time: self.model.flush });
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
    ledger: Ledger,
    place: Place,
}

impl<R: PersistentRegion> ModelledRegion<R> {
    /// `inner` as persistent memory.
    #[must_use]
    pub fn new(inner: R, model: NvdimmModel, ledger: Ledger) -> ModelledRegion<R> {
        let place = ledger.add_device();
        ModelledRegion { inner, model, ledger, place }
    }

    fn charge(&self, lines: usize, each: Duration) {
        let time = each * u32::try_from(lines).unwrap_or(u32::MAX);
        self.ledger.note(Charge::Busy { at: self.place, time, after: Duration::ZERO });
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
        self.ledger.note(Charge::Alone(self.model.fence));
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

    const fn micros(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    #[test]
    fn requests_cost_what_is_said() {
        let ledger = Ledger::default();
        let device = ModelledSsd::new(MemoryDevice::new(64), MODEL, ledger.clone());
        let at = device.place;
        device.write(0, AlignedBuf::new(4)).unwrap();
        assert_eq!(ledger.take(), [Charge::Busy { at, time: micros(32), after: micros(20) }]);
        let batch = vec![Request::read(0, AlignedBuf::new(2)), Request::write(8, AlignedBuf::new(1))];
        drop(device.submit(batch).wait());
        assert_eq!(ledger.take(), [Charge::Busy { at, time: micros(24), after: micros(80) }]);
        device.write_fua(0, AlignedBuf::new(1)).unwrap();
        let durable = Charge::Durable { at, time: micros(1000) };
        assert_eq!(ledger.take(), [Charge::Busy { at, time: micros(8), after: micros(20) }, durable]);
        device.discard(0, 4).unwrap();
        device.flush().unwrap();
        assert_eq!(ledger.take(), [Charge::Flush { at, time: micros(1000) }]);
        let cached = SsdModel { reads_are_cached: true, ..MODEL };
        drop(ModelledSsd::new(MemoryDevice::new(64), cached, ledger.clone()).read(0, 2).unwrap());
        assert_eq!(ledger.take(), []);
    }

    #[test]
    fn lines_and_fences_cost_what_is_said() {
        let ledger = Ledger::default();
        let nanos = Duration::from_nanos;
        let model = NvdimmModel { line: nanos(10), write_back: nanos(40), fence: nanos(100) };
        let region = ModelledRegion::new(MemoryRegion::new(4096).unwrap(), model, ledger.clone());
        region.store_nontemporal(0, &[1; 640]).unwrap();
        region.fence();
        region.store(0, &[2; 8]).unwrap();
        region.write_back(0, 8).unwrap();
        let busy = |time| Charge::Busy { at: region.place, time: nanos(time), after: Duration::ZERO };
        assert_eq!(ledger.take(), [busy(100), Charge::Alone(nanos(100)), busy(40)]);
    }
}
