//! From the host into a volume.
//!
//! # Locking
//!
//! The lock of the hard links is held while the first name of a file with several is made, so that the others find it.
//! No other lock is taken for longer than a call of [`Crew`] or [`Tally`].

use std::collections::HashMap;
use std::ffi::CString;
use std::fs::{self, File, Metadata, OpenOptions, ReadDir};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use f2fs::files::Xattr;
use f2fs::sync::{Arc, Mutex};
use f2fs::{FileKind, FileSystem, FsError, NewFile, SetMode, SetTimes, Time};
use rustix::fs::{OFlags, SeekFrom};

use super::crew::{Crew, Node};
use super::stream::Buffer;
use super::tally::Tally;
use super::{CopyError, CopyOptions, CopyProgress, Watch, host, incomplete, volume};

/// Entries of a directory that one worker copies before another may go on.
const PAGE: usize = 128;

/// Copies `from` of this machine to `to` in the volume. A directory that exists there is merged into, a file replaced.
/// A symbolic link is followed if it is `from` itself, and copied as a link below. An entry that is neither file nor
/// directory is read to its end if it is `from` itself: a pipe, a device, standard input as `/dev/stdin`.
///
/// Entries of a directory that cannot be copied are told to `watch` and counted; the rest is copied.
///
/// # Errors
/// [`CopyError`], where nothing more can be copied; files copied until then stay.
pub fn copy_in(
    fs: &FileSystem,
    from: &Path,
    to: &Path,
    options: &CopyOptions,
    watch: Watch<'_>,
) -> Result<CopyProgress, CopyError> {
    let metadata = fs::metadata(from).map_err(host(from))?;
    let total = if metadata.is_file() { metadata.len() } else { 0 };
    let copy = Inward { fs, links: Mutex::new(HashMap::new()), tally: Tally::new(watch, true, total) };
    if !metadata.is_dir() {
        copy.named(from, to, &metadata)?;
        return copy.tally.result();
    }
    if !options.recursive {
        return Err(CopyError::IsDirectory { path: from.to_path_buf() });
    }
    copy.directory(to, &metadata, true)?;
    let iter = fs::read_dir(from).map_err(host(from))?;
    let top = Node { parent: None, what: Directory { from: from.to_path_buf(), to: to.to_path_buf(), metadata } };
    let job = Job::Page { node: Arc::new(top), iter };
    Crew::run(job, options.workers(), Buffer::new, |buffer, job, crew| copy.work(buffer, job, crew));
    copy.tally.result()
}

/// A directory on its way.
struct Directory {
    from: PathBuf,
    to: PathBuf,
    metadata: Metadata,
}

enum Job {
    /// A directory is made.
    Enter { parent: Arc<Node<Directory>>, directory: Box<Directory> },
    /// Some entries of a directory are copied.
    Page { node: Arc<Node<Directory>>, iter: ReadDir },
}

struct Inward<'a> {
    fs: &'a FileSystem,
    /// Where the first name of a file with several names went.
    links: Mutex<HashMap<(u64, u64), PathBuf>>,
    tally: Tally<'a>,
}

