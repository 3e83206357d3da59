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
//! remembered stay in memory: 64 for each processor at most ([`Remembered`]).
//!
//! [`Stamp`]: f2fs_sync::Stamp

use f2fs_sync::{Arc, Mutex, PerCore};

use crate::cached_directory::CachedDirectory;
use crate::inode::Inode;
use crate::remembered::Remembered;

/// What a name means.
#[derive(Debug)]
struct Child {
    seen: u64,
    directory: Arc<CachedDirectory>,
}

/// The directories that a processor remembers.
#[derive(Debug, Default)]
struct Slot {
    root: Option<Arc<CachedDirectory>>,
    names: Remembered<Child>,
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
    pub(crate) fn get(&self, parent: &Inode, name: &[u8]) -> Option<Arc<CachedDirectory>> {
        let slot = self.0.slot().lock();
        let known = slot.names.get(parent, name)?;
        let holds = parent.directory.as_ref().is_some_and(|parent| parent.moved.holds(known.seen));
        holds.then(|| Arc::clone(&known.directory))
    }

    /// Remembers what a name in `parent` means, looked up when the stamp was `seen`.
    pub(crate) fn note(
        &self,
        parent: &Arc<CachedDirectory>,
        name: &[u8],
        seen: u64,
        child: Arc<Inode>,
    ) -> Arc<CachedDirectory> {
        let directory = CachedDirectory::new(child);
        let child = Child { seen, directory: Arc::clone(&directory) };
        // It may be the last of its inode: it is dropped at the end, and not under the lock.
        let _old = self.0.slot().lock().names.put(parent, name, child);
        directory
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    #![allow(clippy::unwrap_used)] // a test fails by panicking

    use crate::samples::formatted;
    use crate::{FileSystem, Options};

    /// Each directory of a path, made one after the other, with names as programs give them. Had two of them one place,
    /// each would take it from the other in each look-up.
    #[test]
    fn all_directories_of_a_path_are_remembered() {
        let device = formatted(32 * 1024);
        let fs = FileSystem::open(device, Options::new()).unwrap();
        for names in [
            ["1", "2", "3", "4", "5"],
            ["a", "b", "c", "d", "e"],
            ["00", "01", "02", "03", "04"],
            ["src", "src", "src", "src", "src"],
        ] {
            let path = format!("/{}", names.join("/"));
            for end in 1..=names.len() {
                fs.create_dir(format!("/{}", names[..end].join("/")), 0o755).unwrap();
            }
            // This thread may go to another processor in between.
            let remembered = || {
                let _ = fs.open_dir(format!("{path}/.")).unwrap();
                let mut here = fs.core.path_cache.root()?;
                for name in names {
                    here = fs.core.path_cache.get(&here, name.as_bytes())?;
                }
                Some(here)
            };
            assert!((0..100).any(|_| remembered().is_some()), "{path}");
        }
    }
}
