//! A device that takes its time.
//!
//! Locking rules: `free_at` says until when the device works. It is locked to give a request its place in the line,
//! never while anybody sleeps or transfers.

use std::collections::VecDeque;
use std::time::{Duration, Instant};
use std::{fmt, thread};

use f2fs_device::{
    BlockDevice, Claims, Completion, DeviceError, DeviceInfo, Op, Pending, Request, Ticket, Zone, ZoneChange,
};
use f2fs_sync::Mutex;

use crate::timing::Cost;

/// A device that works on one request after the other, each for as long as its size costs: a slow card in real time,
/// where [`TimingDevice`](crate::TimingDevice) charges virtual time.
///
/// A request reaches the device below at once, and its completion comes when its time is over. Requests without a cost
/// (reads, unless told otherwise) wait for nobody. The clock is the system's: a request takes longer if the processors
/// are busy, by some 60 microseconds if they are not.
///
/// ```
/// use std::time::{Duration, Instant};
///
/// use f2fs_device::{BlockDevice, MemoryDevice};
/// use f2fs_device_test::SlowDevice;
///
/// # fn main() -> Result<(), f2fs_device::DeviceError> {
/// // A millisecond for each request, and one for each of its blocks.
/// let device = SlowDevice::new(MemoryDevice::new(64), |blocks| 1e-3 + 1e-3 * blocks as f64);
/// let start = Instant::now();
/// device.write_slice(0, &[1; 4096])?;
/// device.write_slice(7, &[1; 8192])?;
/// assert!(start.elapsed() >= Duration::from_millis(2 + 3));
/// # Ok(())
/// # }
/// ```
pub struct SlowDevice<D> {
    inner: D,
    writes: Cost,
    reads: Option<Cost>,
    flushes: Duration,
    /// When the last request that was taken will be over.
    free_at: Mutex<Instant>,
}

impl<D: fmt::Debug> fmt::Debug for SlowDevice<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SlowDevice").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl<D: BlockDevice> SlowDevice<D> {
    /// A device whose writes of so many blocks take `seconds` of them. What is negative or no number takes no time, and
    /// no request takes more than an hour.
    #[must_use]
    pub fn new(inner: D, seconds: impl Fn(u64) -> f64 + Send + Sync + 'static) -> SlowDevice<D> {
        let free_at = Mutex::new(Instant::now());
        SlowDevice { inner, writes: Box::new(seconds), reads: None, flushes: Duration::ZERO, free_at }
    }

    /// Reads take time, too.
    #[must_use]
    pub fn with_reads(mut self, seconds: impl Fn(u64) -> f64 + Send + Sync + 'static) -> SlowDevice<D> {
        self.reads = Some(Box::new(seconds));
        self
    }

    /// Each flush takes so long, an hour at most, behind all requests that were taken before it.
    #[must_use]
    pub fn with_flushes(mut self, time: Duration) -> SlowDevice<D> {
        self.flushes = time.min(Duration::from_secs_f64(LONGEST));
        self
    }

    /// The device below.
    #[must_use]
    pub fn inner(&self) -> &D {
        &self.inner
    }

    fn time(&self, request: &Request) -> Duration {
        let cost = match request.op {
            Op::Read => self.reads.as_ref(),
            Op::Write | Op::WriteFua => Some(&self.writes),
            Op::Discard { .. } => None,
        };
        match cost {
            Some(cost) if self.inner.info().check(request).is_ok() => duration(cost(request.blocks())),
            _ => Duration::ZERO,
        }
    }

    /// Takes a place in the line for something that lasts so long; when it is over.
    fn line_up(&self, time: Duration) -> Instant {
        let now = Instant::now();
        if time.is_zero() {
            return now;
        }
        let mut free_at = self.free_at.lock();
        *free_at = (*free_at).max(now) + time;
        *free_at
    }
}

/// The longest that a request takes.
const LONGEST: f64 = 3600.0;

fn duration(seconds: f64) -> Duration {
    // A value that is no number is not more than the longest, and no duration either.
    Duration::try_from_secs_f64(if seconds > LONGEST { LONGEST } else { seconds }).unwrap_or_default()
}

fn sleep_until(due: Instant) {
    thread::sleep(due.saturating_duration_since(Instant::now()));
}