impl Inward<'_> {
    fn work(&self, buffer: &mut Buffer, job: Job, crew: &Crew<Job>) {
        let (node, iter) = match job {
            Job::Page { node, iter } => (node, iter),
            Job::Enter { parent, directory } => match self.enter(&directory) {
                Ok(iter) => (Arc::new(Node { parent: Some(parent), what: *directory }), iter),
                Err(error) => {
                    self.tally.failed(error);
                    return self.release(parent);
                }
            },
        };
        if !self.tally.is_stopped() {
            self.page(buffer, &node, iter, crew);
        }
        self.release(node);
    }

    /// Directories get their times last, when nothing in them changes any more.
    fn release(&self, node: Arc<Node<Directory>>) {
        Node::release(node, |Directory { from, to, metadata }| {
            if self.tally.is_stopped() {
                return;
            }
            match self.attributes(&from, &to, &metadata) {
                Ok(refused) => self.tally.copied(0, refused),
                Err(error) => self.tally.failed(error),
            }
        });
    }

    fn enter(&self, Directory { from, to, metadata }: &Directory) -> Result<ReadDir, CopyError> {
        let iter = fs::read_dir(from).map_err(host(from))?;
        self.directory(to, metadata, false)?;
        Ok(iter)
    }

    fn page(&self, buffer: &mut Buffer, node: &Arc<Node<Directory>>, mut iter: ReadDir, crew: &Crew<Job>) {
        let Directory { from, to, .. } = &node.what;
        let mut below = Vec::new();
        let mut ends = false;
        while below.len() < PAGE && !ends {
            match iter.next() {
                Some(Ok(entry)) => below.push((entry.path(), to.join(entry.file_name()))),
                Some(Err(error)) => {
                    self.tally.failed(host(from)(error));
                    ends = true;
                }
                None => ends = true,
            }
        }
        if !ends {
            crew.add(Job::Page { node: Arc::clone(node), iter });
        }
        below.sort();
        for (from, to) in below {
            if self.tally.is_stopped() {
                break;
            }
            let result = match fs::symlink_metadata(&from).map_err(host(&from)) {
                Ok(metadata) if metadata.is_dir() => {
                    let directory = Box::new(Directory { from, to, metadata });
                    crew.add(Job::Enter { parent: Arc::clone(node), directory });
                    continue;
                }
                Ok(metadata) => self.entry(buffer, &from, &to, &metadata),
                Err(error) => Err(error),
            };
            if let Err(error) = result {
                self.tally.failed(error);
            }
        }
    }

    fn directory(&self, to: &Path, metadata: &Metadata, named: bool) -> Result<(), CopyError> {
        if to.file_name().is_none() {
            return Ok(());
        }
        let is_directory = || {
            let stat = if named { self.fs.metadata(to) } else { self.fs.symlink_metadata(to) };
            stat.map_err(volume(to)).map(|stat| stat.kind == FileKind::Directory)
        };
        // With a slash at the end only an existing directory could be meant.
        let path = without_slashes(to);
        match self.fs.create(path, &new(FileKind::Directory, metadata)) {
            Ok(_) => Ok(()),
            Err(FsError::Exists) if is_directory()? => Ok(()),
            Err(error) => Err(volume(to)(error)),
        }
    }

    /// Copies a source that the user named and that is not a directory.
    fn named(&self, from: &Path, to: &Path, metadata: &Metadata) -> Result<(), CopyError> {
        if to.as_os_str().as_bytes().ends_with(b"/") {
            return Err(volume(to)(FsError::NotDirectory));
        }
        let source = File::open(from).map_err(host(from))?;
        let stat = self.fs.symlink_metadata(to).ok();
        let file = match stat.map(|stat| stat.kind) {
            Some(FileKind::Directory) => return Err(volume(to)(FsError::IsDirectory)),
            // As cp does: into what the link names, and not through one that names nothing.
            Some(FileKind::Symlink) => {
                if !self.fs.exists(to).map_err(volume(to))? || self.fs.metadata(to).is_err() {
                    return Err(CopyError::Dangling { path: to.to_path_buf() });
                }
                let file = self.fs.open_file(to).map_err(volume(to))?;
                file.set_len(0).map_err(volume(to))?;
                file
            }
            other => {
                if other.is_some() {
                    self.fs.remove_file(to).map_err(volume(to))?;
                }
                let permissions = if metadata.is_file() { metadata.mode() & 0o7777 } else { 0o644 };
                let new = NewFile::new(FileKind::Regular, permissions as u16).owner(metadata.uid(), metadata.gid());
                self.fs.create(to, &new).map_err(volume(to))?;
                self.fs.open_file(to).map_err(volume(to))?
            }
        };
        let through_link = stat.is_some_and(|stat| stat.kind == FileKind::Symlink);
        let mut buffer = Buffer::new();
        let copied = if metadata.is_file() {
            content(&source, from, &file, to, metadata.len(), &mut buffer).map(|()| metadata.len())
        } else {
            stream(source, from, &file, to, &mut buffer).inspect(|bytes| self.tally.found(*bytes))
        };
        drop(file);
        let bytes = copied.map_err(|error| if through_link { incomplete(to, error) } else { self.undo(to, error) })?;
        if !metadata.is_file() {
            self.tally.copied(bytes, 0);
            return Ok(());
        }
        let refused = if through_link {
            0
        } else {
            // The attributes are those of the file that a link names.
            let resolved = fs::canonicalize(from).unwrap_or_else(|_| from.to_path_buf());
            self.attributes(&resolved, to, metadata)?
        };
        self.tally.copied(bytes, refused);
        Ok(())
    }

    /// Removes a file that was copied in part, so that nobody takes it for the whole.
    fn undo(&self, to: &Path, error: CopyError) -> CopyError {
        match self.fs.remove_file(to) {
            Ok(()) => error,
            Err(_) => incomplete(to, error),
        }
    }

    /// Copies an entry of a directory that is not a directory itself.
    fn entry(&self, buffer: &mut Buffer, from: &Path, to: &Path, metadata: &Metadata) -> Result<(), CopyError> {
        if metadata.is_file() {
            self.tally.found(metadata.len());
        }
        if metadata.nlink() < 2 {
            return self.make(buffer, from, to, metadata);
        }
        let mut links = self.links.lock();
        let identity = (metadata.dev(), metadata.ino());
        let Some(first) = links.get(&identity) else {
            self.make(buffer, from, to, metadata)?;
            links.insert(identity, to.to_path_buf());
            return Ok(());
        };
        self.create(to, || self.fs.link(first, to))?;
        self.tally.copied(if metadata.is_file() { metadata.len() } else { 0 }, 0);
        Ok(())
    }

    /// Creates an entry; a file in the way that is not a directory is removed.
    fn create<T>(&self, to: &Path, make: impl Fn() -> Result<T, FsError>) -> Result<T, CopyError> {
        let made = make().or_else(|error| match error {
            FsError::Exists => {
                self.fs.remove_file(to)?;
                make()
            }
            error => Err(error),
        });
        made.map_err(volume(to))
    }

    fn make(&self, buffer: &mut Buffer, from: &Path, to: &Path, metadata: &Metadata) -> Result<(), CopyError> {
        let kind = metadata.file_type();
        let mut bytes = 0;
        if kind.is_file() {
            let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
            let source = OpenOptions::new().read(true).custom_flags(flags).open(from).map_err(host(from))?;
            self.create(to, || self.fs.create(to, &new(FileKind::Regular, metadata)))?;
            let file = self.fs.open_file(to).map_err(volume(to))?;
            content(&source, from, &file, to, metadata.len(), buffer).map_err(|error| self.undo(to, error))?;
            bytes = metadata.len();
        } else if kind.is_symlink() {
            let target = fs::read_link(from).map_err(host(from))?;
            let new = new(FileKind::Symlink, metadata);
            self.create(to, || self.fs.symlink(target.as_os_str().as_bytes(), to, &new))?;
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
            self.create(to, || self.fs.create(to, &new(kind, metadata).device(major, minor)))?;
        }
        let refused = self.attributes(from, to, metadata)?;
        self.tally.copied(bytes, refused);
        Ok(())
    }

    fn attributes(&self, from: &Path, to: &Path, metadata: &Metadata) -> Result<u64, CopyError> {
        let mut refused = 0;
        for (name, value) in host_xattrs(from)? {
            match self.fs.set_xattr(to, &name, &value, SetMode::Any) {
                Ok(()) => {}
                Err(FsError::Attribute { .. } | FsError::WrongKind { .. }) => refused += 1,
                Err(error) => return Err(volume(to)(error)),
            }
        }
        if to.file_name().is_none() {
            return Ok(refused);
        }
        if metadata.is_dir() {
            self.fs.set_owner(to, Some(metadata.uid()), Some(metadata.gid())).map_err(volume(to))?;
            self.fs.set_permissions(to, (metadata.mode() & 0o7777) as u16).map_err(volume(to))?;
        }
        let time = |seconds, nanoseconds: i64| Time { seconds, nanoseconds: nanoseconds as u32 };
        let times = SetTimes::new()
            .accessed(time(metadata.atime(), metadata.atime_nsec()))
            .modified(time(metadata.mtime(), metadata.mtime_nsec()));
        self.fs.set_times(to, times).map_err(volume(to))?;
        Ok(refused)
    }
}

