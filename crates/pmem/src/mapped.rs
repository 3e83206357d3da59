//! A file or a character device of memory, mapped.
//!
//! Nothing here may end in a SIGBUS that could have been known. So before any access, the file's size is compared with
//! the mapping's, its holes are filled, and the kernel's list of bad blocks is read. The lock is `flock`, the same that
//! `f2fs-uring` takes, so that the two keep each other out.
//!
//! No locks of this process.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    path::Path,
    thread,
    time::{Duration, Instant},
};

use f2fs_device::BLOCK_SIZE;
use f2fs_sync::PlainArc;
use rustix::{
    fs::{FallocateFlags, FileType, FlockOperation, Mode, OFlags, Stat},
    io::Errno,
    mm::MapFlags,
};

use crate::{
    Dax, Durability, OpenError, OpenOptions, PersistentRegion, PmemDevice, RegionError, WriteBack, cpu, extents,
    mapping::Mapping,
    sysfs::{self, DeviceNumber},
};

/// Between two tries to get the lock.
const PAUSE: Duration = Duration::from_millis(5);

/// A mapped file or character device of memory. It is one writer's or many readers', across processes.
///
/// The size is that of the opening. A program that makes the file shorter while it is mapped, against its lock, makes
/// the next access behind its end a SIGBUS; a [`sync`](PersistentRegion::sync) of a file that is not in persistent
/// memory finds it out by itself.
#[derive(Debug)]
pub struct MappedRegion {
    mapping: Mapping,
    durability: Durability,
    /// Keeps the lock.
    fd: OwnedFd,
}

impl PmemDevice<MappedRegion> {
    /// Opens a regular file, or a character device of memory (`/dev/dax*`), as a block device.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(path: impl AsRef<Path>, options: OpenOptions) -> Result<PlainArc<Self>, OpenError> {
        let path = path.as_ref();
        let region = MappedRegion::open(path, options)?;
        let what = match region.durability {
            Durability::Fence => format!("MAP_SYNC, {}", WriteBack::detect()),
            other => other.to_string(),
        };
        Ok(PlainArc::new(Self::described(region, format!("persistent memory, {what}, {}", path.display()))))
    }
}

impl MappedRegion {
    /// Opens and maps a regular file, or a character device of memory (`/dev/dax*`). The holes of a file that is opened
    /// for writing are filled.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(path: impl AsRef<Path>, options: OpenOptions) -> Result<Self, OpenError> {
        Self::open_with(path.as_ref(), options, Path::new(sysfs::ROOT), || {})
    }

    /// [`open`](Self::open) with the sysfs at `sysfs`; `mapped` is called when the mapping has just been made.
    fn open_with(path: &Path, options: OpenOptions, sysfs: &Path, mapped: impl FnOnce()) -> Result<Self, OpenError> {
        // Before the open, which would wait at a pipe.
        let kind = FileType::from_raw_mode(rustix::fs::stat(path).map_err(failed(path, "stat"))?.st_mode);
        if !kind.is_file() && !kind.is_char_device() {
            return Err(OpenError::NotMemory { path: path.into(), kind: kind_name(kind) });
        }
        let access = if options.read_only { OFlags::RDONLY } else { OFlags::RDWR };
        let fd = rustix::fs::open(path, access | OFlags::CLOEXEC, Mode::empty()).map_err(failed(path, "open"))?;
        let stat = rustix::fs::fstat(&fd).map_err(failed(path, "fstat"))?;
        let file = FileType::from_raw_mode(stat.st_mode).is_file();
        let bytes = if file {
            stat.st_size.unsigned_abs()
        } else {
            let Some(dax) = sysfs::dax_device(sysfs, stat.st_rdev) else {
                return Err(OpenError::NotMemory { path: path.into(), kind: kind_name(kind) });
            };
            dax.size / dax.align * dax.align
        };
        if bytes < BLOCK_SIZE as u64 {
            return Err(OpenError::TooSmall { path: path.into(), bytes });
        }
        lock(path, &fd, options)?;
        if file && !options.read_only {
            fill_holes(path, &fd, &stat)?;
        }
        check_memory(path, &fd, &stat, file, bytes, sysfs)?;
        let (mapping, durability) = map(path, &fd, bytes, options)?;
        mapped();
        if file {
            let now = rustix::fs::fstat(&fd).map_err(failed(path, "fstat"))?.st_size.unsigned_abs();
            if now < mapping.len() as u64 {
                return Err(OpenError::Shortened { path: path.into(), mapped: mapping.len() as u64, bytes: now });
            }
        }
        if options.touch {
            mapping.touch();
        }
        Ok(Self { mapping, durability, fd })
    }
}

