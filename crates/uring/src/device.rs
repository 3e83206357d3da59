//! A file or block device behind rings, or behind system calls where rings are forbidden.
//!
//! No locks of its own.

use std::{os::fd::BorrowedFd, path::Path};

use f2fs_device::{
    AlignedBuf, BLOCK_SIZE, BlockDevice, Claims, Completion, DeviceError, DeviceInfo, IoQueue, Operation, Request,
    Ticket, TicketQueue, Zone, ZoneChange,
};
use f2fs_sync::PlainArc;

use crate::{
    Engine, OpenError, OpenOptions,
    target::Target,
    traffic::{Traffic, first_ring, try_polling},
};

/// An open file or block device.
///
/// It is one writer's or many readers', across processes: see [`OpenError::AlreadyOpen`]. Dropping it waits for all
/// requests in flight, also those whose tickets were dropped.
#[derive(Debug)]
pub struct UringDevice {
    traffic: Traffic<Target>,
    claims: Claims,
}

impl UringDevice {
    /// Opens a regular file or block device.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(path: impl AsRef<Path>, options: OpenOptions) -> Result<PlainArc<Self>, OpenError> {
        let path = path.as_ref();
        Self::with_target(path, Target::open(path, options)?, options)
    }

    /// Creates a sparse file of `bytes` bytes, which must not exist yet, and opens it (for writing too, whatever the
    /// options say).
    ///
    /// # Errors
    /// See [`OpenError`]; a size that cannot be leaves no file behind.
    pub fn create(path: impl AsRef<Path>, bytes: u64, options: OpenOptions) -> Result<PlainArc<Self>, OpenError> {
        let path = path.as_ref();
        let options = options.read_only(false);
        Self::with_target(path, Target::create(path, bytes, options)?, options)
    }

    fn with_target(path: &Path, mut target: Target, options: OpenOptions) -> Result<PlainArc<Self>, OpenError> {
        let ring = match options.engine {
            Engine::Auto if target.copies() => Err("persistent memory".to_owned()),
            engine => first_ring(&target, engine),
        };
        let ring = match ring {
            Ok(ring) => Some(ring),
            Err(reason) if options.engine == Engine::IoUring => {
                return Err(OpenError::NoIoUring { path: path.into(), reason });
            }
            Err(reason) => {
                target.describe(&format!("preadv/pwritev ({reason})"), path);
                None
            }
        };
        let polling = options.polling;
        if polling.completions && !target.can_poll() {
            let reason = "the device has no queues that are polled, or its transfers are not direct".into();
            return Err(OpenError::NoPolling { path: path.into(), reason });
        }
        try_polling(&target, ring.is_some(), polling)
            .map_err(|reason| OpenError::NoPolling { path: path.into(), reason })?;
        if ring.is_some() {
            target.describe(polling.name(), path);
        }
        Ok(PlainArc::new(Self { traffic: Traffic::new(target, ring, polling), claims: Claims::new() }))
    }

    fn target(&self) -> &Target {
        self.traffic.carrier()
    }

    /// Whether requests go through `io_uring` rather than `preadv` and `pwritev`, as far as the kernel lets them.
    #[must_use]
    pub fn uses_io_uring(&self) -> bool {
        self.traffic.has_rings()
    }

    /// Whether transfers bypass the page cache.
    #[must_use]
    pub fn is_direct(&self) -> bool {
        self.target().is_direct()
    }
}

impl BlockDevice for UringDevice {
    fn info(&self) -> &DeviceInfo {
        self.target().info()
    }

    fn claims(&self) -> &Claims {
        &self.claims
    }

    fn submit(&self, requests: Vec<Request>) -> Ticket {
        self.traffic.submit(requests)
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.target().flush()
    }

    fn report_zones(&self, start: u64, count: usize) -> Result<Vec<Zone>, DeviceError> {
        self.target().report_zones(start, count)
    }

    fn change_zone(&self, start: u64, change: ZoneChange) -> Result<(), DeviceError> {
        self.target().change_zone(start, change)
    }

    /// By a system call even where there are rings. The thread waits for this one request: a ring would submit it with
    /// one entry to the kernel too, but completes it by work for this thread, and hands it to a worker thread where the
    /// device cannot take it without waiting (persistent memory): two changes of threads for each request.
    fn execute(&self, request: Request) -> Completion {
        self.traffic.call(request)
    }

    /// Without a request: it allocates nothing and takes no lock.
    fn read_into(&self, start: u64, buf: &mut AlignedBuf) -> Result<(), DeviceError> {
        let blocks = buf.blocks() as u64;
        self.target().admit_blocks(Operation::Read, start, blocks)?;
        self.target().read_bytes(start * BLOCK_SIZE as u64, buf.as_bytes_mut()).map_err(|kind| {
            DeviceError::new(Operation::Read, start, blocks, self.target().explain(start, blocks, kind))
        })
    }

    /// The same.
    fn write_from(&self, start: u64, buf: &mut AlignedBuf) -> Result<(), DeviceError> {
        let blocks = buf.blocks() as u64;
        self.target().admit_blocks(Operation::Write, start, blocks)?;
        self.target().write_bytes(start * BLOCK_SIZE as u64, buf.as_bytes()).map_err(|kind| {
            DeviceError::new(Operation::Write, start, blocks, self.target().explain(start, blocks, kind))
        })
    }

    fn queue(&self, depth: usize) -> Box<dyn IoQueue + '_> {
        match self.traffic.queue(depth) {
            Some(queue) => Box::new(queue),
            None => Box::new(TicketQueue::new(self, depth)),
        }
    }

    fn is_immediate(&self) -> bool {
        !self.traffic.has_rings()
    }

    fn file(&self, operation: Operation) -> Option<BorrowedFd<'_>> {
        if self.traffic.has_rings() { self.target().file(operation) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use f2fs_device::DeviceErrorKind;

    use super::*;

    #[test]
    fn a_file_is_there_for_whoever_may_transfer() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("device");
        let device = UringDevice::create(&path, 1 << 20, OpenOptions::new().engine(Engine::Syscalls)).unwrap();
        assert!(device.file(Operation::Read).is_none() && device.is_immediate(), "without rings it is a call");
        drop(device);
        let device = UringDevice::open(&path, OpenOptions::new().read_only(true)).unwrap();
        if !device.uses_io_uring() {
            return eprintln!("NOT RUN: the file of a device with rings: io_uring is not available");
        }
        assert!(device.file(Operation::Read).is_some() && device.file(Operation::Write).is_none());
        drop(device);
        let device = UringDevice::open(&path, OpenOptions::new()).unwrap();
        assert!(!device.is_immediate());
        for (operation, has_file) in [
            (Operation::Read, true),
            (Operation::Write, true),
            (Operation::WriteFua, false),
            (Operation::Discard, false),
            (Operation::Flush, false),
        ] {
            assert_eq!(device.file(operation).is_some(), has_file, "{operation}");
        }
        // As a durable write that fails does it.
        device.target().failed(&Request::write_fua(0, AlignedBuf::new(1)), DeviceErrorKind::from_errno(5));
        assert!(device.file(Operation::Write).is_none(), "a poisoned device takes no writes");
        assert!(device.file(Operation::Read).is_some());
    }
}
