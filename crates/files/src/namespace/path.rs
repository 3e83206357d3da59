//! Paths: from bytes to inodes.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use f2fs_sync::{Arc, protocol_value};

use crate::FsError;
use crate::cached_directory::CachedDirectory;
use crate::file_data::FileData;
use crate::form::Form;
use crate::inode::Inode;
use crate::name::Name;
use crate::namespace::Namespace;
use crate::stat::FileKind;

/// Symbolic links followed in one look-up at most, as in Linux.
pub(crate) const MAX_LINKS: u32 = 40;

/// The treatment of a symbolic link at the end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Last {
    /// Follow it.
    Follow,
    /// It is what is meant.
    Keep,
}

/// A last component of a path that names no entry which could be made, moved or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Special {
    /// There is none: the root.
    Root,
    /// `.`
    Here,
    /// `..`
    Up,
}

/// The last component of a path, in its directory: the form in which a name is changed. Each operation chooses its own
/// error for `.`, `..` and `/` ([`Special`]), and for slashes behind the name, before it changes anything.
#[derive(Debug)]
pub(crate) struct LastName<'p> {
    pub(crate) parent: Arc<CachedDirectory>,
    pub(crate) name: Result<Name<'p>, Special>,
    /// Slashes follow: the path means a directory.
    pub(crate) slash: bool,
}

pub(crate) fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

/// The directories of a path, and its last name; `None` if it ends in a slash, or has none.
pub(super) fn split(path: &[u8]) -> Option<(&[u8], &[u8])> {
    let slash = path.iter().rposition(|byte| *byte == b'/')?;
    (slash + 1 < path.len()).then(|| (&path[..slash], &path[slash + 1..]))
}