fn failed(path: &Path, call: &'static str) -> impl FnOnce(Errno) -> OpenError {
    let path = path.to_owned();
    move |errno| OpenError::Io { path, call, source: errno.into() }
}

fn kind_name(kind: FileType) -> &'static str {
    match kind {
        FileType::BlockDevice => "block device",
        FileType::CharacterDevice => "character device",
        FileType::Directory => "directory",
        FileType::Fifo => "pipe",
        FileType::Socket => "socket",
        _ => "file of another kind",
    }
}

fn lock(path: &Path, fd: &OwnedFd, options: OpenOptions) -> Result<(), OpenError> {
    let operation = if options.read_only {
        FlockOperation::NonBlockingLockShared
    } else {
        FlockOperation::NonBlockingLockExclusive
    };
    let begun = Instant::now();
    loop {
        match rustix::fs::flock(fd, operation) {
            Ok(()) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(Errno::WOULDBLOCK) if begun.elapsed() < options.patience => thread::sleep(PAUSE),
            Err(Errno::WOULDBLOCK) => return Err(OpenError::AlreadyOpen { path: path.into() }),
            Err(errno) => return Err(failed(path, "flock")(errno)),
        }
    }
}

/// Fills the holes of a file: a store to one for which there is no room later would be a SIGBUS.
fn fill_holes(path: &Path, fd: &OwnedFd, stat: &Stat) -> Result<(), OpenError> {
    let bytes = stat.st_size.unsigned_abs();
    let holes = bytes.saturating_sub(stat.st_blocks.unsigned_abs().saturating_mul(512));
    if holes == 0 {
        return Ok(());
    }
    let free = rustix::fs::fstatvfs(fd).map_err(failed(path, "fstatvfs"))?;
    let room = free.f_bavail.saturating_mul(free.f_frsize);
    if room < holes {
        return Err(OpenError::NoRoom { path: path.into(), holes, room });
    }
    rustix::fs::fallocate(fd, FallocateFlags::empty(), 0, bytes).map_err(failed(path, "fallocate"))
}

/// Refuses what the kernel knows to be bad.
fn check_memory(path: &Path, fd: &OwnedFd, stat: &Stat, file: bool, bytes: u64, sysfs: &Path) -> Result<(), OpenError> {
    let number = if file { stat.st_dev } else { stat.st_rdev };
    let mut bad = sysfs::bad_bytes(sysfs, DeviceNumber { block: file, number });
    if file && !bad.is_empty() {
        bad = extents::within(fd.as_fd(), bytes, &bad).map_err(failed(path, "FS_IOC_FIEMAP"))?;
    }
    bad.retain(|range| range.start < bytes);
    match bad.iter().min_by_key(|range| range.start) {
        Some(first) => Err(OpenError::BadMemory { path: path.into(), first: first.clone(), count: bad.len() }),
        None => Ok(()),
    }
}

