//! A directory on its way to the host.

use std::io;
use std::os::fd::OwnedFd;

use f2fs::sync::Arc;
use f2fs::{InodeRef, Metadata};
use rustix::fs::OFlags;

use crate::copy::below::Below;
use crate::copy::crew::Node;

/// Of so many directories below one another one is held open, so that those below it are found from there. To look
/// each of them up from the top would take minutes for a tree of some thousand levels.
const EVERY: usize = 32;

/// The directories that are held open at the same time: as many as this has other holders.
#[derive(Debug, Default)]
pub(super) struct Holds(Arc<()>);

impl Holds {
    /// A program may have 1,024 files open in all.
    const MOST: usize = 256;

    fn take(&self) -> Option<Arc<()>> {
        (Arc::strong_count(&self.0) <= Holds::MOST).then(|| Arc::clone(&self.0))
    }
}

/// A directory on its way.
pub(super) struct Directory {
    /// Its name in its parent; none at the top.
    name: Vec<u8>,
    pub(super) inode: InodeRef,
    pub(super) stat: Metadata,
    /// Directories above it.
    depth: usize,
    /// The directory on the host, of some.
    held: Option<(Below, Arc<()>)>,
}

impl Directory {
    /// The one that the user named.
    pub(super) fn top(inode: InodeRef, stat: Metadata) -> Directory {
        Directory { name: Vec::new(), inode, stat, depth: 0, held: None }
    }

    /// One in `parent`, made in `made`.
    pub(super) fn below(
        parent: &Node<Directory>,
        made: &OwnedFd,
        name: &[u8],
        (inode, stat): (InodeRef, Metadata),
        holds: &Holds,
    ) -> Directory {
        let depth = parent.what.depth + 1;
        let hold = if depth.is_multiple_of(EVERY) { holds.take() } else { None };
        // Without, it is found from further up.
        let held = hold.and_then(|hold| Some((Below::child(made, name).ok()?, hold)));
        Directory { name: name.to_vec(), inode, stat, depth, held }
    }
}

impl Node<Directory> {
    /// The path below the top. It is put together when it is needed: all those of a deep tree are too much to keep.
    pub(super) fn below(&self) -> Vec<u8> {
        path(self.upwards())
    }

    /// Opens the directory on the host.
    pub(super) fn open(&self, top: &Below, flags: OFlags) -> io::Result<OwnedFd> {
        let held = self.upwards().find_map(|node| node.what.held.as_ref());
        let from = held.map_or(top, |(below, _)| below);
        from.directory(&path(self.upwards().take_while(|node| node.what.held.is_none())), flags)
    }

    /// The directory and those above it.
    fn upwards(&self) -> impl Iterator<Item = &Node<Directory>> {
        std::iter::successors(Some(self), |node| node.parent.as_deref())
    }
}

fn path<'a>(upwards: impl Iterator<Item = &'a Node<Directory>>) -> Vec<u8> {
    let mut names: Vec<&[u8]> = upwards.map(|node| &*node.what.name).filter(|name| !name.is_empty()).collect();
    names.reverse();
    names.join(&b'/')
}
