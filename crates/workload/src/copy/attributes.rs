//! Owner, permissions, extended attributes and times of a file of the host, for its copy in the volume.

use std::ffi::CString;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use f2fs::files::{SetAttributes, Xattr};
use f2fs::{FsError, InodeRef, SetMode, Time};

use super::{CopyError, host, lost, volume};

/// Gives `made`, the copy of `from` at `to`, the extended attributes and times of `metadata`; a directory gets owner and
/// permissions as well, any other file was made with them. The root keeps what it has but for extended attributes.
/// Returns the attributes that the volume did not take.
pub(super) fn attributes(
    from: &Path,
    made: &InodeRef,
    to: &Path,
    metadata: &Metadata,
) -> Result<Vec<CopyError>, CopyError> {
    let mut not_taken = Vec::new();
    for xattr in host_xattrs(from)? {
        match made.set_xattr(&xattr.0, &xattr.1, SetMode::Any) {
            Ok(()) => {}
            Err(error @ (FsError::Attribute { .. } | FsError::WrongKind { .. })) => {
                not_taken.push(lost(to, &xattr, error));
            }
            Err(error) => return Err(volume(to)(error)),
        }
    }
    if to.file_name().is_none() {
        return Ok(not_taken);
    }
    let time = |seconds, nanoseconds: i64| Time { seconds, nanoseconds: nanoseconds as u32 };
    let mut set = SetAttributes::default().times(
        Some(time(metadata.atime(), metadata.atime_nsec())),
        Some(time(metadata.mtime(), metadata.mtime_nsec())),
    );
    if metadata.is_dir() {
        set =
            set.owner(Some(metadata.uid()), Some(metadata.gid())).permissions(Some((metadata.mode() & 0o7777) as u16));
    }
    made.set_attributes(&set).map_err(volume(to))?;
    Ok(not_taken)
}

/// Extended attributes of a host path, the link itself if it is one. A file system without any has none.
fn host_xattrs(path: &Path) -> Result<Vec<Xattr>, CopyError> {
    use rustix::io::Errno;
    let failed = |error: Errno| host(path)(error.into());
    let mut names = vec![0; 64 << 10];
    let len = match rustix::fs::llistxattr(path, &mut names[..]) {
        Ok(len) => len,
        Err(Errno::NOTSUP) => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut all = Vec::new();
    let mut value = vec![0; 64 << 10];
    for name in names[..len].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        let Ok(text) = CString::new(name) else { continue };
        match rustix::fs::lgetxattr(path, &text, &mut value[..]) {
            Ok(len) => all.push((name.to_vec(), value[..len].to_vec())),
            Err(Errno::NODATA | Errno::NOTSUP | Errno::PERM) => {}
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(all)
}
