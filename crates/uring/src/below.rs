//! The file below a loop device: the same bytes by two names, which the locks of neither keep apart.
//!
//! ```text
//!   opening a loop device ─► locks the file below it as well, as if that were opened
//!   opening a file        ─► that lock; and refused where a loop device on it is mounted
//! ```
//!
//! A loop device on a part of a file, or a partition of one, does not exclude another part: it takes the lock that
//! readers share. A loop device that is made and mounted while a file is open for writing is not seen.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::OpenError;
use crate::lock::until_free;

/// A file below a loop device, and whether the device is all of it.
#[derive(Debug, PartialEq, Eq)]
struct Below {
    path: PathBuf,
    whole: bool,
}

impl Below {
    /// Of a block device, by its directory in sysfs; none of most.
    fn of(directory: &Path) -> Option<Below> {
        let text = |name: &str| Some(fs::read_to_string(directory.join(name)).ok()?.trim_end_matches('\n').to_owned());
        if let Some(path) = text("loop/backing_file") {
            let none = |name: &str| text(name).is_none_or(|bytes| bytes == "0");
            return Some(Below { path: path.into(), whole: none("loop/offset") && none("loop/sizelimit") });
        }
        Some(Below { path: text("../loop/backing_file")?.into(), whole: false })
    }
}

/// Locks the file below a loop device that is opened. `None` for other devices, and for a file that cannot be opened
/// here or not be locked: one that is deleted, or was named in another container.
pub(crate) fn lock(rdev: u64, read_only: bool, patience: Duration) -> Result<Option<OwnedFd>, OpenError> {
    let number = format!("{}:{}", rustix::fs::major(rdev), rustix::fs::minor(rdev));
    let Some(Below { path, whole }) = Below::of(&Path::new("/sys/dev/block").join(number)) else { return Ok(None) };
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let Ok(fd) = rustix::fs::open(&path, flags, Mode::empty()) else { return Ok(None) };
    let operation = match read_only || !whole {
        true => FlockOperation::NonBlockingLockShared,
        false => FlockOperation::NonBlockingLockExclusive,
    };
    let taken = ("flock", Errno::WOULDBLOCK);
    match until_free(&path, taken, false, patience, || rustix::fs::flock(&fd, operation)) {
        Ok(()) => Ok(Some(fd)),
        Err(OpenError::Io { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Refuses a file that is mounted by way of a loop device.
pub(crate) fn refuse_mounted(path: &Path) -> Result<(), OpenError> {
    let (Ok(file), Ok(devices)) = (fs::canonicalize(path), fs::read_dir("/sys/block")) else { return Ok(()) };
    let loops = devices.flatten().filter(|device| device.file_name().as_encoded_bytes().starts_with(b"loop"));
    for device in loops.filter(|device| Below::of(&device.path()).is_some_and(|below| below.path == file)) {
        if is_mounted(&device.path()) {
            let through = Path::new("/dev").join(device.file_name());
            return Err(OpenError::Mounted { path: path.into(), through });
        }
    }
    Ok(())
}

/// Whether a block device or one of its partitions is mounted, by its directory in sysfs.
fn is_mounted(directory: &Path) -> bool {
    let number = |directory: &Path| fs::read_to_string(directory.join("dev")).ok();
    let partitions = fs::read_dir(directory).into_iter().flatten().flatten().filter_map(|entry| number(&entry.path()));
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    // The third word is the device.
    let is_mount = |number: String| mounts.lines().any(|line| line.split(' ').nth(2) == Some(number.trim()));
    number(directory).into_iter().chain(partitions).any(is_mount)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_sysfs_says_of_a_loop_device() {
        let dir = tempfile::tempdir().unwrap();
        let of = |name: &str| Below::of(&dir.path().join(name));
        let write = |name: &str, text: &str| {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("vda/size", "8\n");
        assert_eq!(of("vda"), None);
        write("loop3/loop/backing_file", "/a b/image\n");
        write("loop3/loop3p1/dev", "7:4\n");
        let below = |whole| Some(Below { path: "/a b/image".into(), whole });
        assert_eq!(of("loop3"), below(true));
        assert_eq!(of("loop3/loop3p1"), below(false));
        write("loop3/loop/offset", "0\n");
        write("loop3/loop/sizelimit", "0\n");
        assert_eq!(of("loop3"), below(true));
        write("loop3/loop/sizelimit", "4096\n");
        assert_eq!(of("loop3"), below(false));
    }
}
