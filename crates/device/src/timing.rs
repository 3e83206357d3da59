//! A device that charges virtual time for each request.
//!
//! Nothing sleeps: a request costs what a [`CostModel`] says for its size, and the sum is what the device would have been busy
//! for, one request at a time. Sums are in whole nanoseconds for each request, so that they do not depend on the order in which
//! threads come: the same requests cost the same time, always.

use f2fs_sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::cost::CostModel;
use crate::{BlockDevice, Claims, DeviceError, DeviceInfo, Op, Request, Ticket};

/// Buckets of a histogram of request sizes.
const SIZES: usize = 12;

/// Requests of one kind that a [`TimingDevice`] has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Requests.
    pub requests: u64,
    /// Blocks of all of them.
    pub blocks: u64,
    /// Virtual nanoseconds of all of them.
    pub nanoseconds: u64,
    /// Requests by size: index `i` counts those of more than `2^(i-1)` and at most `2^i` blocks; the last one also all larger.
    pub sizes: [u64; SIZES],
}

impl Traffic {
    /// Virtual time of all requests.
    #[must_use]
    pub fn time(&self) -> Duration {
        Duration::from_nanos(self.nanoseconds)
    }

    /// The difference to an earlier reading.
    #[must_use]
    pub fn since(&self, earlier: &Traffic) -> Traffic {
        Traffic {
            requests: self.requests.saturating_sub(earlier.requests),
            blocks: self.blocks.saturating_sub(earlier.blocks),
            nanoseconds: self.nanoseconds.saturating_sub(earlier.nanoseconds),
            sizes: core::array::from_fn(|size| self.sizes[size].saturating_sub(earlier.sizes[size])),
        }
    }
}

/// Counts of a [`TimingDevice`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimingStat {
    /// Reads.
    pub reads: Traffic,
    /// Writes, durable ones among them.
    pub writes: Traffic,
    /// Discards; they cost nothing.
    pub discards: u64,
    /// Flushes.
    pub flushes: u64,
    /// Virtual nanoseconds of the flushes.
    pub flush_nanoseconds: u64,
}

impl TimingStat {
    /// Virtual time of reads, writes and flushes.
    #[must_use]
    pub fn time(&self) -> Duration {
        self.reads.time() + self.writes.time() + Duration::from_nanos(self.flush_nanoseconds)
    }

    /// The difference to an earlier reading.
    #[must_use]
    pub fn since(&self, earlier: &TimingStat) -> TimingStat {
        TimingStat {
            reads: self.reads.since(&earlier.reads),
            writes: self.writes.since(&earlier.writes),
            discards: self.discards.saturating_sub(earlier.discards),
            flushes: self.flushes.saturating_sub(earlier.flushes),
            flush_nanoseconds: self.flush_nanoseconds.saturating_sub(earlier.flush_nanoseconds),
        }
    }
}

#[derive(Debug, Default)]
struct Counters {
    requests: AtomicU64,
    blocks: AtomicU64,
    nanoseconds: AtomicU64,
    sizes: [AtomicU64; SIZES],
}

impl Counters {
    fn add(&self, blocks: u64, nanoseconds: u64) {
        let size = (blocks.max(1).next_power_of_two().trailing_zeros() as usize).min(SIZES - 1);
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.blocks.fetch_add(blocks, Ordering::Relaxed);
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
        self.sizes[size].fetch_add(1, Ordering::Relaxed);
    }

    fn read(&self) -> Traffic {
        Traffic {
            requests: self.requests.load(Ordering::Relaxed),
            blocks: self.blocks.load(Ordering::Relaxed),
            nanoseconds: self.nanoseconds.load(Ordering::Relaxed),
            sizes: core::array::from_fn(|size| self.sizes[size].load(Ordering::Relaxed)),
        }
    }
}

/// A device that passes requests on and charges virtual time for them.
///
/// Writes cost what the model says. Reads and flushes cost nothing unless told otherwise: the paper that the cost model comes
/// from counts writes alone, since reads are much faster on flash. Requests that the device below refuses for their range or
/// kind are not charged.
///
/// ```
/// use f2fs_device::cost::CostModel;
/// use f2fs_device::{BlockDevice, MemoryDevice, TimingDevice};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let model = CostModel::from_points("example", &[(1, 1e-3), (2, 0.75e-3)])?;
/// let device = TimingDevice::new(MemoryDevice::new(1024), model);
/// device.write_slice(7, &[1; 4096])?;
/// device.write_slice(20, &[1; 8192])?;
/// let stat = device.stat();
/// assert_eq!((stat.writes.requests, stat.writes.blocks), (2, 3));
/// assert_eq!(stat.time().as_micros(), 1000 + 1500);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TimingDevice<D> {
    inner: D,
    model: CostModel,
    read_model: Option<CostModel>,
    flush_cost: u64,
    reads: Counters,
    writes: Counters,
    discards: AtomicU64,
    flushes: AtomicU64,
}