/// Requests that the device below may have finished, and that are shown when their time has come.
#[derive(Debug)]
struct Working {
    below: Ticket,
    /// For each request of the batch.
    due: Vec<Instant>,
    /// The requests finished below, each with its index.
    finished: Vec<(usize, Completion)>,
}

impl Working {
    fn hand_out(&mut self, out: &mut VecDeque<(usize, Completion)>) -> bool {
        let now = Instant::now();
        let before = out.len();
        let due = &self.due;
        out.extend(self.finished.extract_if(.., |(index, _)| due[*index] <= now));
        out.len() > before
    }
}

impl Pending for Working {
    fn collect(&mut self, block: bool, out: &mut VecDeque<(usize, Completion)>) {
        loop {
            while let Some(finished) = self.below.try_any() {
                self.finished.push(finished);
            }
            if self.hand_out(out) || !block {
                return;
            }
            match self.finished.iter().map(|(index, _)| self.due[*index]).min() {
                Some(due) => sleep_until(due),
                None => match self.below.wait_any() {
                    Some(finished) => self.finished.push(finished),
                    None => return,
                },
            }
        }
    }
}

impl<D: BlockDevice> BlockDevice for SlowDevice<D> {
    fn info(&self) -> &DeviceInfo {
        self.inner.info()
    }

    fn claims(&self) -> &Claims {
        self.inner.claims()
    }

    fn submit(&self, requests: Vec<Request>) -> Ticket {
        let due: Vec<Instant> = requests.iter().map(|request| self.line_up(self.time(request))).collect();
        let total = due.len();
        let below = self.inner.submit(requests);
        Ticket::pending(total, Vec::new(), Box::new(Working { below, due, finished: Vec::with_capacity(total) }))
    }

    fn flush(&self) -> Result<(), DeviceError> {
        let due = self.line_up(self.flushes);
        let result = self.inner.flush();
        sleep_until(due);
        result
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

    const WRITE: Duration = Duration::from_millis(10);

    fn slow() -> SlowDevice<MemoryDevice> {
        SlowDevice::new(MemoryDevice::new(64), |blocks| blocks as f64 * WRITE.as_secs_f64())
    }

    #[test]
    fn requests_take_their_turns() {
        let device = slow();
        let start = Instant::now();
        let mut queue = device.queue(8);
        for block in 0..4 {
            queue.push(Request::write(block, AlignedBuf::new(1)));
        }
        queue.submit();
        for number in 1..=4 {
            assert!(queue.next_completion().unwrap().result.is_ok());
            assert!(start.elapsed() >= WRITE * number, "request {number} after {:?}", start.elapsed());
        }
        assert!(queue.next_completion().is_none());
    }

    #[test]
    fn threads_share_one_device() {
        let device = slow();
        let start = Instant::now();
        thread::scope(|scope| {
            for block in 0..5 {
                let device = &device;
                scope.spawn(move || device.write_slice(block, &[1]).unwrap());
            }
        });
        assert!(start.elapsed() >= WRITE * 5, "{:?}", start.elapsed());
    }

    #[test]
    fn reads_discards_and_refused_requests_take_no_turn() {
        let device = slow();
        let free_at = *device.free_at.lock();
        device.read(0, 64).unwrap();
        device.discard(0, 64).unwrap();
        assert!(device.write_slice(64, &[1]).is_err());
        device.flush().unwrap();
        assert_eq!(*device.free_at.lock(), free_at);
    }

    #[test]
    fn reads_and_flushes_take_what_is_asked_for() {
        assert_eq!(slow().with_flushes(Duration::MAX).flushes, Duration::from_secs(3600));
        let device = slow().with_reads(|_| WRITE.as_secs_f64()).with_flushes(WRITE);
        let start = Instant::now();
        device.read(0, 64).unwrap();
        device.flush().unwrap();
        assert!(start.elapsed() >= WRITE * 2);
    }

    #[test]
    fn costs_that_make_no_sense_do_no_harm() {
        for cost in [f64::NAN, -1.0, f64::NEG_INFINITY] {
            assert_eq!(duration(cost), Duration::ZERO, "{cost}");
        }
        assert_eq!(duration(f64::INFINITY), Duration::from_secs(3600));
    }

    #[test]
    fn a_dropped_ticket_leaves_its_requests_done() {
        let device = slow();
        drop(device.submit(vec![Request::write(3, AlignedBuf::from_bytes(b"x"))]));
        assert_eq!(device.inner().read(3, 1).unwrap().as_bytes()[0], b'x');
    }
}
