//! The directories that paths lead through, remembered by each processor.
//!
//! Every path begins at the root, and most go on through directories that many threads share. To look a name up takes a
//! shared lock of its stripe and of a block, and a reference to the inode: lines that all threads would write for
//! directories that none of them changes. So a processor remembers its look-ups: the child of a directory, by name,
//! with the directory's stamp ([`Stamp`]), which changes before a subdirectory is moved or removed. While the stamp
//! holds, the child is returned without a lock that others take, and the reference that is handed out is counted in a
//! line of the processor's own ([`CachedDirectory`]).
//!
//! Only directories are remembered: names of files come and go without changing a stamp.
//!
//! # Locking
//!
//! One mutex a processor, for the moment of asking or noting; nothing else is locked under it. The inodes that are
//! remembered stay in memory: [`WAYS`] for each processor at most.
//!
//! [`Stamp`]: f2fs_sync::Stamp

use std::ops::Deref;

use f2fs_format::Nid;
use f2fs_sync::{Arc, Mutex, PerCore};

use crate::inode::Inode;

/// Directories that a processor remembers: a power of two.
const WAYS: usize = 64;

/// A directory on a path, with a count of references that threads on other processors do not write, as a rule.
#[derive(Debug)]
pub(crate) struct CachedDirectory {
    inode: Arc<Inode>,
}

impl CachedDirectory {
    pub(crate) fn new(inode: Arc<Inode>) -> Arc<CachedDirectory> {
        Arc::new(CachedDirectory { inode })
    }
}

impl Deref for CachedDirectory {
    type Target = Arc<Inode>;

    fn deref(&self) -> &Arc<Inode> {
        &self.inode
    }
}

/// A name that was looked up.
#[derive(Debug)]
struct Known {
    parent: Arc<Inode>,
    name: Box<[u8]>,
    seen: u64,
    child: Arc<CachedDirectory>,
}

/// The directories that a processor remembers.
#[derive(Debug, Default)]
struct Slot {
    root: Option<Arc<CachedDirectory>>,
    /// By the hash of parent and name; empty until the first is noted.
    ways: Vec<Option<Known>>,
}

/// The directories that all processors remember.
#[derive(Debug)]
pub(crate) struct PathCache(PerCore<Mutex<Slot>>);

impl PathCache {
    pub(crate) fn new() -> PathCache {
        PathCache(PerCore::new(|_| Mutex::new(Slot::default())))
    }

    /// The root, if it was noted here.
    pub(crate) fn root(&self) -> Option<Arc<CachedDirectory>> {
        self.0.slot().lock().root.as_ref().map(Arc::clone)
    }

    /// Remembers the root, which is never moved.
    pub(crate) fn note_root(&self, root: Arc<Inode>) -> Arc<CachedDirectory> {
        let root = CachedDirectory::new(root);
        self.0.slot().lock().root = Some(Arc::clone(&root));
        root
    }

    /// The directory that a name in `parent` means, if that was noted here and still holds.
    pub(crate) fn get(&self, parent: &Arc<Inode>, name: &[u8]) -> Option<Arc<CachedDirectory>> {
        let slot = self.0.slot().lock();
        let known = slot.ways.get(way(parent.ino, name))?.as_ref()?;
        let same = Arc::ptr_eq(&known.parent, parent) && *known.name == *name;
        let holds = parent.directory.as_ref().is_some_and(|parent| parent.moved.holds(known.seen));
        (same && holds).then(|| Arc::clone(&known.child))
    }

    /// Remembers what a name in `parent` means, looked up when the stamp was `seen`.
    pub(crate) fn note(&self, parent: &Arc<Inode>, name: &[u8], seen: u64, child: Arc<Inode>) -> Arc<CachedDirectory> {
        let child = CachedDirectory::new(child);
        let known = Known { parent: parent.clone(), name: name.into(), seen, child: Arc::clone(&child) };
        let old = {
            let mut slot = self.0.slot().lock();
            if slot.ways.is_empty() {
                slot.ways.resize_with(WAYS, || None);
            }
            slot.ways[way(parent.ino, name)].replace(known)
        };
        // It may be the last of its inode: not under the lock.
        drop(old);
        child
    }
}

fn way(parent: Nid, name: &[u8]) -> usize {
    let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    let hash = name.chunks(8).fold(u64::from(parent.0), |hash, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        mix(hash, u64::from_le_bytes(word))
    });
    hash as usize % WAYS
}
