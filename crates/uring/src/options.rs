//! Options of opening a device, and the errors of it.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::Holder;

/// Whether transfers bypass the page cache (`O_DIRECT`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Direct {
    /// Where the file system can; `info().description` tells.
    #[default]
    Auto,
    /// Or fail with [`OpenError::DirectRefused`].
    Required,
    /// Never; transfers go through the page cache. A device with zones that is opened for writing has direct transfers
    /// all the same, because the page cache keeps no order.
    Off,
}

/// How requests reach the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Engine {
    /// `io_uring` where it is allowed, else system calls; `info().description` tells which and why. Where it is
    /// forbidden after the device was opened, system calls go on from there, whichever engine was chosen. Persistent
    /// memory gets system calls where a ring would only hand its requests to worker threads. The environment variable
    /// `F2FS_NO_IO_URING`, set to anything but `0` or nothing, chooses system calls.
    #[default]
    Auto,
    /// `io_uring`, or fail with [`OpenError::NoIoUring`].
    IoUring,
    /// `preadv` and `pwritev`, one request after the other.
    Syscalls,
}

/// How to open a file or block device.
///
/// ```
/// use f2fs_uring::{Direct, OpenOptions};
///
/// let options = OpenOptions::new().read_only(true).direct(Direct::Off);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct OpenOptions {
    pub(crate) read_only: bool,
    pub(crate) direct: Direct,
    pub(crate) engine: Engine,
    pub(crate) patience: Duration,
    pub(crate) polling: Polling,
    pub(crate) command_timeout: Duration,
}

/// How the rings of queues and the kernel learn of each other's work, other than by system calls and interrupts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Polling {
    /// The thread that waits looks for completions (`IORING_SETUP_IOPOLL`).
    pub(crate) completions: bool,
    /// A thread of the kernel looks for submissions, and sleeps after so long without one (`IORING_SETUP_SQPOLL`).
    pub(crate) submissions: Option<Duration>,
}

impl Polling {
    /// The name of the engine.
    pub(crate) fn name(self) -> &'static str {
        match (self.completions, self.submissions.is_some()) {
            (false, false) => "io_uring",
            (true, false) => "io_uring with IOPOLL",
            (false, true) => "io_uring with SQPOLL",
            (true, true) => "io_uring with IOPOLL and SQPOLL",
        }
    }
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            read_only: false,
            direct: Direct::default(),
            engine: Engine::default(),
            patience: Duration::from_secs(10),
            polling: Polling::default(),
            command_timeout: Duration::ZERO,
        }
    }
}

impl OpenOptions {
    /// For reading and writing, direct where possible, through `io_uring` where possible.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether to open for reading only, next to other readers.
    #[must_use]
    pub fn read_only(self, read_only: bool) -> Self {
        Self { read_only, ..self }
    }

    /// Whether to bypass the page cache.
    #[must_use]
    pub fn direct(self, direct: Direct) -> Self {
        Self { direct, ..self }
    }

    /// How requests reach the kernel.
    #[must_use]
    pub fn engine(self, engine: Engine) -> Self {
        Self { engine, ..self }
    }

    /// How long to wait for the last requests of a process that died with the file open; 10 seconds by default. The
    /// kernel finishes them after the process is gone, and until then nobody else may write. A process that lives is
    /// not waited for, where it can be told: it cannot for one in another PID namespace.
    #[must_use]
    pub fn patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Whether the queues of the device look for completions themselves instead of waiting for the device's interrupt
    /// (`IORING_SETUP_IOPOLL`); no by default. It saves the time of an interrupt for each completion, and costs a
    /// processor while a thread waits. The device must be a block device or NVMe namespace with queues for it (for
    /// NVMe: the parameter `poll_queues` of the kernel's module `nvme`), else opening fails with
    /// [`OpenError::NoPolling`].
    #[must_use]
    pub fn io_poll(self, io_poll: bool) -> Self {
        Self { polling: Polling { completions: io_poll, ..self.polling }, ..self }
    }

    /// Whether a thread of the kernel takes the requests of each queue (`IORING_SETUP_SQPOLL`), so that submitting
    /// needs no system call; it sleeps after so long without a request. No by default: each queue then has a busy
    /// thread of the kernel, which pays only where processors are idle.
    #[must_use]
    pub fn sq_poll(self, idle: Option<Duration>) -> Self {
        Self { polling: Polling { submissions: idle, ..self.polling }, ..self }
    }

