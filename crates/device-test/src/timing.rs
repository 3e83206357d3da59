//! A device that charges virtual time for each request.
//!
//! Nothing sleeps: a function of its size gives the time of a request. The sum is the time that the device would have
//! been busy, with one request at a time. Sums are in whole nanoseconds for each request, so that they do not depend on
//! the order in which threads come: the same requests cost the same time, always.

use std::fmt;
use std::time::Duration;

use f2fs_device::{BlockDevice, Claims, DeviceError, DeviceInfo, Op, Request, Ticket, Zone, ZoneChange};
use f2fs_sync::atomic::{AtomicU64, Ordering};

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
    /// Requests by size: index `i` counts those of more than `2^(i-1)` and at most `2^i` blocks; the last one also all
    /// larger.
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
/// A cost is a function from the blocks of a request to seconds, such as `CostModel::seconds` of `f2fs-segment`. Reads
/// and flushes cost nothing unless told otherwise, since reads are much faster than writes on flash. Requests that the
/// device below refuses for their range or kind are not charged.
///
/// ```
/// use f2fs_device::{BlockDevice, MemoryDevice};
/// use f2fs_device_test::TimingDevice;
///
/// # fn main() -> Result<(), f2fs_device::DeviceError> {
/// // Half a millisecond for each request, and half a millisecond for each of its blocks.
/// let device = TimingDevice::new(MemoryDevice::new(1024), |blocks| 0.5e-3 + 0.5e-3 * blocks as f64);
/// device.write_slice(7, &[1; 4096])?;
/// device.write_slice(20, &[1; 8192])?;
/// let stat = device.stat();
/// assert_eq!((stat.writes.requests, stat.writes.blocks), (2, 3));
/// assert_eq!(stat.time().as_micros(), 1000 + 1500);
/// # Ok(())
/// # }
/// ```
pub struct TimingDevice<D> {
    inner: D,
    write_cost: Cost,
    read_cost: Cost,
    flush_cost: u64,
    reads: Counters,
    writes: Counters,
    discards: AtomicU64,
    flushes: AtomicU64,
}

/// Seconds for a request of so many blocks.
pub(crate) type Cost = Box<dyn Fn(u64) -> f64 + Send + Sync>;

fn nanoseconds(cost: &Cost, blocks: u64) -> u64 {
    (cost(blocks) * 1e9).round() as u64
}

impl<D: fmt::Debug> fmt::Debug for TimingDevice<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimingDevice").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl<D: BlockDevice> TimingDevice<D> {
    /// A device that charges a write of so many blocks with `seconds` of them.
    #[must_use]
    pub fn new(inner: D, seconds: impl Fn(u64) -> f64 + Send + Sync + 'static) -> TimingDevice<D> {
        TimingDevice {
            inner,
            write_cost: Box::new(seconds),
            read_cost: Box::new(|_| 0.0),
            flush_cost: 0,
            reads: Counters::default(),
            writes: Counters::default(),
            discards: AtomicU64::new(0),
            flushes: AtomicU64::new(0),
        }
    }

    /// Charges reads, too.
    #[must_use]
    pub fn charge_reads(mut self, seconds: impl Fn(u64) -> f64 + Send + Sync + 'static) -> TimingDevice<D> {
        self.read_cost = Box::new(seconds);
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
            Op::Read => self.reads.add(blocks, nanoseconds(&self.read_cost, blocks)),
            Op::Write | Op::WriteFua => self.writes.add(blocks, nanoseconds(&self.write_cost, blocks)),
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

    fn report_zones(&self, start: u64, count: usize) -> Result<Vec<Zone>, DeviceError> {
        self.inner.report_zones(start, count)
    }

    fn change_zone(&self, start: u64, change: ZoneChange) -> Result<(), DeviceError> {
        self.inner.change_zone(start, change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use f2fs_device::{AlignedBuf, MemoryDevice};

    fn device() -> TimingDevice<MemoryDevice> {
        TimingDevice::new(MemoryDevice::new(64), |blocks| 2.0 + 2.0 * blocks as f64)
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
        assert_eq!(stat.time(), Duration::from_secs(4 + 10 + 18));
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
        let device = device().charge_reads(|blocks| blocks as f64 * 0.5).charge_flushes(Duration::from_millis(3));
        device.read(0, 2).unwrap();
        device.flush().unwrap();
        device.flush().unwrap();
        assert_eq!(device.stat().time(), Duration::from_millis(1006));
    }
}
