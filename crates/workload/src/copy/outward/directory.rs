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
    pub(super) fn entered(
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use f2fs::{FileSystem, Options};
    use f2fs_device::MemoryDevice;
    use rustix::fs::Mode;

    use super::*;

    /// A tree of the host, of which the top is put elsewhere: what lies below a directory that is held is still found.
    #[test]
    fn directories_are_found_from_the_nearest_one_that_is_held() {
        let device = Arc::new(MemoryDevice::new(16 * 1024));
        f2fs::volume::format::format(&*device, &Default::default()).unwrap();
        let fs = FileSystem::open(device, Options::new()).unwrap();
        let root = || (fs.inode_at(Path::new("/")).unwrap(), fs.symlink_metadata("/").unwrap());
        let place = tempfile::tempdir().unwrap();
        let (here, holds) = (Below::new(place.path()).unwrap(), Holds::default());
        let (inode, stat) = root();
        let mut node = Arc::new(Node { parent: None, what: Directory::top(inode, stat) });
        let mut all = vec![Arc::clone(&node)];
        for _ in 0..2 * EVERY + 5 {
            let made = node.open(&here, OFlags::PATH).unwrap();
            rustix::fs::mkdirat(&made, "d", Mode::from_raw_mode(0o700)).unwrap();
            let what = Directory::entered(&node, &made, b"d", root(), &holds);
            node = Arc::new(Node { parent: Some(node), what });
            all.push(Arc::clone(&node));
        }
        let elsewhere = tempfile::tempdir().unwrap();
        let elsewhere = Below::new(elsewhere.path()).unwrap();
        for (depth, node) in all.iter().enumerate() {
            assert!(node.open(&here, OFlags::PATH).is_ok(), "{depth}");
            assert_eq!(node.open(&elsewhere, OFlags::PATH).is_ok(), depth == 0 || depth >= EVERY, "{depth}");
        }
        assert_eq!(node.below().len(), 2 * (2 * EVERY + 5) - 1);
    }

    #[test]
    fn no_more_are_held_than_a_program_may_have_open() {
        let holds = Holds::default();
        let all: Vec<_> = std::iter::from_fn(|| holds.take()).take(10_000).collect();
        assert_eq!(all.len(), Holds::MOST);
        drop(all);
        assert!(holds.take().is_some());
    }
}