/// Maps with `MAP_SYNC`, or, where the file does not lie in persistent memory, its page cache.
fn map(path: &Path, fd: &OwnedFd, bytes: u64, options: OpenOptions) -> Result<(Mapping, Durability), OpenError> {
    let refused = |source| OpenError::Io { path: path.into(), call: "mmap", source };
    let len = usize::try_from(bytes).map_err(|_| refused(io::ErrorKind::OutOfMemory.into()))?;
    let writable = !options.read_only;
    let dax = if WriteBack::detect() == WriteBack::Missing {
        Err(io::Error::from(io::ErrorKind::Unsupported))
    } else {
        Mapping::of_file(fd.as_fd(), len, writable, MapFlags::SHARED_VALIDATE | MapFlags::SYNC)
    };
    match dax {
        Ok(mapping) => Ok((mapping, Durability::Fence)),
        Err(reason) if options.dax == Dax::Required => Err(OpenError::NotDax { path: path.into(), reason }),
        Err(_) => {
            let mapping = Mapping::of_file(fd.as_fd(), len, writable, MapFlags::SHARED).map_err(refused)?;
            Ok((mapping, Durability::Sync))
        }
    }
}

impl PersistentRegion for MappedRegion {
    fn len(&self) -> usize {
        self.mapping.len()
    }

    fn read_only(&self) -> bool {
        !self.mapping.is_writable()
    }

    fn durability(&self) -> Durability {
        self.durability
    }

    fn load(&self, offset: usize, into: &mut [u8]) -> Result<(), RegionError> {
        self.mapping.load(offset, into)
    }

    fn store(&self, offset: usize, bytes: &[u8]) -> Result<(), RegionError> {
        self.mapping.store(offset, bytes)
    }

    fn store_nontemporal(&self, offset: usize, bytes: &[u8]) -> Result<(), RegionError> {
        self.mapping.store_nontemporal(offset, bytes)
    }

    fn expect_store(&self, offset: usize) {
        self.mapping.expect_store(offset);
    }

    fn write_back(&self, offset: usize, bytes: usize) -> Result<(), RegionError> {
        self.mapping.write_back(offset, bytes)
    }

    fn fence(&self) {
        cpu::fence();
    }

    fn sync(&self) -> io::Result<()> {
        if self.durability != Durability::Sync || self.read_only() {
            return Ok(());
        }
        let bytes = rustix::fs::fstat(&self.fd)?.st_size.unsigned_abs();
        if bytes < self.len() as u64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.mapping.msync()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions as FileOptions};

    use super::*;

    fn image(bytes: u64) -> (tempfile::TempDir, std::path::PathBuf) {
        let dir = crate::tests::on_disk();
        let path = dir.path().join("image");
        fs::File::create(&path).unwrap().set_len(bytes).unwrap();
        (dir, path)
    }

    #[test]
    fn a_file_that_shrinks_while_it_is_mapped_is_refused() {
        let (_dir, path) = image(1 << 20);
        let shorten = || FileOptions::new().write(true).open(&path).unwrap().set_len(5000).unwrap();
        let error = MappedRegion::open_with(&path, OpenOptions::new(), Path::new(sysfs::ROOT), shorten).unwrap_err();
        assert!(matches!(error, OpenError::Shortened { mapped: 1_048_576, bytes: 5000, .. }), "{error}");
    }

    #[test]
    fn bad_blocks_below_a_file_are_refused() {
        let (dir, path) = image(1 << 20);
        fs::write(&path, vec![1; 1 << 20]).unwrap();
        fs::File::open(&path).unwrap().sync_all().unwrap();
        let device = fs::metadata(&path).map(|file| std::os::unix::fs::MetadataExt::dev(&file)).unwrap();
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        let sysfs = fs::canonicalize(dir.path()).unwrap().join("sys");
        let disk = sysfs.join(format!("dev/block/{major}:{minor}"));
        fs::create_dir_all(&disk).unwrap();
        let open = || MappedRegion::open_with(&path, OpenOptions::new(), &sysfs, || {});
        fs::write(disk.join("badblocks"), "").unwrap();
        open().unwrap();
        // All sectors of the disk: whatever the file lies on is bad.
        fs::write(disk.join("badblocks"), format!("0 {}\n", u64::MAX >> 10)).unwrap();
        let error = open().unwrap_err();
        assert!(matches!(&error, OpenError::BadMemory { first, .. } if first.start == 0), "{error}");
    }
}
