//! From a volume to the host.
//!
//! # Locking
//!
//! The lock of the hard links is held while a file with several names is copied, so that its other names find it whole;
//! the lock of the known directories for one look. No other lock is taken for longer than a call of [`Crew`] or
//! [`Tally`].

mod directory;
mod entry;

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use f2fs::files::path_from_bytes;
use f2fs::format::{Corruption, Nid};
use f2fs::sync::{Arc, Mutex};
use f2fs::{DirEntry, FileKind, FileSystem, FsError, InodeRef, Metadata};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use self::directory::{Directory, Holds};
use self::entry::{Entry, Place};
use super::below::Below;
use super::crew::{Crew, Node};
use super::onto::{Made, attributes};
use super::stream::{Buffer, fill, write_to};
use super::tally::Tally;
use super::{CopyError, CopyOptions, CopyProgress, VolumeFiles, Watch, host, incomplete, volume};

/// Entries of a directory that one worker copies before another may go on.
const PAGE: usize = 128;

/// Copies `from` of the volume to `to` on this machine. A directory that exists there is merged into; a file or
/// symbolic link below it is replaced, but none that the volume lies on. Nothing outside of it is touched, whatever names and links the volume holds. A
/// file that is copied by itself is written into the file that `to` names, as `cp` does: a device or pipe gets the
/// bytes.
///
/// Entries of a directory that cannot be copied are told to `watch` and counted; the rest is copied.
///
/// # Errors
/// [`CopyError`], where nothing more can be copied; files copied until then stay. [`CopyError::OwnFile`] if the volume
/// lies on `to`.
pub fn copy_out(
    fs: &FileSystem,
    from: &Path,
    to: &Path,
    options: &CopyOptions,
    watch: Watch<'_>,
) -> Result<CopyProgress, CopyError> {
    let stat = fs.symlink_metadata(from).map_err(volume(from))?;
    let total = match stat.kind {
        FileKind::Regular => stat.size,
        FileKind::Directory => fs.statfs().valid_blocks * 4096,
        _ => 0,
    };
    let tally = Tally::new(watch, false, total);
    if options.volume_files.has_at(to) {
        return Err(CopyError::OwnFile { path: to.to_path_buf() });
    }
    if stat.kind == FileKind::Regular {
        let (bytes, lost) = one_file(fs, from, to, &stat, options)?;
        tally.copied(bytes, &lost);
        return tally.result();
    }
    if stat.kind != FileKind::Directory {
        let error = |kind: io::ErrorKind| host(to)(kind.into());
        if to.as_os_str().as_bytes().ends_with(b"/") {
            return Err(error(io::ErrorKind::NotADirectory));
        }
        let name = to.file_name().ok_or_else(|| error(io::ErrorKind::IsADirectory))?;
        let parent = match to.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let inode = last(fs, from).map_err(volume(from))?;
        let copy = Outward::new(from, parent, options, tally)?;
        let directory = copy.below.directory(b"", OFlags::PATH).map_err(host(parent))?;
        let entry = Entry { node: None, directory: &directory, name: name.as_bytes(), inode: &inode };
        copy.entry(&mut Buffer::new(), &entry, &stat)?;
        return copy.tally.result();
    }
    if !options.recursive {
        return Err(CopyError::IsDirectory { path: from.to_path_buf() });
    }
    match fs::create_dir(to) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && to.is_dir() => {}
        result => result.map_err(host(to))?,
    }
    let copy = Outward::new(from, to, options, tally)?;
    copy.known.lock().insert(stat.ino);
    let inode = fs.inode_at(from).map_err(volume(from))?;
    let top = Node { parent: None, what: Directory::top(inode, stat) };
    let job = Job::Page { node: Arc::new(top), position: 0 };
    Crew::run(job, options.workers(), Buffer::new, |buffer, job, crew| copy.work(buffer, job, crew));
    copy.tally.result()
}

/// What a path means that is not a directory. A symbolic link at the end is not followed.
fn last(fs: &FileSystem, path: &Path) -> Result<InodeRef, FsError> {
    let name = path.file_name().ok_or(FsError::IsDirectory)?;
    // Paths begin at the root, with or without a slash.
    let above = path.parent().filter(|above| !above.as_os_str().is_empty());
    fs.inode_at(above.unwrap_or(Path::new("/")))?.lookup(name.as_bytes())
}

