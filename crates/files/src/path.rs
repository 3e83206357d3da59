//! Paths: from bytes to inodes.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use f2fs_format::dentry::check_name;
use f2fs_format::hash::dentry_hash;
use f2fs_sync::Arc;

use crate::FsError;
use crate::filesystem::Core;
use crate::inode::Inode;
use crate::stat::FileKind;

/// Symbolic links followed in one look-up at most, as in Linux.
const MAX_LINKS: u32 = 40;

/// What to do with a symbolic link at the end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Last {
    /// Follow it.
    Follow,
    /// It is what is meant.
    Keep,
}

pub(crate) fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

/// Bytes as a path, for names that came from a directory.
#[must_use]
pub fn path_from_bytes(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

impl Core {
    pub(crate) fn root(&self) -> Result<Arc<Inode>, FsError> {
        self.inode(self.volume.geometry().root_ino)
    }

    /// The inode that a name in a directory means. `.` and `..` work, too.
    pub(crate) fn child(&self, parent: &Inode, name: &[u8]) -> Result<Arc<Inode>, FsError> {
        let directory = parent.directory()?;
        if name == b"." {
            return self.inode(parent.ino);
        }
        if name != b".." {
            check_name(name).map_err(FsError::Name)?;
        }
        let hash = dentry_hash(name);
        // Held until the inode is loaded: as long as the name is there the inode cannot be freed.
        let _stripe = directory.stripe(directory.stripe_of(hash)).read();
        if directory.is_dead() {
            return Err(FsError::NotFound);
        }
        let _gate = self.volume.begin_read();
        let found = directory.find(self, parent, name, hash)?.ok_or(FsError::NotFound)?;
        self.inode(found.ino)
    }

    /// The inode that a path means. It begins at the root, with or without a slash.
    pub(crate) fn resolve(&self, path: &[u8], last: Last) -> Result<Arc<Inode>, FsError> {
        let mut links = 0;
        self.walk(self.root()?, path, last, &mut links)
    }

    /// The directory and the name that a path means; the name need not exist. Refuses paths without a name.
    pub(crate) fn resolve_parent<'p>(&self, path: &'p [u8]) -> Result<(Arc<Inode>, &'p [u8]), FsError> {
        let trimmed = match path.iter().rposition(|byte| *byte != b'/') {
            Some(end) => &path[..=end],
            None => return Err(FsError::Invalid("a path without a name")),
        };
        let (parent, name) = match trimmed.iter().rposition(|byte| *byte == b'/') {
            Some(slash) => (&trimmed[..slash], &trimmed[slash + 1..]),
            None => (&b""[..], trimmed),
        };
        check_name(name).map_err(FsError::Name)?;
        let parent = self.resolve(parent, Last::Follow)?;
        parent.directory()?;
        Ok((parent, name))
    }

    fn walk(&self, start: Arc<Inode>, path: &[u8], last: Last, links: &mut u32) -> Result<Arc<Inode>, FsError> {
        let mut here = if path.first() == Some(&b'/') { self.root()? } else { start };
        let mut parts = path.split(|byte| *byte == b'/').filter(|part| !part.is_empty()).peekable();
        let must_be_directory = path.last() == Some(&b'/');
        while let Some(part) = parts.next() {
            let next = self.child(&here, part)?;
            let follow = parts.peek().is_some() || last == Last::Follow || must_be_directory;
            here = if next.kind == FileKind::Symlink && follow {
                *links += 1;
                if *links > MAX_LINKS {
                    return Err(FsError::Loop { limit: MAX_LINKS });
                }
                let target = self.read_link_target(&next)?;
                self.walk(here, &target, Last::Follow, links)?
            } else {
                next
            };
        }
        if must_be_directory {
            here.directory()?;
        }
        Ok(here)
    }

    /// The target of a symbolic link.
    pub(crate) fn read_link_target(&self, inode: &Inode) -> Result<Vec<u8>, FsError> {
        if inode.kind != FileKind::Symlink {
            return Err(FsError::WrongKind { operation: "read the target", kind: inode.kind.name() });
        }
        let size = inode.size();
        let limit = f2fs_format::BLOCK_SIZE as u64;
        if size == 0 || size > limit {
            return Err(FsError::corrupt("size of a symbolic link", size, 1, limit));
        }
        let mut target = vec![0; size as usize];
        let len = self.read_at(inode, 0, &mut target)?;
        target.truncate(len);
        // Old kernels stored the terminator as well.
        while target.last() == Some(&0) {
            target.pop();
        }
        Ok(target)
    }
}
