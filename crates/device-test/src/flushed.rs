//! A device that does something behind each flush, before anybody goes on.

use std::fmt;

use f2fs_device::{BlockDevice, Claims, Completion, DeviceError, DeviceInfo, Request, Ticket, Zone, ZoneChange};
use f2fs_sync::PlainArc;

/// A device that passes everything on, and calls a test behind each flush that succeeded, in the thread that flushed.
///
/// It has no locks of its own.
pub struct FlushedDevice {
    inner: PlainArc<dyn BlockDevice>,
    then: Box<dyn Fn() + Send + Sync>,
}

impl fmt::Debug for FlushedDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FlushedDevice").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl FlushedDevice {
    /// Calls `then` behind each flush of `inner`.
    #[must_use]
    pub fn new(inner: PlainArc<dyn BlockDevice>, then: impl Fn() + Send + Sync + 'static) -> FlushedDevice {
        FlushedDevice { inner, then: Box::new(then) }
    }
}

impl BlockDevice for FlushedDevice {
    fn info(&self) -> &DeviceInfo {
        self.inner.info()
    }

    fn claims(&self) -> &Claims {
        self.inner.claims()
    }

    fn submit(&self, requests: Vec<Request>) -> Ticket {
        self.inner.submit(requests)
    }

    fn is_immediate(&self) -> bool {
        self.inner.is_immediate()
    }

    fn execute(&self, request: Request) -> Completion {
        self.inner.execute(request)
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.inner.flush()?;
        (self.then)();
        Ok(())
    }

    fn report_zones(&self, start: u64, count: usize) -> Result<Vec<Zone>, DeviceError> {
        self.inner.report_zones(start, count)
    }

    fn change_zone(&self, start: u64, change: ZoneChange) -> Result<(), DeviceError> {
        self.inner.change_zone(start, change)
    }
}
