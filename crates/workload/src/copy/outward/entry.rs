//! Anything but a directory on its way to the host.

use std::ffi::OsStr;
use std::fs::File as HostFile;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use f2fs::{FileKind, InodeRef, Metadata};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::Outward;
use super::directory::Directory;
use crate::copy::crew::Node;
use crate::copy::onto::{Made, attributes};
use crate::copy::stream::{Buffer, fill};
use crate::copy::volume_files::Identity;
use crate::copy::{CopyError, host, incomplete, volume};

/// An entry on its way.
pub(super) struct Entry<'a> {
    /// The directory that it stands in; `None`: the user named it.
    pub(super) node: Option<&'a Node<Directory>>,
    /// That directory on the host.
    pub(super) directory: &'a OwnedFd,
    pub(super) name: &'a [u8],
    pub(super) inode: &'a InodeRef,
}

impl Entry<'_> {
    fn name(&self) -> &OsStr {
        OsStr::from_bytes(self.name)
    }

    /// The path of its directory below the destination.
    fn above(&self) -> Vec<u8> {
        self.node.map_or_else(Vec::new, Node::below)
    }

    /// Its path in the volume.
    fn from(&self, copy: &Outward<'_>) -> PathBuf {
        match self.node {
            Some(node) => copy.source(&crate::join(&node.below(), self.name)),
            None => copy.from.clone(),
        }
    }

    /// Its path on the host.
    fn to(&self, copy: &Outward<'_>) -> PathBuf {
        copy.shown(&crate::join(&self.above(), self.name))
    }
}

/// A name on the host: the path of its directory below the destination, and the name there.
pub(super) struct Place {
    below: Vec<u8>,
    name: Vec<u8>,
}

impl Outward<'_> {
    /// Copies anything but a directory.
    pub(super) fn entry(&self, buffer: &mut Buffer, entry: &Entry<'_>, stat: &Metadata) -> Result<(), CopyError> {
        if stat.links < 2 {
            return self.make(buffer, entry, stat);
        }
        let mut links = self.links.lock();
        let Some(Place { below, name }) = links.get(&stat.ino) else {
            self.make(buffer, entry, stat)?;
            links.insert(stat.ino, Place { below: entry.above(), name: entry.name.to_vec() });
            return Ok(());
        };
        let first = self.below.directory(below, OFlags::PATH).map_err(host(&self.shown(below)))?;
        self.create(entry, stat, || {
            rustix::fs::linkat(&first, OsStr::from_bytes(name), entry.directory, entry.name(), AtFlags::empty())
        })?;
        self.tally.copied(if stat.kind == FileKind::Regular { stat.size } else { 0 }, &[]);
        Ok(())
    }

    /// Creates an entry; a file or link that is in the way goes, and so does a special file for one of its kind.
    fn create<T>(
        &self,
        entry: &Entry<'_>,
        stat: &Metadata,
        make: impl Fn() -> rustix::io::Result<T>,
    ) -> Result<T, CopyError> {
        let failed = |error: Errno| host(&entry.to(self))(error.into());
        match make() {
            Err(Errno::EXIST) => {}
            result => return result.map_err(failed),
        }
        let there = rustix::fs::statat(entry.directory, entry.name(), AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?;
        if self.volume_files.has(Identity { device: there.st_dev, ino: there.st_ino }) {
            return Err(CopyError::OwnFile { path: entry.to(self) });
        }
        let kind = FileType::from_raw_mode(there.st_mode);
        let goes = matches!(kind, FileType::RegularFile | FileType::Symlink) || Some(kind) == special(stat.kind);
        if !goes {
            return Err(failed(Errno::EXIST));
        }
        rustix::fs::unlinkat(entry.directory, entry.name(), AtFlags::empty()).and_then(|()| make()).map_err(failed)
    }

    fn make(&self, buffer: &mut Buffer, entry: &Entry<'_>, stat: &Metadata) -> Result<(), CopyError> {
        let unread = |error| volume(&entry.from(self))(error);
        let xattrs = entry.inode.xattrs().map_err(unread)?;
        if stat.kind == FileKind::Regular {
            let (from, to) = (entry.from(self), entry.to(self));
            let file = entry.inode.open_file().map_err(unread)?;
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let mode = Mode::from_raw_mode(0o600);
            let out = self.create(entry, stat, || rustix::fs::openat(entry.directory, entry.name(), flags, mode))?;
            let out = HostFile::from(out);
            let copied = fill(&file, &from, &out, &to, buffer, self.workers).and_then(|bytes| {
                let out = OwnedFd::from(out);
                Ok((bytes, attributes(&Made::Open(&out), || to.clone(), stat, &xattrs).map_err(host(&to))?))
            });
            let (bytes, lost) = copied.map_err(|error| {
                match rustix::fs::unlinkat(entry.directory, entry.name(), AtFlags::empty()) {
                    Ok(()) => error,
                    Err(_) => incomplete(&to, error),
                }
            })?;
            self.tally.copied(bytes, &lost);
            return Ok(());
        }
        if stat.kind == FileKind::Symlink {
            let target = entry.inode.read_link().map_err(unread)?;
            let target = OsStr::from_bytes(&target);
            self.create(entry, stat, || rustix::fs::symlinkat(target, entry.directory, entry.name()))?;
        } else if let Some(kind) = special(stat.kind) {
            if self.skip_special {
                self.tally.left_out();
                return Ok(());
            }
            let device = stat.device.map_or(0, |device| rustix::fs::makedev(device.major, device.minor));
            let mode = Mode::from_raw_mode(0o600);
            self.create(entry, stat, || rustix::fs::mknodat(entry.directory, entry.name(), kind, mode, device))?;
        }
        let made = Made::Named(entry.directory, entry.name);
        let lost = attributes(&made, || entry.to(self), stat, &xattrs).map_err(|error| host(&entry.to(self))(error))?;
        self.tally.copied(0, &lost);
        Ok(())
    }
}

/// The type of the host's special files; `None` for the others.
fn special(kind: FileKind) -> Option<FileType> {
    match kind {
        FileKind::BlockDevice => Some(FileType::BlockDevice),
        FileKind::CharDevice => Some(FileType::CharacterDevice),
        FileKind::Fifo => Some(FileType::Fifo),
        FileKind::Socket => Some(FileType::Socket),
        FileKind::Regular | FileKind::Directory | FileKind::Symlink => None,
    }
}
