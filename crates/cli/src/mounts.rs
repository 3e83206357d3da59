//! The system's list of mounts.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// A volume that `f2fs mount` serves.
pub(crate) struct Mount {
    pub(crate) image: PathBuf,
    pub(crate) read_only: bool,
}

/// The mount on a directory.
pub(crate) fn on(dir: &Path) -> Option<Mount> {
    // A mount whose server has ended, or stands still, cannot be looked at; the directory above it can.
    let by_name = dir.parent().zip(dir.file_name());
    let by_name = by_name.and_then(|(above, name)| Some(above.canonicalize().ok()?.join(name)));
    by_name.and_then(|dir| on_exactly(&dir)).or_else(|| on_exactly(&dir.canonicalize().ok()?))
}

/// The mount on the directory of this path, which has no symbolic links in it.
fn on_exactly(dir: &Path) -> Option<Mount> {
    // The last one lies on top.
    all().into_iter().rev().find(|(on, _)| *on == dir).map(|(_, mount)| mount)
}

/// Whether an image is mounted somewhere, by this name or by another.
pub(crate) fn has(image: &Path) -> bool {
    let this = what(image);
    let path = image.canonicalize().unwrap_or_else(|_| image.to_owned());
    // What other file systems call their source need not be a path.
    let is_this = |mount: &Mount| mount.image.is_absolute() && this.is_some() && what(&mount.image) == this;
    all().iter().any(|(_, mount)| mount.image == path || is_this(mount))
}

/// What a path leads to: the device and the inode of a file, and of the file behind a loop device.
fn what(path: &Path) -> Option<(u64, u64)> {
    let data = path.metadata().ok()?;
    if !data.file_type().is_block_device() {
        return Some((data.dev(), data.ino()));
    }
    let (major, minor) = (rustix::fs::major(data.rdev()), rustix::fs::minor(data.rdev()));
    let behind = fs::read(format!("/sys/dev/block/{major}:{minor}/loop/backing_file")).ok();
    let file = behind.map(|path| PathBuf::from(OsString::from_vec(path.trim_ascii_end().to_vec())));
    match file.and_then(|file| file.metadata().ok()) {
        Some(data) => Some((data.dev(), data.ino())),
        // No file has a device number of its own and no file system.
        None => Some((u64::MAX, data.rdev())),
    }
}

/// All mounts, with their directories.
fn all() -> Vec<(PathBuf, Mount)> {
    let mounts = fs::read("/proc/self/mounts").unwrap_or_default();
    mounts.split(|byte| *byte == b'\n').filter_map(parse).collect()
}

/// A line of the list: what is mounted, where, as what, with which options.
fn parse(line: &[u8]) -> Option<(PathBuf, Mount)> {
    let mut fields = line.split(|byte| *byte == b' ');
    let (image, dir) = (path(fields.next()?), path(fields.next()?));
    matches!(fields.next()?, b"fuse" | b"fuse.f2fs").then_some(())?;
    let read_only = fields.next()?.split(|byte| *byte == b',').any(|option| option == b"ro");
    Some((dir, Mount { image, read_only }))
}

/// A path as the list shows it: some bytes stand there as a backslash and three octal digits.
fn path(shown: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(shown.len());
    let mut rest = shown;
    while let Some((first, behind)) = rest.split_first() {
        let digits = behind.get(..3).filter(|digits| digits.iter().all(|digit| (b'0'..=b'7').contains(digit)));
        let escaped = digits.filter(|_| *first == b'\\');
        let value = escaped.map(|digits| digits.iter().fold(0_u8, |sum, digit| sum << 3 | (digit - b'0')));
        bytes.push(value.unwrap_or(*first));
        rest = if value.is_some() { &behind[3..] } else { behind };
    }
    OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn paths_have_any_bytes() {
        let line = b"/srv/a\\040b\\134c\xff /mnt/x\\011y fuse rw,nosuid,user_id=0 0 0";
        let (dir, mount) = parse(line).expect("a mount");
        assert_eq!(mount.image.as_os_str().as_bytes(), b"/srv/a b\\c\xff");
        assert_eq!((dir.as_os_str().as_bytes(), mount.read_only), (&b"/mnt/x\ty"[..], false));
        assert!(parse(b"/srv/a /mnt fuse.f2fs ro,relatime 0 0").is_some_and(|(_, mount)| mount.read_only));
        for other in [&b""[..], b"/dev/sda / ext4 rw 0 0", b"a b", b"proc /proc proc rw 0 0"] {
            assert!(parse(other).is_none());
        }
    }
}