/// Copies a regular file into the file that `to` names.
fn one_file(
    fs: &FileSystem,
    from: &Path,
    to: &Path,
    stat: &Metadata,
    options: &CopyOptions,
) -> Result<(u64, Vec<CopyError>), CopyError> {
    let file = fs.open_file(from).map_err(volume(from))?;
    let before = fs::symlink_metadata(to).ok();
    if before.as_ref().is_some_and(fs::Metadata::is_symlink) && !to.exists() {
        return Err(CopyError::Dangling { path: to.to_path_buf() });
    }
    let out = OpenOptions::new().write(true).create(true).truncate(true).open(to).map_err(host(to))?;
    if !out.metadata().map_err(host(to))?.is_file() {
        return Ok((write_to(&file, from, &out, to)?, Vec::new()));
    }
    let copied = fill(&file, from, &out, to, &mut Buffer::new(), options.workers()).and_then(|bytes| {
        let xattrs = fs.xattrs(from).map_err(volume(from))?;
        let out = OwnedFd::from(out);
        Ok((bytes, attributes(&Made::Open(&out), || to.to_path_buf(), stat, &xattrs).map_err(host(to))?))
    });
    copied.map_err(|error| {
        let gone = before.is_none() && fs::remove_file(to).is_ok();
        if gone { error } else { incomplete(to, error) }
    })
}

enum Job {
    /// A directory is made.
    Enter { parent: Arc<Node<Directory>>, name: Vec<u8> },
    /// Some entries of a directory are copied, from a position on.
    Page { node: Arc<Node<Directory>>, position: u64 },
}

struct Outward<'a> {
    /// The path in the volume that the user named.
    from: PathBuf,
    /// The path on the host that the user named.
    to: PathBuf,
    below: Below,
    /// Directories below that are held open.
    holds: Holds,
    /// Directories of the volume that were entered.
    known: Mutex<HashSet<Nid>>,
    /// Where the first name of a file with several names is.
    links: Mutex<HashMap<Nid, Place>>,
    tally: Tally<'a>,
    skip_special: bool,
    volume_files: &'a VolumeFiles,
    workers: usize,
}

impl<'a> Outward<'a> {
    fn new(from: &Path, to: &Path, options: &'a CopyOptions, tally: Tally<'a>) -> Result<Self, CopyError> {
        Ok(Outward {
            from: from.to_path_buf(),
            to: to.to_path_buf(),
            below: Below::new(to).map_err(host(to))?,
            holds: Holds::default(),
            known: Mutex::new(HashSet::new()),
            links: Mutex::new(HashMap::new()),
            tally,
            skip_special: options.skip_special,
            volume_files: &options.volume_files,
            workers: options.workers(),
        })
    }

    fn work(&self, buffer: &mut Buffer, job: Job, crew: &Crew<Job>) {
        let (node, position) = match job {
            Job::Page { node, position } => (node, position),
            Job::Enter { parent, name } => match self.enter(&parent, &name) {
                Ok(directory) => (Arc::new(Node { parent: Some(parent), what: directory }), 0),
                Err(error) => {
                    self.tally.failed(error);
                    return self.release(parent);
                }
            },
        };
        if !self.tally.is_stopped()
            && let Err(error) = self.page(buffer, &node, position, crew)
        {
            self.tally.failed(error);
        }
        self.release(node);
    }

    fn release(&self, node: Arc<Node<Directory>>) {
        Node::release(node, |node| match self.finish(node) {
            Ok(lost) => self.tally.copied(0, &lost),
            Err(error) => self.tally.failed(error),
        });
    }

    /// The path on the host, for messages.
    fn shown(&self, below: &[u8]) -> PathBuf {
        self.to.join(OsStr::from_bytes(below))
    }

    /// The path in the volume, for messages.
    fn source(&self, below: &[u8]) -> PathBuf {
        // An empty path would add a slash.
        if below.is_empty() { self.from.clone() } else { self.from.join(path_from_bytes(below)) }
    }

    /// What is said of a directory that the volume cannot read.
    fn unread(&self, node: &Node<Directory>) -> impl Fn(FsError) -> CopyError {
        |error| volume(&self.source(&node.below()))(error)
    }

    /// What is said of a directory that the host cannot make or open.
    fn failed(&self, node: &Node<Directory>) -> impl Fn(io::Error) -> CopyError {
        |error| host(&self.shown(&node.below()))(error)
    }