fn nanoseconds(model: &CostModel, blocks: u64) -> u64 {
    (model.seconds(blocks as f64) * 1e9).round() as u64
}

impl<D: BlockDevice> TimingDevice<D> {
    /// A device that charges writes by `model`.
    #[must_use]
    pub fn new(inner: D, model: CostModel) -> TimingDevice<D> {
        TimingDevice {
            inner,
            model,
            read_model: None,
            flush_cost: 0,
            reads: Counters::default(),
            writes: Counters::default(),
            discards: AtomicU64::new(0),
            flushes: AtomicU64::new(0),
        }
    }

    /// Charges reads, too.
    #[must_use]
    pub fn charge_reads(mut self, model: CostModel) -> TimingDevice<D> {
        self.read_model = Some(model);
        self
    }

    /// Charges each flush.
    #[must_use]
    pub fn charge_flushes(mut self, time: Duration) -> TimingDevice<D> {
        self.flush_cost = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self
    }

    /// The device below.
    #[must_use]
    pub fn inner(&self) -> &D {
        &self.inner
    }

    /// The model that writes are charged by.
    #[must_use]
    pub fn model(&self) -> &CostModel {
        &self.model
    }

    /// The counts since the device was made.
    #[must_use]
    pub fn stat(&self) -> TimingStat {
        let flushes = self.flushes.load(Ordering::Relaxed);
        TimingStat {
            reads: self.reads.read(),
            writes: self.writes.read(),
            discards: self.discards.load(Ordering::Relaxed),
            flushes,
            flush_nanoseconds: flushes.saturating_mul(self.flush_cost),
        }
    }

    fn charge(&self, request: &Request) {
        if self.inner.info().check(request).is_err() {
            return;
        }
        let blocks = request.blocks();
        match request.op {
            Op::Read => {
                let cost = self.read_model.as_ref().map_or(0, |model| nanoseconds(model, blocks));
                self.reads.add(blocks, cost);
            }
            Op::Write | Op::WriteFua => self.writes.add(blocks, nanoseconds(&self.model, blocks)),
            Op::Discard { .. } => {
                self.discards.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

impl<D: BlockDevice> BlockDevice for TimingDevice<D> {
    fn info(&self) -> &DeviceInfo {
        self.inner.info()
    }

    fn claims(&self) -> &Claims {
        self.inner.claims()
    }

    fn submit(&self, requests: Vec<Request>) -> Ticket {
        requests.iter().for_each(|request| self.charge(request));
        self.inner.submit(requests)
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.flushes.fetch_add(1, Ordering::Relaxed);
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AlignedBuf, MemoryDevice};

    fn device() -> TimingDevice<MemoryDevice> {
        let model = CostModel::from_points("test", &[(1, 4.0), (4, 2.0), (8, 1.5)]).unwrap();
        TimingDevice::new(MemoryDevice::new(64), model)
    }

    #[test]
    fn each_request_costs_by_its_size() {
        let device = device();
        let batch = [(0, 1), (8, 4), (20, 8)].map(|(at, blocks)| Request::write(at, AlignedBuf::new(blocks)));
        assert!(device.submit(batch.into()).wait().iter().all(|completion| completion.result.is_ok()));
        device.read(0, 16).unwrap();
        device.discard(0, 8).unwrap();
        device.flush().unwrap();
        let stat = device.stat();
        assert_eq!(stat.time(), Duration::from_secs(4 + 8 + 12));
        assert_eq!(
            (stat.writes.requests, stat.writes.blocks, stat.writes.sizes[..5].to_vec()),
            (3, 13, vec![1, 0, 1, 1, 0])
        );
        assert_eq!((stat.reads.requests, stat.reads.blocks, stat.reads.nanoseconds), (1, 16, 0));
        assert_eq!((stat.discards, stat.flushes), (1, 1));
        device.write_slice(3, &[1]).unwrap();
        let more = device.stat().since(&stat);
        assert_eq!((more.writes.blocks, more.time(), more.flushes), (1, Duration::from_secs(4), 0));
    }

    #[test]
    fn what_is_refused_costs_nothing() {
        let device = device();
        assert!(device.write_slice(64, &[1]).is_err());
        assert_eq!(device.stat(), TimingStat::default());
    }

    #[test]
    fn reads_and_flushes_cost_what_is_said() {
        let model = CostModel::from_points("reads", &[(1, 0.5)]).unwrap();
        let device = device().charge_reads(model).charge_flushes(Duration::from_millis(3));
        device.read(0, 2).unwrap();
        device.flush().unwrap();
        device.flush().unwrap();
        assert_eq!(device.stat().time(), Duration::from_millis(1006));
    }
}
