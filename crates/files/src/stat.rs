//! The attributes of a file: type, permissions, owner, times, sizes.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use f2fs_format::Nid;
use f2fs_format::compression::Compression;
use f2fs_format::inode::{Inode, mode};
use rustix::time::{ClockId, clock_gettime};

use crate::FsError;
use crate::device_number::DeviceNumber;

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// A regular file.
    Regular,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A block device.
    BlockDevice,
    /// A character device.
    CharDevice,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
}

impl FileKind {
    /// The kind in the type bits of a mode; `None` if they are not one of the seven.
    #[must_use]
    pub fn from_mode(mode: u16) -> Option<FileKind> {
        Some(match mode & mode::MASK {
            mode::REGULAR => FileKind::Regular,
            mode::DIRECTORY => FileKind::Directory,
            mode::SYMLINK => FileKind::Symlink,
            mode::BLOCK => FileKind::BlockDevice,
            mode::CHARACTER => FileKind::CharDevice,
            mode::FIFO => FileKind::Fifo,
            mode::SOCKET => FileKind::Socket,
            _ => return None,
        })
    }

    /// The type bits of a mode.
    #[must_use]
    pub fn to_mode(self) -> u16 {
        match self {
            FileKind::Regular => mode::REGULAR,
            FileKind::Directory => mode::DIRECTORY,
            FileKind::Symlink => mode::SYMLINK,
            FileKind::BlockDevice => mode::BLOCK,
            FileKind::CharDevice => mode::CHARACTER,
            FileKind::Fifo => mode::FIFO,
            FileKind::Socket => mode::SOCKET,
        }
    }

    /// The letter that `find -printf %y` and the manifest use.
    #[must_use]
    pub fn letter(self) -> char {
        match self {
            FileKind::Regular => 'f',
            FileKind::Directory => 'd',
            FileKind::Symlink => 'l',
            FileKind::BlockDevice => 'b',
            FileKind::CharDevice => 'c',
            FileKind::Fifo => 'p',
            FileKind::Socket => 's',
        }
    }

    /// The name used in errors.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            FileKind::Regular => "regular file",
            FileKind::Directory => "directory",
            FileKind::Symlink => "symbolic link",
            FileKind::BlockDevice => "block device",
            FileKind::CharDevice => "character device",
            FileKind::Fifo => "named pipe",
            FileKind::Socket => "socket",
        }
    }
}

const MOST_NANOSECONDS: u32 = 999_999_999;

/// A point in time, in seconds and nanoseconds since 1970; seconds may be negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time {
    /// Seconds since 1970-01-01 00:00:00 UTC.
    pub seconds: i64,
    /// Nanoseconds, below 10^9. More are refused where a time is set; a damaged volume may show more.
    pub nanoseconds: u32,
}

impl Time {
    /// The present.
    #[must_use]
    pub fn now() -> Time {
        SystemTime::now().into()
    }

    /// The present as Linux notes it in files: that of the last tick of its timer, up to ten milliseconds ago.
    ///
    /// A kernel that notes times of the same files, as the one of a mount does, is never behind this clock.
    #[must_use]
    pub fn now_coarse() -> Time {
        let now = clock_gettime(ClockId::RealtimeCoarse);
        Time { seconds: now.tv_sec, nanoseconds: now.tv_nsec as u32 }
    }

    /// # Errors
    /// [`FsError::Time`] if it has more nanoseconds than a second.
    pub(crate) fn check(self) -> Result<(), FsError> {
        if self.nanoseconds > MOST_NANOSECONDS {
            return Err(FsError::Time { nanoseconds: self.nanoseconds });
        }
        Ok(())
    }

    /// The nearest time that can be: with no more nanoseconds than a second has. A damaged volume may show more.
    #[inline]
    #[must_use]
    pub fn nearest(self) -> Time {
        Time { nanoseconds: self.nanoseconds.min(MOST_NANOSECONDS), ..self }
    }
}

impl From<SystemTime> for Time {
    fn from(time: SystemTime) -> Time {
        match time.duration_since(UNIX_EPOCH) {
            Ok(after) => Time { seconds: after.as_secs() as i64, nanoseconds: after.subsec_nanos() },
            Err(error) => {
                let before = error.duration();
                let (seconds, nanoseconds) = (0_i64.saturating_sub_unsigned(before.as_secs()), before.subsec_nanos());
                if nanoseconds == 0 {
                    Time { seconds, nanoseconds }
                } else {
                    Time { seconds: seconds.saturating_sub(1), nanoseconds: 1_000_000_000 - nanoseconds }
                }
            }
        }
    }
}

