//! Sets owner, permissions, extended attributes and times of a file that was copied to the host.

use std::ffi::{CString, OsStr};
use std::fs::Permissions;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use f2fs::files::Xattr;
use f2fs::{FileKind, Metadata, Time};
use rustix::fs::{AtFlags, Gid, Mode, OFlags, Timespec, Timestamps, Uid, XattrFlags};
use rustix::io::Errno;

use super::{CopyError, lost};

/// Set-user-ID and set-group-ID.
const SET_ID: u16 = 0o6000;

/// The entry that was made.
pub(super) enum Made<'a> {
    /// A file or directory that is open.
    Open(&'a OwnedFd),
    /// An entry that cannot be opened: its directory, and its name there. A link that has taken its place meanwhile is
    /// not followed.
    Named(&'a OwnedFd, &'a [u8]),
}

/// Sets all attributes of `stat` and `xattrs` on what is shown as `to`; returns the extended attributes that the host
/// did not take. Not that they were refused for want of rights, as others' owners are: those are the system's, not the
/// user's. Without the owner there is no set-ID bit: it would lend the rights of somebody else.
pub(super) fn attributes(
    made: &Made<'_>,
    to: impl Fn() -> PathBuf,
    stat: &Metadata,
    xattrs: &[Xattr],
) -> io::Result<Vec<CopyError>> {
    let mut not_taken = Vec::new();
    let (uid, gid) = (Some(Uid::from_raw(stat.uid)), Some(Gid::from_raw(stat.gid)));
    let owned = match made {
        Made::Open(file) => rustix::fs::fchown(file, uid, gid),
        Made::Named(directory, name) => {
            rustix::fs::chownat(directory, OsStr::from_bytes(name), uid, gid, AtFlags::SYMLINK_NOFOLLOW)
        }
    };
    for xattr @ (name, value) in xattrs {
        let Ok(attribute) = CString::new(&name[..]) else { continue };
        let set = match made {
            Made::Open(file) => rustix::fs::fsetxattr(file, &attribute, value, XattrFlags::empty()),
            Made::Named(directory, name) => {
                let path = by_descriptor(directory).join(OsStr::from_bytes(name));
                rustix::fs::lsetxattr(path, &attribute, value, XattrFlags::empty())
            }
        };
        match set {
            Err(Errno::PERM) if !name.starts_with(b"user.") => {}
            Err(error) => not_taken.push(lost(&to(), xattr, io::Error::from(error))),
            Ok(()) => {}
        }
    }
    let permissions = stat.permissions & if owned.is_ok() { 0o7777 } else { !SET_ID & 0o7777 };
    match made {
        Made::Open(file) => rustix::fs::fchmod(file, Mode::from_raw_mode(permissions.into()))?,
        Made::Named(..) if stat.kind == FileKind::Symlink => {}
        Made::Named(directory, name) => {
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = rustix::fs::openat(directory, OsStr::from_bytes(name), flags, Mode::empty())?;
            if !rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode).is_symlink() {
                std::fs::set_permissions(by_descriptor(&file), Permissions::from_mode(permissions.into()))?;
            }
        }
    }
    let times = Timestamps { last_access: timespec(stat.accessed), last_modification: timespec(stat.modified) };
    match made {
        Made::Open(file) => rustix::fs::futimens(file, &times)?,
        Made::Named(directory, name) => {
            rustix::fs::utimensat(directory, OsStr::from_bytes(name), &times, AtFlags::SYMLINK_NOFOLLOW)?;
        }
    }
    Ok(not_taken)
}

fn by_descriptor(file: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

fn timespec(time: Time) -> Timespec {
    Timespec { tv_sec: time.seconds, tv_nsec: time.nanoseconds.into() }
}