    /// How long an NVMe command may take before the kernel gives it up and it fails, for
    /// [`NvmeDevice`](crate::NvmeDevice); zero, the default, stands for the kernel's own limit (`nvme_core.io_timeout`,
    /// 30 seconds).
    #[must_use]
    pub fn command_timeout(self, command_timeout: Duration) -> Self {
        Self { command_timeout, ..self }
    }
}

/// Why a device could not be opened or created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Somebody (this process or another) has it open for writing, or has it open at all and writing was asked for.
    #[error("{}: in use by {}", .path.display(), by(.holder.as_ref()))]
    AlreadyOpen {
        /// The path.
        path: PathBuf,
        /// By whom, as far as that is known: not for a mount, nor for a process in another PID namespace.
        holder: Option<Holder>,
    },
    /// It is among the devices of the same volume already. See [`each_once`](crate::each_once()).
    #[error("{}: is given twice", .path.display())]
    Twice {
        /// The later path.
        path: PathBuf,
    },
    /// A file with a loop device on it that is mounted, where writing was asked for.
    #[error("{}: mounted by way of {}", .path.display(), .through.display())]
    Mounted {
        /// The path.
        path: PathBuf,
        /// The loop device.
        through: PathBuf,
    },
    /// A block device that can only be read, where writing was asked for.
    #[error("{}: the device is read-only", .path.display())]
    ReadOnly {
        /// The path.
        path: PathBuf,
    },
    /// Neither a regular file nor a block device.
    #[error("{}: is a {kind}, not a regular file or block device", .path.display())]
    NotADevice {
        /// The path.
        path: PathBuf,
        /// Its kind.
        kind: &'static str,
    },
    /// Smaller than one block of 4096 bytes.
    #[error("{}: {bytes} bytes is less than one block of 4096", .path.display())]
    TooSmall {
        /// The path.
        path: PathBuf,
        /// Its size.
        bytes: u64,
    },
    /// [`Direct::Required`] where the file system cannot.
    #[error("{}: direct transfers are refused: {reason}", .path.display())]
    DirectRefused {
        /// The path.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A zoned block device with zones that are not made of whole blocks.
    #[error("{}: {source}", .path.display())]
    Zones {
        /// The path.
        path: PathBuf,
        /// The contradiction in them.
        source: f2fs_device::ZoneError,
    },
    /// [`Engine::IoUring`] where it is not allowed or not there.
    #[error("{}: io_uring is not available: {reason}", .path.display())]
    NoIoUring {
        /// The path.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// [`OpenOptions::io_poll`] or [`OpenOptions::sq_poll`] where that cannot be.
    #[error("{}: polling is not available: {reason}", .path.display())]
    NoPolling {
        /// The path.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// An NVMe namespace that cannot carry a volume.
    #[error("{}: {reason}", .path.display())]
    Namespace {
        /// The path.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A system call failed.
    #[error("{}: {call}: {source}", .path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The call.
        call: &'static str,
        /// The system's error.
        source: io::Error,
    },
}

fn by(holder: Option<&Holder>) -> String {
    holder.map_or_else(|| "another process, or mounted".to_owned(), Holder::to_string)
}

impl OpenError {
    /// The path that could not be opened. The text of the error begins with it, followed by a colon and a space.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::AlreadyOpen { path, .. }
            | Self::Twice { path }
            | Self::Mounted { path, .. }
            | Self::ReadOnly { path }
            | Self::NotADevice { path, .. }
            | Self::TooSmall { path, .. }
            | Self::DirectRefused { path, .. }
            | Self::Zones { path, .. }
            | Self::NoIoUring { path, .. }
            | Self::NoPolling { path, .. }
            | Self::Namespace { path, .. }
            | Self::Io { path, .. } => path,
        }
    }

    /// The standard library's kind of it.
    #[must_use]
    pub fn io_kind(&self) -> io::ErrorKind {
        match self {
            Self::AlreadyOpen { .. } | Self::Mounted { .. } => io::ErrorKind::ResourceBusy,
            Self::ReadOnly { .. } => io::ErrorKind::ReadOnlyFilesystem,
            Self::NotADevice { .. } | Self::TooSmall { .. } | Self::Twice { .. } => io::ErrorKind::InvalidInput,
            Self::DirectRefused { .. }
            | Self::NoIoUring { .. }
            | Self::NoPolling { .. }
            | Self::Namespace { .. }
            | Self::Zones { .. } => io::ErrorKind::Unsupported,
            Self::Io { source, .. } => source.kind(),
        }
    }
}

impl From<OpenError> for io::Error {
    fn from(error: OpenError) -> Self {
        Self::new(error.io_kind(), error)
    }
}
