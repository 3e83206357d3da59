//! Errors between a volume and its device.

use std::{fmt, io};

/// An operation of a device, as errors and fault rules name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Read blocks.
    Read,
    /// Write blocks.
    Write,
    /// Write blocks and make them durable.
    WriteFua,
    /// Give blocks back to the device.
    Discard,
    /// Make all completed writes durable.
    Flush,
    /// Say what zones there are.
    ReportZones,
    /// Open, close, finish or reset a zone.
    ChangeZone,
}

impl Operation {
    /// Whether this changes the device or its durable state (everything but a read and a report).
    #[must_use]
    pub fn changes(self) -> bool {
        !matches!(self, Self::Read | Self::ReportZones)
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::WriteFua => "durable write",
            Self::Discard => "discard",
            Self::Flush => "flush",
            Self::ReportZones => "report of the zones",
            Self::ChangeZone => "change of the zone",
        })
    }
}

/// A failed device operation: the operation, its place, and the cause.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{operation}{}: {kind}", Range(*operation, *start, *blocks))]
#[non_exhaustive]
pub struct DeviceError {
    /// The operation that failed.
    pub operation: Operation,
    /// The first block (0 for a flush).
    pub start: u64,
    /// How many blocks (0 for a flush).
    pub blocks: u64,
    /// Why it failed.
    pub kind: DeviceErrorKind,
}

/// Why a device operation failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceErrorKind {
    /// The range does not lie inside the device. No I/O was done.
    #[error("outside the device, which has {device_blocks} blocks")]
    OutOfRange {
        /// The size of the device in blocks.
        device_blocks: u64,
    },
    /// The operating system or the device refused.
    #[error("{}", describe_io(*errno, *kind))]
    Io {
        /// The error number, where there is one.
        errno: Option<i32>,
        /// The standard library's kind of it.
        kind: io::ErrorKind,
    },
    /// The NVMe device completed the command with this status.
    #[error("{0}")]
    Nvme(crate::NvmeStatus),
    /// The transfer stopped early and could not be continued: the file is shorter than the device was when opened.
    #[error("only {transferred} of {expected} bytes were transferred")]
    ShortTransfer {
        /// Bytes transferred.
        transferred: u64,
        /// Bytes asked for.
        expected: u64,
    },
    /// The block device became smaller while it was open, and the request ends behind its end.
    #[error("the device has only {blocks} blocks now, and had {opened} when it was opened")]
    Shrunk {
        /// Blocks of the device now.
        blocks: u64,
        /// Blocks that it had when it was opened.
        opened: u64,
    },
    /// The device was opened for reading only. No I/O was done.
    #[error("the device is open for reading only")]
    ReadOnly,
    /// A flush (or durable write) failed earlier, so nothing written since the flush before it can be trusted. No I/O
    /// was done.
    #[error("an earlier flush failed ({cause}), no further writes are accepted")]
    Poisoned {
        /// The error of the failed flush.
        cause: Box<DeviceErrorKind>,
    },
    /// The device cannot do this at all (typically a discard).
    #[error("not supported by the device")]
    Unsupported,
    /// The back end never said how the request went: it may have happened or not.
    #[error("the device lost the request")]
    Lost,
    /// The kernel had taken the request when it refused, with this error number, to let anybody ask how it went: it may
    /// have happened or not, or may still happen.
    #[error("nobody knows how the request went: the kernel lets nobody ask any more ({})", io::Error::from_raw_os_error(*errno))]
    Unanswered {
        /// The error number of the refusal.
        errno: i32,
    },
    /// The back end said that the request went well, and gave back other buffers than it was lent.
    #[error("the device gave back other buffers than it was lent")]
    OtherBuffers,
    /// A zone of a zoned device does not do that now. No I/O was done.
    #[error(transparent)]
    Zone(#[from] crate::ZoneError),
    /// A request that makes no sense: a discard with buffers. No I/O was done.
    #[error("malformed request: {reason}")]
    Malformed {
        /// The reason.
        reason: &'static str,
    },
}

/// Where an operation went wrong; a flush has no range.
struct Range(Operation, u64, u64);

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self(Operation::Flush, ..) => Ok(()),
            Self(_, start, blocks) => write!(f, " of {blocks} blocks at block {start}"),
        }
    }
}

fn describe_io(errno: Option<i32>, kind: io::ErrorKind) -> String {
    match errno {
        Some(errno) => io::Error::from_raw_os_error(errno).to_string(),
        None => kind.to_string(),
    }
}

impl DeviceErrorKind {
    /// The kind for error number `errno`.
    #[must_use]
    pub fn from_errno(errno: i32) -> Self {
        Self::Io { errno: Some(errno), kind: io::Error::from_raw_os_error(errno).kind() }
    }
}

impl From<&io::Error> for DeviceErrorKind {
    fn from(error: &io::Error) -> Self {
        Self::Io { errno: error.raw_os_error(), kind: error.kind() }
    }
}

impl DeviceError {
    /// An error of `operation` on `blocks` blocks at `start`.
    #[must_use]
    pub fn new(operation: Operation, start: u64, blocks: u64, kind: DeviceErrorKind) -> Self {
        Self { operation, start, blocks, kind }
    }

    /// An error of a flush.
    #[must_use]
    pub fn flush(kind: DeviceErrorKind) -> Self {
        Self::new(Operation::Flush, 0, 0, kind)
    }
}

impl From<DeviceError> for io::Error {
    fn from(error: DeviceError) -> Self {
        let kind = match &error.kind {
            DeviceErrorKind::Io { kind, .. } => *kind,
            DeviceErrorKind::OutOfRange { .. } | DeviceErrorKind::Zone(_) | DeviceErrorKind::Malformed { .. } => {
                io::ErrorKind::InvalidInput
            }
            DeviceErrorKind::ShortTransfer { .. } | DeviceErrorKind::Shrunk { .. } => io::ErrorKind::UnexpectedEof,
            DeviceErrorKind::ReadOnly => io::ErrorKind::ReadOnlyFilesystem,
            DeviceErrorKind::Unsupported => io::ErrorKind::Unsupported,
            DeviceErrorKind::Nvme(_)
            | DeviceErrorKind::Poisoned { .. }
            | DeviceErrorKind::Lost
            | DeviceErrorKind::Unanswered { .. }
            | DeviceErrorKind::OtherBuffers => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_carry_the_numbers() {
        let error = DeviceError::new(Operation::Read, 90, 20, DeviceErrorKind::OutOfRange { device_blocks: 100 });
        assert_eq!(error.to_string(), "read of 20 blocks at block 90: outside the device, which has 100 blocks");
        let cause = Box::new(DeviceErrorKind::from_errno(5));
        let error = DeviceError::flush(DeviceErrorKind::Poisoned { cause });
        assert!(
            error.to_string().starts_with("flush: an earlier flush failed (Input/output error (os error 5))"),
            "{error}"
        );
        assert_eq!(io::Error::from(error).kind(), io::ErrorKind::Other);
    }
}