/// Bytes as a path, for names that came from a directory.
#[must_use]
pub fn path_from_bytes(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// Does something with the inode that a name means. If the inode was freed on the way, the error may come from that.
/// The name then leads to another inode by now, or to none, and is looked up again: a name that others replace is there
/// all the time.
pub(crate) fn lasting<T>(
    look_up: impl Fn() -> Result<Arc<Inode>, FsError>,
    with: impl Fn(&Arc<Inode>) -> Result<T, FsError>,
) -> Result<T, FsError> {
    let mut inode = look_up()?;
    loop {
        let failed = match with(&inode) {
            Err(error) if protocol_value!("path_looked_up_once", inode.life.lock().freed, false) => error,
            result => return result,
        };
        let now = look_up()?;
        // The name of an inode goes before the inode, so this is a damaged volume.
        if Arc::ptr_eq(&now, &inode) {
            return Err(failed);
        }
        inode = now;
    }
}

impl Namespace<'_> {
    pub(crate) fn root(&self) -> Result<Arc<Inode>, FsError> {
        self.inode(self.volume.geometry().root_ino)
    }

    /// The inode that a name in a directory means. `.` and `..` work, too.
    pub(crate) fn child(&self, parent: &Inode, name: &[u8]) -> Result<Arc<Inode>, FsError> {
        self.with_child(parent, name, |child, _| Ok(child))
    }

    /// Does something with the inode that a name in a directory means, and with the directory's stamp. The name's stripe
    /// is held: as long as the name is there the inode cannot be freed.
    pub(super) fn with_child<T>(
        &self,
        parent: &Inode,
        name: &[u8],
        with: impl FnOnce(Arc<Inode>, u64) -> Result<T, FsError>,
    ) -> Result<T, FsError> {
        let directory = parent.directory()?;
        if name == b"." {
            return with(self.inode(parent.ino)?, directory.moved.seen());
        }
        let name = if name == b".." { Name::PARENT } else { Name::new(name)? };
        let stripe = directory.stripe(directory.stripe_of(name.hash()));
        let _stripe = protocol_value!("look_up_without_its_stripe", Some(stripe.read()), None);
        if directory.is_dead() {
            return Err(FsError::NotFound);
        }
        let _gate = self.volume.begin_read();
        let seen = directory.moved.seen();
        let found = directory.find(&self.volume, name);
        self.dentries.trim(&self.inodes);
        let found = found?.ok_or(FsError::NotFound)?;
        with(self.inode(found.ino)?, seen)
    }

    /// The directory that a path of directories means; `None` if there is a symbolic link on the way. A component that
    /// is not a directory is returned if it is the last.
    pub(super) fn cached_directory(&self, path: &[u8]) -> Result<Option<Arc<CachedDirectory>>, FsError> {
        let mut here = match self.path_cache.root() {
            Some(root) => root,
            None => self.path_cache.note_root(self.root()?),
        };
        for part in path.split(|byte| *byte == b'/').filter(|part| !part.is_empty()) {
            if let Some(next) = self.path_cache.get(&here, part) {
                here = next;
                continue;
            }
            let (child, seen) = self.with_child(&here, part, |child, seen| Ok((child, seen)))?;
            here = match child.kind {
                FileKind::Symlink => return Ok(None),
                FileKind::Directory if part != b"." && part != b".." => self.path_cache.note(&here, part, seen, child),
                _ => CachedDirectory::new(child),
            };
        }
        Ok(Some(here))
    }

    /// The inode that a path means. It begins at the root, with or without a slash; an empty one means nothing.
    pub(crate) fn resolve(&self, path: &[u8], last: Last) -> Result<Arc<Inode>, FsError> {
        if path.is_empty() {
            return Err(FsError::NotFound);
        }
        if let Some((parent, name)) = split(path)
            && let Some(parent) = self.cached_directory(parent)?
        {
            let child = self.child(&parent, name)?;
            if child.kind != FileKind::Symlink || last == Last::Keep {
                return Ok(child);
            }
        }
        let mut links = 0;
        self.walk(self.root()?, path, last, &mut links)
    }

    /// The directory and the name that a path means; the name need not exist.
    pub(crate) fn resolve_parent<'p>(&self, path: &'p [u8]) -> Result<LastName<'p>, FsError> {
        if path.is_empty() {
            return Err(FsError::NotFound);
        }
        let trimmed = match path.iter().rposition(|byte| *byte != b'/') {
            Some(end) => &path[..=end],
            None => &path[..0],
        };
        let (parent, name) = match trimmed.iter().rposition(|byte| *byte == b'/') {
            Some(slash) => (&trimmed[..slash], &trimmed[slash + 1..]),
            None => (&b""[..], trimmed),
        };
        let name = Name::new(name).map(Ok).or_else(|error| match name {
            b"" => Ok(Err(Special::Root)),
            b"." => Ok(Err(Special::Here)),
            b".." => Ok(Err(Special::Up)),
            _ => Err(error),
        })?;
        let parent = match self.cached_directory(parent)? {
            Some(parent) => parent,
            None => CachedDirectory::new(self.resolve(parent, Last::Follow)?),
        };
        parent.directory()?;
        Ok(LastName { parent, name, slash: trimmed.len() < path.len() })
    }

    /// The directory and the name of an entry that is to be made. Slashes behind it are for directories.
    pub(crate) fn resolve_new<'p>(
        &self,
        path: &'p [u8],
        directory: bool,
    ) -> Result<(Arc<CachedDirectory>, Name<'p>), FsError> {
        let last = self.resolve_parent(path)?;
        let name = last.name.map_err(|_| FsError::Exists)?;
        if last.slash && !directory {
            self.child(&last.parent, name.bytes())?;
            return Err(FsError::Exists);
        }
        Ok((last.parent, name))
    }

    fn walk(&self, start: Arc<Inode>, path: &[u8], last: Last, links: &mut u32) -> Result<Arc<Inode>, FsError> {
        let mut here = if path.first() == Some(&b'/') { self.root()? } else { start };
        let mut parts = path.split(|byte| *byte == b'/').filter(|part| !part.is_empty()).peekable();
        let must_be_directory = path.last() == Some(&b'/');
        while let Some(part) = parts.next() {
            let follow = parts.peek().is_some() || last == Last::Follow || must_be_directory;
            let next = lasting(
                || self.child(&here, part),
                |next| match next.kind {
                    FileKind::Symlink if follow => self.read_link_target(next).map(Err),
                    _ => Ok(Ok(next.clone())),
                },
            )?;
            here = match next {
                Ok(next) => next,
                Err(target) => {
                    *links += 1;
                    if *links > MAX_LINKS {
                        return Err(FsError::Loop { limit: MAX_LINKS });
                    }
                    self.walk(here, &target, Last::Follow, links)?
                }
            };
        }
        if must_be_directory {
            here.directory()?;
        }
        Ok(here)
    }

    /// The target of a symbolic link, or the text that is shown for it without its key.
    pub(crate) fn read_link_target(&self, inode: &Inode) -> Result<Vec<u8>, FsError> {
        if inode.kind != FileKind::Symlink {
            return Err(FsError::WrongKind { operation: "read the target", kind: inode.kind.name() });
        }
        let size = inode.size();
        let limit = f2fs_format::BLOCK_SIZE as u64;
        if size > limit {
            return Err(FsError::corrupt("size of a symbolic link", size, 1, limit));
        }
        let mut target = vec![0; size as usize];
        let len = FileData(self).read_at(inode, 0, &mut target)?;
        target.truncate(len);
        if inode.form.encrypted && !target.is_empty() {
            return Form::target(&target);
        }
        // Old kernels stored the terminator as well.
        while target.last() == Some(&0) {
            target.pop();
        }
        if target.is_empty() { Err(FsError::NoTarget) } else { Ok(target) }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
