//! From a volume to the host.

use std::collections::{HashMap, HashSet};
use std::ffi::{CString, OsStr};
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

use f2fs::files::path_from_bytes;
use f2fs::format::Nid;
use f2fs::{FileKind, FileSystem, Stat, Time};
use rustix::fs::{AtFlags, CWD, FileType, Mode, Timespec, Timestamps, XattrFlags};

use super::{CHUNK, CopyError, CopyOptions, CopyProgress, host, volume};

/// Copies `from` of the volume to `to` on this machine. A directory that exists there is merged into, a file replaced. Files of
/// a tree whose data needs a key or a decompressor are counted and left out ([`CopyProgress::unread`]).
///
/// # Errors
/// [`CopyError`]; what was copied until then is there.
pub fn copy_out(
    fs: &FileSystem,
    from: &Path,
    to: &Path,
    options: &CopyOptions,
    progress: impl FnMut(CopyProgress),
) -> Result<CopyProgress, CopyError> {
    let stat = fs.symlink_stat(from).map_err(volume(from))?;
    if stat.kind == FileKind::Directory && !options.recursive {
        return Err(CopyError::IsDirectory { path: from.to_path_buf() });
    }
    let mut copy =
        Outward { fs, links: HashMap::new(), done: CopyProgress::default(), progress, buffer: vec![0; CHUNK] };
    copy.done.total_bytes = if stat.kind == FileKind::Regular { stat.size } else { fs.statfs().valid_blocks * 4096 };
    copy.tree(from, to, options)?;
    Ok(copy.done)
}

struct Outward<'a, P> {
    fs: &'a FileSystem,
    links: HashMap<Nid, PathBuf>,
    done: CopyProgress,
    progress: P,
    buffer: Vec<u8>,
}

impl<P: FnMut(CopyProgress)> Outward<'_, P> {
    fn tree(&mut self, from: &Path, to: &Path, options: &CopyOptions) -> Result<(), CopyError> {
        let mut directories = Vec::new();
        let mut known = HashSet::new();
        let mut pending = vec![(from.to_path_buf(), to.to_path_buf())];
        while let Some((from, to)) = pending.pop() {
            let stat = self.fs.symlink_stat(&from).map_err(volume(&from))?;
            if stat.kind != FileKind::Directory {
                match self.one(&from, &to, &stat) {
                    Err(CopyError::Volume { source, .. }) if options.recursive && source.is_unreadable_content() => {
                        // What there is of it is no copy.
                        self.links.remove(&stat.ino);
                        self.done.unread += 1;
                        match fs::remove_file(&to) {
                            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                            result => result.map_err(host(&to))?,
                        }
                    }
                    result => result?,
                }
                continue;
            }
            if !known.insert(stat.ino) {
                return Err(volume(&from)(crate::second_name()));
            }
            match fs::create_dir(&to) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && to.is_dir() => {}
                result => result.map_err(host(&to))?,
            }
            for entry in self.fs.read_dir(&from).map_err(volume(&from))?.into_iter().rev() {
                pending.push((from.join(path_from_bytes(&entry.name)), to.join(OsStr::from_bytes(&entry.name))));
            }
            self.count(0);
            directories.push((from, to, stat));
        }
        for (from, to, stat) in directories.iter().rev() {
            self.attributes(from, to, stat)?;
        }
        Ok(())
    }

    fn count(&mut self, bytes: u64) {
        self.done.files += 1;
        self.done.bytes += bytes;
        (self.progress)(self.done);
    }

    fn one(&mut self, from: &Path, to: &Path, stat: &Stat) -> Result<(), CopyError> {
        match fs::remove_file(to) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            result => result.map_err(host(to))?,
        }
        if stat.links > 1 {
            if let Some(first) = self.links.get(&stat.ino) {
                fs::hard_link(first, to).map_err(host(to))?;
                self.count(stat.size);
                return Ok(());
            }
            self.links.insert(stat.ino, to.to_path_buf());
        }
        let mut bytes = 0;
        match stat.kind {
            FileKind::Regular => {
                self.content(from, to, stat.size)?;
                bytes = stat.size;
            }
            FileKind::Symlink => {
                let target = self.fs.read_link(from).map_err(volume(from))?;
                std::os::unix::fs::symlink(OsStr::from_bytes(&target), to).map_err(host(to))?;
            }
            FileKind::BlockDevice => self.special(to, stat, FileType::BlockDevice)?,
            FileKind::CharDevice => self.special(to, stat, FileType::CharacterDevice)?,
            FileKind::Fifo => self.special(to, stat, FileType::Fifo)?,
            FileKind::Socket => self.special(to, stat, FileType::Socket)?,
            FileKind::Directory => {}
        }
        if to.symlink_metadata().is_ok() {
            self.attributes(from, to, stat)?;
        }
        self.count(bytes);
        Ok(())
    }

    fn special(&mut self, to: &Path, stat: &Stat, kind: FileType) -> Result<(), CopyError> {
        let device = stat.device.map_or(0, |device| rustix::fs::makedev(device.major, device.minor));
        match rustix::fs::mknodat(CWD, to, kind, Mode::from_raw_mode(0o600), device) {
            Ok(()) => Ok(()),
            Err(rustix::io::Errno::PERM) => {
                self.done.refused += 1;
                Ok(())
            }
            Err(error) => Err(host(to)(error.into())),
        }
    }

    /// Copies data; chunks of zeros become holes.
    fn content(&mut self, from: &Path, to: &Path, size: u64) -> Result<(), CopyError> {
        let file = self.fs.open_file(from).map_err(volume(from))?;
        let target = File::create(to).map_err(host(to))?;
        let mut offset = 0;
        while offset < size {
            let len = file.read_at(offset, &mut self.buffer).map_err(volume(from))?;
            if len == 0 {
                break;
            }
            for (index, block) in self.buffer[..len].chunks(64 << 10).enumerate() {
                if block.iter().any(|byte| *byte != 0) {
                    target.write_all_at(block, offset + (index * (64 << 10)) as u64).map_err(host(to))?;
                }
            }
            offset += len as u64;
        }
        target.set_len(size).map_err(host(to))
    }

    fn attributes(&mut self, from: &Path, to: &Path, stat: &Stat) -> Result<(), CopyError> {
        if std::os::unix::fs::lchown(to, Some(stat.uid), Some(stat.gid)).is_err() {
            self.done.refused += 1;
        }
        if stat.kind != FileKind::Symlink {
            let permissions = Permissions::from_mode(stat.permissions.into());
            fs::set_permissions(to, permissions).map_err(host(to))?;
        }
        for (name, value) in self.fs.xattrs(from).map_err(volume(from))? {
            let Ok(name) = CString::new(name) else { continue };
            if rustix::fs::lsetxattr(to, &name, &value, XattrFlags::empty()).is_err() {
                self.done.refused += 1;
            }
        }
        let times = Timestamps { last_access: timespec(stat.accessed), last_modification: timespec(stat.modified) };
        rustix::fs::utimensat(CWD, to, &times, AtFlags::SYMLINK_NOFOLLOW).map_err(|error| host(to)(error.into()))
    }
}

fn timespec(time: Time) -> Timespec {
    Timespec { tv_sec: time.seconds, tv_nsec: time.nanoseconds.into() }
}
