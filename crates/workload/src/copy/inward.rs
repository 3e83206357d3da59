//! From the host into a volume.

use std::collections::HashMap;
use std::ffi::CString;
use std::fs::{self, File, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use f2fs::files::Xattr;
use f2fs::{FileKind, FileSystem, FsError, NewFile, SetMode, SetTimes, Time};
use rustix::fs::SeekFrom;

use super::{CHUNK, CopyError, CopyOptions, CopyProgress, host, volume};

/// Copies `from` of this machine to `to` in the volume. A directory that exists there is merged into, a file replaced.
///
/// # Errors
/// [`CopyError`]; what was copied until then is there.
pub fn copy_in(
    fs: &FileSystem,
    from: &Path,
    to: &Path,
    options: &CopyOptions,
    progress: impl FnMut(CopyProgress),
) -> Result<CopyProgress, CopyError> {
    let metadata = fs::symlink_metadata(from).map_err(host(from))?;
    if metadata.is_dir() && !options.recursive {
        return Err(CopyError::IsDirectory { path: from.to_path_buf() });
    }
    let mut copy =
        Inward { fs, links: HashMap::new(), done: CopyProgress::default(), progress, buffer: vec![0; CHUNK] };
    copy.done.total_bytes = total(from, &metadata)?;
    copy.tree(from, to)?;
    Ok(copy.done)
}

/// Bytes of all regular files below a path.
fn total(from: &Path, metadata: &Metadata) -> Result<u64, CopyError> {
    if !metadata.is_dir() {
        return Ok(if metadata.is_file() { metadata.len() } else { 0 });
    }
    let mut sum = 0;
    let mut pending = vec![from.to_path_buf()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(&directory).map_err(host(&directory))? {
            let entry = entry.map_err(host(&directory))?;
            let metadata = entry.metadata().map_err(host(&directory))?;
            if metadata.is_dir() {
                pending.push(entry.path());
            } else if metadata.is_file() {
                sum += metadata.len();
            }
        }
    }
    Ok(sum)
}

struct Inward<'a, P> {
    fs: &'a FileSystem,
    /// Where the first name of a file with several names went.
    links: HashMap<(u64, u64), PathBuf>,
    done: CopyProgress,
    progress: P,
    buffer: Vec<u8>,
}

