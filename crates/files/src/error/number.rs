//! The error number that Linux gives for the same failure, and the standard library's error.

use std::io;

use f2fs_device::{DeviceError, DeviceErrorKind};
use f2fs_format::FormatError;
use f2fs_volume::VolumeError;
use rustix::io::Errno;

use super::FsError;

impl FsError {
    /// The error number that Linux gives where an operation fails for this reason, such as 2 (`ENOENT`). The device's
    /// own number where the device failed and has one.
    #[must_use]
    pub fn raw_os_error(&self) -> i32 {
        number(self).raw_os_error()
    }

    /// The standard library's kind of the error.
    #[must_use]
    pub fn kind(&self) -> io::ErrorKind {
        match self {
            // As for a block that is bad on the device: no number has a kind for it.
            error if error.is_corruption() => io::ErrorKind::InvalidData,
            error => io::Error::from(number(error)).kind(),
        }
    }
}

/// The kind is [`FsError::kind`]'s, and the error itself stays inside: `error.downcast::<FsError>()` brings it back.
impl From<FsError> for io::Error {
    fn from(error: FsError) -> io::Error {
        io::Error::new(error.kind(), error)
    }
}

/// Whether the contents of the volume contradict each other: `EUCLEAN`, the kernel's `EFSCORRUPTED`.
pub(super) fn of_corruption(error: &FsError) -> bool {
    number(error) == Errno::UCLEAN
}

fn number(error: &FsError) -> Errno {
    match error {
        FsError::NotFound | FsError::NoTarget => Errno::NOENT,
        FsError::Exists => Errno::EXIST,
        FsError::NotDirectory => Errno::NOTDIR,
        FsError::IsDirectory => Errno::ISDIR,
        FsError::DirectoryLink => Errno::PERM,
        FsError::NotEmpty => Errno::NOTEMPTY,
        FsError::Busy => Errno::BUSY,
        FsError::Name(FormatError::Name { len: 256.., .. }) => Errno::NAMETOOLONG,
        FsError::BadEntry(_) => Errno::UCLEAN,
        FsError::Loop { .. } => Errno::LOOP,
        FsError::TooManyLinks { .. } => Errno::MLINK,
        FsError::FileTooLarge { .. } => Errno::FBIG,
        FsError::LinkTarget { len: 0, .. } => Errno::NOENT,
        FsError::LinkTarget { len, limit, .. } if len > limit => Errno::NAMETOOLONG,
        FsError::NoAttribute => Errno::NODATA,
        FsError::Attribute { why, .. } => why.number(),
        FsError::NoRoomForJournal { .. } => Errno::NOSPC,
        FsError::Encrypted { .. } => Errno::NOKEY,
        FsError::Compressed { .. } | FsError::Unsupported { .. } => Errno::OPNOTSUPP,
        FsError::Name(_)
        | FsError::IntoItself
        | FsError::LinkTarget { .. }
        | FsError::Time { .. }
        | FsError::DeviceNumber { .. }
        | FsError::WrongKind { .. }
        | FsError::JournalMissing { .. }
        | FsError::OtherJournal { .. }
        | FsError::Invalid(_) => Errno::INVAL,
        FsError::NotOpenFor(_) => Errno::BADF,
        FsError::OtherVolume => Errno::XDEV,
        FsError::PageLost { .. } => Errno::IO,
        FsError::NoSpace(_) => Errno::NOSPC,
        FsError::ReadOnly => Errno::ROFS,
        FsError::Recovery(error) | FsError::SyncedFile { reason: error, .. } => number(error),
        FsError::WriteBack(error) => number(error),
        FsError::Volume(error) => volume_number(error),
    }
}

fn volume_number(error: &VolumeError) -> Errno {
    if let Some(error) = error.device() {
        return device_number(error);
    }
    match error {
        VolumeError::AlreadyOpen(_) => Errno::BUSY,
        VolumeError::OnlyForReading { .. }
        | VolumeError::NoZones
        | VolumeError::CheckpointDisabled
        | VolumeError::ReadOnly => Errno::ROFS,
        VolumeError::FileTooLarge { .. } => Errno::FBIG,
        VolumeError::Format(FormatError::Corrupt(_)) => Errno::UCLEAN,
        VolumeError::Format(_)
        | VolumeError::Devices { .. }
        | VolumeError::ForeignDevice { .. }
        | VolumeError::Zone { .. }
        | VolumeError::ZoneLimit { .. }
        | VolumeError::Journal(_) => Errno::INVAL,
        VolumeError::Stopped { .. } => Errno::IO,
        error if error.is_no_space() => Errno::NOSPC,
        // The contents of the device contradict each other.
        _ => Errno::UCLEAN,
    }
}

fn device_number(error: &DeviceError) -> Errno {
    match error.kind {
        DeviceErrorKind::Io { errno: Some(errno), .. } => Errno::from_raw_os_error(errno),
        DeviceErrorKind::ReadOnly => Errno::ROFS,
        DeviceErrorKind::Unsupported => Errno::OPNOTSUPP,
        _ => Errno::IO,
    }
}
