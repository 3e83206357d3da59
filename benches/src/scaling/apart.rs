//! The device of the workloads on files: in memory, and, where a machine is played, no part of it. A device has no lock
//! that the processors could see, and moves data by itself.

use f2fs::device::{
    AlignedBuf, BlockDevice, Claims, Completion, DeviceError, DeviceInfo, MemoryDevice, Request, Ticket,
};

/// A memory device whose lines cost the virtual cores nothing.
#[derive(Debug)]
pub(super) struct Apart(pub(super) MemoryDevice);

#[cfg(f2fs_manycore)]
use f2fs_sync::manycore::apart;

#[cfg(not(f2fs_manycore))]
fn apart<R>(work: impl FnOnce() -> R) -> R {
    work()
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

    fn execute(&self, request: Request) -> Completion {
        apart(|| self.0.execute(request))
    }

    fn read_into(&self, start: u64, buf: &mut AlignedBuf) -> Result<(), DeviceError> {
        apart(|| self.0.read_into(start, buf))
    }
}