impl<P: FnMut(CopyProgress)> Inward<'_, P> {
    fn tree(&mut self, from: &Path, to: &Path) -> Result<(), CopyError> {
        // Directories get their times last, when nothing in them changes any more.
        let mut directories = Vec::new();
        let mut pending = vec![(from.to_path_buf(), to.to_path_buf())];
        while let Some((from, to)) = pending.pop() {
            let metadata = fs::symlink_metadata(&from).map_err(host(&from))?;
            if !metadata.is_dir() {
                self.one(&from, &to, &metadata)?;
                continue;
            }
            self.directory(&to, &metadata)?;
            let mut below = Vec::new();
            for entry in fs::read_dir(&from).map_err(host(&from))? {
                let entry = entry.map_err(host(&from))?;
                below.push((entry.path(), to.join(entry.file_name())));
            }
            below.sort();
            pending.extend(below.into_iter().rev());
            directories.push((from, to, metadata));
        }
        for (from, to, metadata) in directories.iter().rev() {
            self.attributes(from, to, metadata)?;
        }
        Ok(())
    }

    fn directory(&mut self, to: &Path, metadata: &Metadata) -> Result<(), CopyError> {
        if to.file_name().is_none() {
            return Ok(());
        }
        match self.fs.create(to, &new(FileKind::Directory, metadata)) {
            Ok(_) => {}
            Err(FsError::Exists) if self.fs.stat(to).map_err(volume(to))?.kind == FileKind::Directory => {}
            Err(error) => return Err(volume(to)(error)),
        }
        self.count(0);
        Ok(())
    }

    fn count(&mut self, bytes: u64) {
        self.done.files += 1;
        self.done.bytes += bytes;
        (self.progress)(self.done);
    }

    fn one(&mut self, from: &Path, to: &Path, metadata: &Metadata) -> Result<(), CopyError> {
        match self.fs.unlink(to) {
            Ok(()) | Err(FsError::NotFound) => {}
            Err(error) => return Err(volume(to)(error)),
        }
        if metadata.nlink() > 1 {
            if let Some(first) = self.links.get(&(metadata.dev(), metadata.ino())) {
                self.fs.link(first, to).map_err(volume(to))?;
                self.count(metadata.len());
                return Ok(());
            }
            self.links.insert((metadata.dev(), metadata.ino()), to.to_path_buf());
        }
        let kind = metadata.file_type();
        let mut bytes = 0;
        if kind.is_file() {
            self.fs.create(to, &new(FileKind::Regular, metadata)).map_err(volume(to))?;
            self.content(from, to, metadata.len())?;
            bytes = metadata.len();
        } else if kind.is_symlink() {
            let target = fs::read_link(from).map_err(host(from))?;
            let new = new(FileKind::Symlink, metadata);
            self.fs.symlink(target.as_os_str().as_bytes(), to, &new).map_err(volume(to))?;
        } else {
            let kind = if kind.is_block_device() {
                FileKind::BlockDevice
            } else if kind.is_char_device() {
                FileKind::CharDevice
            } else if kind.is_fifo() {
                FileKind::Fifo
            } else {
                FileKind::Socket
            };
            let (major, minor) = (rustix::fs::major(metadata.rdev()), rustix::fs::minor(metadata.rdev()));
            self.fs.create(to, &new(kind, metadata).device(major, minor)).map_err(volume(to))?;
        }
        self.attributes(from, to, metadata)?;
        self.count(bytes);
        Ok(())
    }

    /// Copies data, and leaves holes where the host has holes.
    fn content(&mut self, from: &Path, to: &Path, size: u64) -> Result<(), CopyError> {
        let source = File::open(from).map_err(host(from))?;
        let file = self.fs.open_file(to).map_err(volume(to))?;
        let mut offset = 0;
        while offset < size {
            let data = match rustix::fs::seek(&source, SeekFrom::Data(offset)) {
                Ok(data) => data,
                Err(rustix::io::Errno::NXIO) => break,
                Err(_) => offset,
            };
            let end = rustix::fs::seek(&source, SeekFrom::Hole(data)).unwrap_or(size).min(size);
            offset = data;
            while offset < end {
                let len = ((end - offset) as usize).min(CHUNK);
                let read = source.read_at(&mut self.buffer[..len], offset).map_err(host(from))?;
                if read == 0 {
                    break;
                }
                let written = file.write_at(offset, &self.buffer[..read]).map_err(volume(to))?;
                offset += written as u64;
                if written < read {
                    return Err(CopyError::Short { path: to.to_path_buf(), written: offset, wanted: size });
                }
            }
            if offset < end {
                break;
            }
        }
        if file.size() < size {
            file.truncate(size).map_err(volume(to))?;
        }
        Ok(())
    }

    fn attributes(&mut self, from: &Path, to: &Path, metadata: &Metadata) -> Result<(), CopyError> {
        for (name, value) in host_xattrs(from)? {
            match self.fs.set_xattr(to, &name, &value, SetMode::Any) {
                Ok(()) => {}
                Err(FsError::Attribute { .. } | FsError::WrongKind { .. }) => self.done.refused += 1,
                Err(error) => return Err(volume(to)(error)),
            }
        }
        if to.file_name().is_none() {
            return Ok(());
        }
        if metadata.is_dir() {
            self.fs.set_owner(to, Some(metadata.uid()), Some(metadata.gid())).map_err(volume(to))?;
            self.fs.set_permissions(to, (metadata.mode() & 0o7777) as u16).map_err(volume(to))?;
        }
        let time = |seconds, nanoseconds: i64| Some(Time { seconds, nanoseconds: nanoseconds as u32 });
        let times = SetTimes {
            accessed: time(metadata.atime(), metadata.atime_nsec()),
            modified: time(metadata.mtime(), metadata.mtime_nsec()),
        };
        self.fs.set_times(to, times).map_err(volume(to))
    }
}

fn new(kind: FileKind, metadata: &Metadata) -> NewFile {
    NewFile::new(kind, (metadata.mode() & 0o7777) as u16).owner(metadata.uid(), metadata.gid())
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