    fn enter(&self, parent: &Node<Directory>, name: &[u8]) -> Result<Directory, CopyError> {
        let below = || crate::join(&parent.below(), name);
        let unread = |error: FsError| volume(&self.source(&below()))(error);
        let inode = parent.what.inode.lookup(name).map_err(unread)?;
        let stat = inode.metadata().map_err(unread)?;
        if !self.known.lock().insert(stat.ino) {
            return Err(unread(crate::second_name()));
        }
        let made = parent.open(&self.below, OFlags::PATH).map_err(self.failed(parent))?;
        match rustix::fs::mkdirat(&made, OsStr::from_bytes(name), Mode::from_raw_mode(0o700)) {
            // Whether it is a directory is found out when it is opened.
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(host(&self.shown(&below()))(error.into())),
        }
        Ok(Directory::entered(parent, &made, name, (inode, stat), &self.holds))
    }

    fn finish(&self, node: &Node<Directory>) -> Result<Vec<CopyError>, CopyError> {
        let made = node.open(&self.below, OFlags::RDONLY).map_err(self.failed(node))?;
        let xattrs = node.what.inode.xattrs().map_err(self.unread(node))?;
        attributes(&Made::Open(&made), || self.shown(&node.below()), &node.what.stat, &xattrs)
            .map_err(self.failed(node))
    }

    fn page(
        &self,
        buffer: &mut Buffer,
        node: &Arc<Node<Directory>>,
        position: u64,
        crew: &Crew<Job>,
    ) -> Result<(), CopyError> {
        let directory = &node.what.inode;
        let made = node.open(&self.below, OFlags::PATH).map_err(self.failed(node))?;
        let list = || directory.open_dir()?.read(position, PAGE);
        let entries = match list() {
            Err(FsError::BadEntry(bad)) => {
                crew.add(Job::Page { node: Arc::clone(node), position: bad.next });
                self.tally.failed(self.unread(node)(FsError::BadEntry(bad)));
                return Ok(());
            }
            listed => listed.map_err(self.unread(node))?,
        };
        let Some(last) = entries.last() else { return Ok(()) };
        crew.add(Job::Page { node: Arc::clone(node), position: last.next });
        let (mut at, first) = (position, position == 0);
        for (index, DirEntry { name, ino, next, .. }) in entries.into_iter().enumerate() {
            let position = std::mem::replace(&mut at, next);
            if self.tally.is_stopped() {
                break;
            }
            if first && index < 2 && (name == b"." || name == b"..") {
                continue;
            }
            if !is_name(&name) {
                self.tally.failed(CopyError::BadName { path: self.source(&node.below()), name });
                continue;
            }
            let unread = |error| volume(&self.source(&crate::join(&node.below(), &name)))(error);
            let found = directory.lookup(&name).and_then(|inode| Ok((inode.metadata()?, inode)));
            let result = match found.map_err(unread) {
                Ok((stat, _)) if stat.ino != ino && is_still(directory, position, &name, ino) => {
                    let what = "inodes of a name";
                    Err(unread(Corruption::Range { what, found: 2, min: 1, max: 1 }.into()))
                }
                Ok((stat, _)) if stat.kind == FileKind::Directory => {
                    crew.add(Job::Enter { parent: Arc::clone(node), name });
                    continue;
                }
                Ok((stat, inode)) => {
                    let entry = Entry { node: Some(node), directory: &made, name: &name, inode: &inode };
                    self.entry(buffer, &entry, &stat)
                }
                Err(error) => Err(error),
            };
            if let Err(error) = result {
                self.tally.failed(error);
            }
        }
        Ok(())
    }
}

/// Whether an entry is still at its place of the listing: a look-up then finds another one of the same name.
fn is_still(directory: &InodeRef, position: u64, name: &[u8], ino: Nid) -> bool {
    let listed = directory.open_dir().and_then(|directory| directory.read(position, 1));
    listed.is_ok_and(|listed| listed.first().is_some_and(|entry| entry.name == name && entry.ino == ino))
}

/// Whether the bytes are one name in a directory.
fn is_name(name: &[u8]) -> bool {
    let dots = name == b"." || name == b"..";
    (1..=255).contains(&name.len()) && !dots && !name.iter().any(|byte| matches!(byte, b'/' | 0))
}
