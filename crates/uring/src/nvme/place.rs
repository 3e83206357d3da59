//! Where a namespace's character device stands in the system: whether a path is one, and its block device, which is
//! claimed beside it.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::lock::until_free;
use crate::{OpenError, OpenOptions, sysfs};

/// The name that the kernel gives the character device with this number, if it is one of an NVMe namespace, such as
/// `ng0n1`.
fn name(rdev: u64) -> Option<String> {
    let at = format!("/sys/dev/char/{}:{}", rustix::fs::major(rdev), rustix::fs::minor(rdev));
    let class = fs::canonicalize(format!("{at}/subsystem")).ok()?;
    if class.file_name()? != "nvme-generic" {
        return None;
    }
    let event = fs::read_to_string(format!("{at}/uevent")).ok()?;
    event.lines().find_map(|line| line.strip_prefix("DEVNAME=")).map(str::to_owned)
}

/// Whether a path leads to the character device of an NVMe namespace, such as `/dev/ng0n1`.
pub(super) fn is_namespace(path: &Path) -> bool {
    let Ok(stat) = rustix::fs::stat(path) else { return false };
    FileType::from_raw_mode(stat.st_mode).is_char_device() && name(stat.st_rdev).is_some()
}

/// The block device of the same namespace.
#[derive(Debug)]
pub(super) struct Sibling {
    path: PathBuf,
    rdev: u64,
}

impl Sibling {
    /// The one of the character device with this number; `None` if the kernel shows none: it knows no block device for
    /// the namespace, or its path is another one here.
    pub(super) fn of(rdev: u64) -> Option<Self> {
        let path = Path::new("/dev").join(format!("nvme{}", name(rdev)?.strip_prefix("ng")?));
        let stat = rustix::fs::stat(&path).ok()?;
        FileType::from_raw_mode(stat.st_mode).is_block_device().then_some(Self { path, rdev: stat.st_rdev })
    }

    /// Bytes that the kernel takes for one request to the namespace, with any memory.
    pub(super) fn transfer(&self) -> Option<u64> {
        const PAGE: u64 = 4096;
        let bytes = sysfs::queue_limit(self.rdev, "max_hw_sectors_kb")?.checked_mul(1024)?;
        // Pages of memory need not follow each other.
        let pages = sysfs::queue_limit(self.rdev, "max_segments")?.checked_mul(PAGE)?;
        Some(bytes.min(pages))
    }

    /// Whether the namespace has queues that are polled.
    pub(super) fn can_poll(&self) -> bool {
        sysfs::queue_limit(self.rdev, "io_poll") == Some(1)
    }

    /// Claims it as [`UringDevice`](crate::UringDevice) would: against mounts, and against all who lock it. The claim
    /// ends with the descriptor.
    pub(super) fn claim(&self, options: OpenOptions) -> Result<OwnedFd, OpenError> {
        let (access, lock) = match options.read_only {
            true => (OFlags::RDONLY, FlockOperation::NonBlockingLockShared),
            false => (OFlags::RDWR | OFlags::EXCL, FlockOperation::NonBlockingLockExclusive),
        };
        let path = &self.path;
        let fd = until_free(path, ("open", Errno::BUSY), true, options.patience, || {
            rustix::fs::open(path, access | OFlags::CLOEXEC, Mode::empty())
        })?;
        until_free(path, ("flock", Errno::WOULDBLOCK), true, options.patience, || rustix::fs::flock(&fd, lock))?;
        Ok(fd)
    }
}
