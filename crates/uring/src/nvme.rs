//! An NVMe namespace by its own commands.
//!
//! No locks of its own.

mod command;
mod durability;
mod identify;
mod namespace;
mod place;

use std::path::Path;

use f2fs_device::{BlockDevice, Claims, Completion, DeviceError, DeviceInfo, IoQueue, Request, Ticket, TicketQueue};
use f2fs_sync::PlainArc;

use self::namespace::Namespace;
use crate::traffic::{Traffic, first_ring, try_polling};
use crate::{Engine, OpenError, OpenOptions, UringDevice};

/// Opens a device by its path with the back end that it needs: the character device of an NVMe namespace as
/// [`NvmeDevice`], a regular file or block device as [`UringDevice`].
///
/// # Errors
/// See [`OpenError`].
pub fn open(path: impl AsRef<Path>, options: OpenOptions) -> Result<PlainArc<dyn BlockDevice>, OpenError> {
    let path = path.as_ref();
    if NvmeDevice::is_at(path) {
        return Ok(NvmeDevice::open(path, options)?);
    }
    Ok(UringDevice::open(path, options)?)
}

/// An NVMe namespace, opened by its character device, such as `/dev/ng0n1`, and driven by its own commands: read,
/// write, flush, deallocate, write zeroes. They go past the kernel's block layer (`IORING_OP_URING_CMD`,
/// "pass-through"; Linux 5.19), on rings, and one at a time by an ioctl.
///
/// A flush is sent, and durable writes ask for it, only where the controller has a volatile cache. A status of the
/// device is the error [`Nvme`](f2fs_device::DeviceErrorKind::Nvme). A command is sent again, a few times, where the
/// device or the kernel says that it was not carried out and that this passes; the kernel itself tries nothing again.
/// Transfers larger than a command takes are several, one after the other.
///
/// # Who else is kept out
/// The character device cannot be claimed, so the namespace's block device is, as [`UringDevice`] claims it: that keeps
/// out mounts, other openers of this crate by either path, and programs that open the block device with `O_EXCL`.
/// Programs that send commands without a claim are not kept out (`nvme format`), nor are other hosts, nor other
/// namespaces of a controller that share its media. Where the kernel shows no block device the lock on the character
/// device is all there is; `info().description` says so.
#[derive(Debug)]
pub struct NvmeDevice {
    traffic: Traffic<Namespace>,
    claims: Claims,
}

impl NvmeDevice {
    /// Whether a path leads to the character device of an NVMe namespace.
    #[must_use]
    pub fn is_at(path: impl AsRef<Path>) -> bool {
        place::is_namespace(path.as_ref())
    }

    /// Opens a namespace by its character device. [`OpenOptions::direct`] means nothing here: commands have no page
    /// cache.
    ///
    /// # Errors
    /// See [`OpenError`]; [`Namespace`](OpenError::Namespace) for one whose sectors or command set do not suit.
    pub fn open(path: impl AsRef<Path>, options: OpenOptions) -> Result<PlainArc<Self>, OpenError> {
        let path = path.as_ref();
        if !Self::is_at(path) {
            rustix::fs::stat(path).map_err(|errno| OpenError::Io {
                path: path.into(),
                call: "stat",
                source: errno.into(),
            })?;
            let reason = "is not the character device of an NVMe namespace".into();
            return Err(OpenError::Namespace { path: path.into(), reason });
        }
        let mut namespace = Namespace::open(path, options)?;
        let polling = options.polling;
        let refuse = |reason: String| OpenError::NoPolling { path: path.into(), reason };
        if polling.completions && !namespace.can_poll() {
            return Err(refuse("the device has no queues that are polled".into()));
        }
        let ring = match first_ring(&namespace, options.engine) {
            Ok(ring) => Some(ring),
            Err(reason) if options.engine == Engine::IoUring => {
                return Err(OpenError::NoIoUring { path: path.into(), reason });
            }
            Err(reason) => {
                namespace.describe(&format!("ioctl ({reason})"), path);
                None
            }
        };
        try_polling(&namespace, ring.is_some(), polling).map_err(refuse)?;
        if ring.is_some() {
            namespace.describe(polling.name(), path);
        }
        Ok(PlainArc::new(Self { traffic: Traffic::new(namespace, ring, polling), claims: Claims::new() }))
    }

    /// Whether batches and queues go through `io_uring` rather than by one ioctl after the other, as far as the kernel
    /// lets them.
    #[must_use]
    pub fn uses_io_uring(&self) -> bool {
        self.traffic.has_rings()
    }

    /// Whether the controller has a volatile cache, so that a flush is a command.
    #[must_use]
    pub fn has_volatile_cache(&self) -> bool {
        self.traffic.carrier().facts().volatile_cache
    }

    /// Bytes of the largest transfer of one command, a multiple of 4096.
    #[must_use]
    pub fn transfer_bytes(&self) -> u64 {
        self.traffic.carrier().facts().transfer
    }

    /// Makes `blocks` blocks from `start` read as zeros, without a transfer. They are as durable as other writes.
    ///
    /// # Errors
    /// Errors of a write; [`Unsupported`](f2fs_device::DeviceErrorKind::Unsupported) where the controller lacks the
    /// command.
    pub fn write_zeroes(&self, start: u64, blocks: u64) -> Result<(), DeviceError> {
        self.traffic.carrier().write_zeroes(start, blocks)
    }
}

impl BlockDevice for NvmeDevice {
    fn info(&self) -> &DeviceInfo {
        self.traffic.carrier().info()
    }

    fn claims(&self) -> &Claims {
        &self.claims
    }

    fn submit(&self, requests: Vec<Request>) -> Ticket {
        self.traffic.submit(requests)
    }

    fn flush(&self) -> Result<(), DeviceError> {
        self.traffic.carrier().flush()
    }

    /// By an ioctl even where there are rings, for the reason that [`UringDevice`] has.
    fn execute(&self, request: Request) -> Completion {
        self.traffic.call(request)
    }

    fn queue(&self, depth: usize) -> Box<dyn IoQueue + '_> {
        match self.traffic.queue(depth) {
            Some(queue) => Box::new(queue),
            None => Box::new(TicketQueue::new(self, depth)),
        }
    }
}