/// Copies data, and leaves holes where the host has holes.
fn content(
    source: &File,
    from: &Path,
    file: &f2fs::File,
    to: &Path,
    size: u64,
    buffer: &mut Buffer,
) -> Result<(), CopyError> {
    let mut offset = 0;
    while offset < size {
        let data = match rustix::fs::seek(source, SeekFrom::Data(offset)) {
            Ok(data) => data,
            Err(rustix::io::Errno::NXIO) => break,
            Err(_) => offset,
        };
        let end = rustix::fs::seek(source, SeekFrom::Hole(data)).unwrap_or(size).min(size);
        offset = data;
        while offset < end {
            let buffer = buffer.bytes();
            let len = ((end - offset) as usize).min(buffer.len());
            let read = source.read_at(&mut buffer[..len], offset).map_err(host(from))?;
            if read == 0 {
                break;
            }
            put(file, to, offset, &buffer[..read], size)?;
            offset += read as u64;
        }
        if offset < end {
            break;
        }
    }
    if file.size() < size {
        file.set_len(size).map_err(volume(to))?;
    }
    Ok(())
}

/// Copies a stream up to its end; returns how many bytes.
fn stream(mut source: File, from: &Path, file: &f2fs::File, to: &Path, buffer: &mut Buffer) -> Result<u64, CopyError> {
    let (mut offset, mut ended) = (0, false);
    loop {
        // Pipes give little at a time: blocks are filled, so that each is written once.
        let mut filled = 0;
        while !ended && filled < buffer.bytes().len() {
            match source.read(&mut buffer.bytes()[filled..]) {
                // A terminal would go on behind its end.
                Ok(0) => ended = true,
                Ok(read) => filled += read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(host(from)(error)),
            }
        }
        if filled == 0 {
            return Ok(offset);
        }
        put(file, to, offset, &buffer.bytes()[..filled], offset + filled as u64)?;
        offset += filled as u64;
    }
}

/// Writes all of the bytes, of so many that there are.
fn put(file: &f2fs::File, to: &Path, offset: u64, bytes: &[u8], wanted: u64) -> Result<(), CopyError> {
    let written = match file.write_at(bytes, offset) {
        Ok(written) => written,
        Err(error) if error.is_no_space() => 0,
        Err(error) => return Err(volume(to)(error)),
    };
    if written < bytes.len() {
        return Err(CopyError::Short { path: to.to_path_buf(), written: offset + written as u64, wanted });
    }
    Ok(())
}

fn without_slashes(path: &Path) -> &Path {
    let bytes = path.as_os_str().as_bytes();
    let len = bytes.iter().rposition(|byte| *byte != b'/').map_or(bytes.len(), |last| last + 1);
    Path::new(std::ffi::OsStr::from_bytes(&bytes[..len]))
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