impl From<Time> for SystemTime {
    /// The nearest time that can be, where a damaged volume shows too many nanoseconds.
    fn from(time: Time) -> SystemTime {
        let time = time.nearest();
        let nanoseconds = Duration::from_nanos(time.nanoseconds.into());
        if time.seconds >= 0 {
            UNIX_EPOCH + Duration::from_secs(time.seconds as u64) + nanoseconds
        } else {
            UNIX_EPOCH - Duration::from_secs(time.seconds.unsigned_abs()) + nanoseconds
        }
    }
}

/// The attributes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metadata {
    /// Inode number.
    pub ino: Nid,
    /// Kind of the file.
    pub kind: FileKind,
    /// Permission bits, set-id and sticky bits included (07777).
    pub permissions: u16,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Names of the file; for a directory 2 and one for each subdirectory.
    pub links: u32,
    /// Size in bytes.
    pub size: u64,
    /// Blocks of 4 KiB in use, the inode and its other nodes included.
    pub blocks: u64,
    /// Last read.
    pub accessed: Time,
    /// Last change of content. Writes of a file at which nobody looks in between change it once in 4 ms; a write after a
    /// look always does.
    pub modified: Time,
    /// Last change of anything.
    pub changed: Time,
    /// Birth, if the inode records it.
    pub created: Option<Time>,
    /// For device files.
    pub device: Option<DeviceNumber>,
    /// Generation, for NFS handles.
    pub generation: u32,
    /// Whether data or entries stand in the inode itself.
    pub inline: bool,
    /// Whether data, names or target are encrypted. The size of a symbolic link is then the length of its shown target.
    pub encrypted: bool,
    /// Whether it is a directory whose names are looked up without case.
    pub casefolded: bool,
    /// Whether the data is protected by fs-verity. It is read without verification.
    pub verity: bool,
    /// How the file is compressed.
    pub compression: Option<Compression>,
}

pub(crate) fn times(inode: &Inode) -> (Time, Time, Time) {
    (
        Time { seconds: inode.i_atime.get() as i64, nanoseconds: inode.i_atime_nsec.get() },
        Time { seconds: inode.i_mtime.get() as i64, nanoseconds: inode.i_mtime_nsec.get() },
        Time { seconds: inode.i_ctime.get() as i64, nanoseconds: inode.i_ctime_nsec.get() },
    )
}

pub(crate) fn set_accessed(inode: &mut Inode, time: Time) {
    inode.i_atime = (time.seconds as u64).into();
    inode.i_atime_nsec = time.nanoseconds.into();
}

pub(crate) fn set_modified(inode: &mut Inode, time: Time) {
    inode.i_mtime = (time.seconds as u64).into();
    inode.i_mtime_nsec = time.nanoseconds.into();
}

pub(crate) fn set_changed(inode: &mut Inode, time: Time) {
    inode.i_ctime = (time.seconds as u64).into();
    inode.i_ctime_nsec = time.nanoseconds.into();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_standard_library() {
        let since = |seconds, nanoseconds| UNIX_EPOCH + Duration::new(seconds, nanoseconds);
        let before = |seconds, nanoseconds| UNIX_EPOCH - Duration::new(seconds, nanoseconds);
        for (system, seconds, nanoseconds) in [
            (since(0, 0), 0, 0),
            (since(0, 1), 0, 1),
            (since(7, 999_999_999), 7, 999_999_999),
            (before(7, 0), -7, 0),
            (before(7, 1), -8, 999_999_999),
            (before(0, 999_999_999), -1, 1),
        ] {
            let time = Time { seconds, nanoseconds };
            assert_eq!((Time::from(system), SystemTime::from(time)), (time, system));
        }
        let damaged = Time { seconds: 7, nanoseconds: u32::MAX };
        assert_eq!(SystemTime::from(damaged), since(7, 999_999_999));
        assert!(matches!(damaged.check(), Err(FsError::Time { nanoseconds: u32::MAX })));
        assert!(damaged.nearest().check().is_ok());
        assert!(Time { seconds: 7, nanoseconds: 1_000_000_000 }.check().is_err());
    }

    #[test]
    fn kinds_are_in_the_mode() {
        let kinds = ['f', 'd', 'l', 'b', 'c', 'p', 's'];
        let all = [
            FileKind::Regular,
            FileKind::Directory,
            FileKind::Symlink,
            FileKind::BlockDevice,
            FileKind::CharDevice,
            FileKind::Fifo,
            FileKind::Socket,
        ];
        for (kind, letter) in all.into_iter().zip(kinds) {
            assert_eq!((FileKind::from_mode(kind.to_mode() | 0o7777), kind.letter()), (Some(kind), letter));
        }
        assert_eq!([0o7777, 0o030_000, 0o170_000].map(FileKind::from_mode), [None; 3]);
    }
}
