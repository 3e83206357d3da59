//! A device whose requests are on their way until somebody waits for them, for models and scenarios.

use std::collections::VecDeque;

use f2fs_device::{
    BlockDevice, Claims, Completion, DeviceError, DeviceInfo, Pending, Request, Ticket, Zone, ZoneChange,
};
use f2fs_sync::PlainArc;

/// A device whose requests happen when somebody waits for them: the latest moment that a device may choose.
#[derive(Debug)]
pub struct LateDevice(PlainArc<dyn BlockDevice>);

impl LateDevice {
    /// Requests to `inner` are late.
    #[must_use]
    pub fn new(inner: PlainArc<dyn BlockDevice>) -> LateDevice {
        LateDevice(inner)
    }
}

#[derive(Debug)]
struct OnTheirWay {
    device: PlainArc<dyn BlockDevice>,
    requests: Vec<Request>,
}

impl Pending for OnTheirWay {
    fn collect(&mut self, block: bool, out: &mut VecDeque<(usize, Completion)>) {
        if block {
            pause();
            let done = self.requests.drain(..).map(|request| self.device.execute(request));
            out.extend(done.enumerate());
        }
    }
}

impl Drop for OnTheirWay {
    fn drop(&mut self) {
        self.requests.drain(..).for_each(|request| drop(self.device.execute(request)));
    }
}

impl BlockDevice for LateDevice {
    fn info(&self) -> &DeviceInfo {
        self.0.info()
    }

    fn claims(&self) -> &Claims {
        self.0.claims()
    }

    fn submit(&self, requests: Vec<Request>) -> Ticket {
        let (device, total) = (PlainArc::clone(&self.0), requests.len());
        Ticket::pending(total, Vec::new(), Box::new(OnTheirWay { device, requests }))
    }

    fn flush(&self) -> Result<(), DeviceError> {
        pause();
        self.0.flush()
    }

    fn report_zones(&self, start: u64, count: usize) -> Result<Vec<Zone>, DeviceError> {
        self.0.report_zones(start, count)
    }

    fn change_zone(&self, start: u64, change: ZoneChange) -> Result<(), DeviceError> {
        self.0.change_zone(start, change)
    }

    fn execute(&self, request: Request) -> Completion {
        pause();
        self.0.execute(request)
    }
}

/// Another thread may go on here. Models need no such hint: they look at all orders.
fn pause() {
    #[cfg(shuttle)]
    f2fs_sync::thread::yield_now();
}
