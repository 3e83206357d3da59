//! The device of the workloads on files: memory without a lock that the processors could see, as a device has none.
//!
//! Where a machine is played, it is no part of it, and moves data by itself. Where threads are measured, its memory is
//! used again from volume to volume, and was written before: what the system takes to give memory to a process is no
//! part of a device.

use f2fs::device::{AlignedBuf, BlockDevice, Claims, Completion, DeviceError, DeviceInfo, Request, Ticket};
use f2fs::pmem::{MemoryRegion, PersistentRegion, PmemDevice};
use f2fs_sync::PlainArc;

type Memory = PmemDevice<MemoryRegion>;

/// A device whose lines cost the virtual cores nothing.
#[derive(Debug)]
pub(super) struct Apart(PlainArc<Memory>);

#[cfg(f2fs_manycore)]
use f2fs_sync::manycore::apart;

#[cfg(not(f2fs_manycore))]
fn apart<R>(work: impl FnOnce() -> R) -> R {
    work()
}

/// Devices that were used, and are not now. Where a machine is played, each is made anew.
static UNUSED: std::sync::Mutex<Vec<PlainArc<Memory>>> = std::sync::Mutex::new(Vec::new());

impl Apart {
    /// A device of so many bytes, with anything on it.
    ///
    /// # Panics
    /// If there is not so much memory.
    pub(super) fn new(bytes: usize) -> Apart {
        let mut unused = UNUSED.lock().expect("nobody panics with it");
        let fits = unused.iter().position(|memory| memory.region().len() == bytes);
        let used = fits.map(|at| unused.swap_remove(at));
        drop(unused);
        Apart(used.unwrap_or_else(|| {
            let region = MemoryRegion::new(bytes).expect("there is so much memory");
            if cfg!(not(f2fs_manycore)) {
                touch(&region);
            }
            PlainArc::new(PmemDevice::new(region))
        }))
    }
}

/// Writes all of it, by several threads.
fn touch(region: &MemoryRegion) {
    const PART: usize = 64 << 20;
    std::thread::scope(|scope| {
        for start in (0..region.len()).step_by(PART) {
            let end = region.len().min(start + PART);
            scope.spawn(move || {
                for at in (start..end).step_by(4096) {
                    region.store(at, &[1]).expect("it is inside");
                }
            });
        }
    });
}

impl Drop for Apart {
    fn drop(&mut self) {
        if cfg!(not(f2fs_manycore))
            && let Ok(mut unused) = UNUSED.lock()
        {
            unused.push(self.0.clone());
        }
    }
}

impl BlockDevice for Apart {
    fn info(&self) -> &DeviceInfo {
        self.0.info()
    }

    fn claims(&self) -> &Claims {
        self.0.claims()
    }

    fn submit(&self, requests: Vec<Request>) -> Ticket {
        Ticket::ready(requests.into_iter().map(|request| self.execute(request)).collect())
    }

    fn flush(&self) -> Result<(), DeviceError> {
        apart(|| self.0.flush())
    }

    fn is_immediate(&self) -> bool {
        self.0.is_immediate()
    }

    fn flushes_at_once(&self) -> bool {
        self.0.flushes_at_once()
    }

    fn execute(&self, request: Request) -> Completion {
        apart(|| self.0.execute(request))
    }

    fn read_into(&self, start: u64, buf: &mut AlignedBuf) -> Result<(), DeviceError> {
        apart(|| self.0.read_into(start, buf))
    }
}
