//! A device whose requests take their time, and end in any order.

use std::collections::VecDeque;
use std::thread;
use std::time::Duration;

use f2fs_device::{
    BlockDevice, Claims, Completion, DeviceError, DeviceInfo, Op, Pending, Request, Ticket, Zone, ZoneChange,
};
use f2fs_sync::PlainArc;
use f2fs_sync::atomic::{AtomicU64, Ordering};

use crate::Random;

/// A device whose requests are done by a thread each: some at once, some after a while, whatever was sent before them.
///
/// The times are real ones, so that two runs of a seed differ: it is for tests that many threads run on, not for those
/// that repeat a schedule ([`LateDevice`](crate::LateDevice) is made for these).
#[derive(Debug)]
pub struct UnorderedDevice {
    inner: PlainArc<dyn BlockDevice>,
    seed: u64,
    sent: AtomicU64,
}

/// A write in sixteen takes less than this (microseconds).
const LATE: u64 = 30_000;
/// The others, and reads, take less than this.
const SOON: u64 = 100;

impl UnorderedDevice {
    /// Requests to `inner` end in any order; the seed says which are late.
    #[must_use]
    pub fn new(inner: PlainArc<dyn BlockDevice>, seed: u64) -> UnorderedDevice {
        UnorderedDevice { inner, seed, sent: AtomicU64::new(0) }
    }

    /// How long the next request takes.
    fn delay(&self, op: Op) -> Duration {
        let number = self.sent.fetch_add(1, Ordering::Relaxed);
        let mut random = Random::new(self.seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let most = if op == Op::Write && random.chance(16) { LATE } else { SOON };
        Duration::from_micros(random.below_u64(most))
    }
}

/// Requests of one call, each with the thread that does it.
#[derive(Debug)]
struct UnderWay(VecDeque<(usize, thread::JoinHandle<Completion>)>);

impl Pending for UnderWay {
    fn collect(&mut self, block: bool, out: &mut VecDeque<(usize, Completion)>) {
        while let Some((_, thread)) = self.0.front()
            && (block && out.is_empty() || thread.is_finished())
        {
            let Some((number, thread)) = self.0.pop_front() else { return };
            match thread.join() {
                Ok(completion) => out.push_back((number, completion)),
                // What the device below does wrong is its caller's to see.
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    }
}

impl BlockDevice for UnorderedDevice {
    fn info(&self) -> &DeviceInfo {
        self.inner.info()
    }

    fn claims(&self) -> &Claims {
        self.inner.claims()
    }

    fn submit(&self, requests: Vec<Request>) -> Ticket {
        let total = requests.len();
        let start = |(number, request): (usize, Request)| {
            let (device, delay) = (PlainArc::clone(&self.inner), self.delay(request.op));
            let work = move || {
                thread::sleep(delay);
                device.execute(request)
            };
            (number, thread::spawn(work))
        };
        let under_way = requests.into_iter().enumerate().map(start).collect();
        Ticket::pending(total, Vec::new(), Box::new(UnderWay(under_way)))
    }

    fn flush(&self) -> Result<(), DeviceError> {
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
    use f2fs_device::{BLOCK_SIZE, MemoryDevice};

    #[test]
    fn all_requests_end_and_do_what_they_say() {
        let memory = PlainArc::new(MemoryDevice::new(64));
        let device = UnorderedDevice::new(memory.clone(), 3);
        let mut block = f2fs_device::AlignedBuf::new(1);
        let writes = (0..64).map(|start| {
            block.as_bytes_mut().fill(start as u8);
            Request::write(start, block.clone())
        });
        let ticket = device.submit(writes.collect());
        assert_eq!(ticket.wait().into_iter().filter(|one| one.result.is_ok()).count(), 64);
        assert!((0..64).all(|start| memory.block(start).0 == [start as u8; BLOCK_SIZE]));
        let delays: Vec<Duration> = (0..200).map(|_| device.delay(Op::Write)).collect();
        let late = |delay: &Duration| *delay >= Duration::from_micros(SOON);
        assert!((2..50).contains(&delays.iter().filter(|delay| late(delay)).count()));
        assert!(!(0..200).any(|_| late(&device.delay(Op::Read))));
    }
}
