//! The inodes that the kernel knows.
//!
//! The kernel names an inode by a number, counts each time that it was told of one, and gives the counts back by
//! *forget*. Until then the reference here keeps the inode alive, with a name or without: its number is not another
//! file's meanwhile.
//!
//! # Locking
//!
//! One reader-writer lock a shard of the numbers, held to look up, count or take out. No other lock is taken under it;
//! values are dropped after it is released. A directory has a lock for what a listing remembers, held for that alone.

use f2fs_files::{BadEntry, Dir, DirEntry, File, FsError, InodeRef};
use f2fs_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use f2fs_sync::{Arc, CachePadded, Mutex, OnceLock, RwLock};
use rustc_hash::FxHashMap;

use crate::stream::Stream;

/// The number of the root in the protocol. No file of F2FS has it: 1 is the inode of all nodes, which is in no
/// directory.
pub(crate) const ROOT: u64 = 1;
const SHARDS: usize = 64;

/// An inode that the kernel knows, with its open handles.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) inode: InodeRef,
    pub(crate) stream: Stream,
    file: OnceLock<Option<File>>,
    dir: OnceLock<Option<Dir>>,
    /// An entry without a valid name that the last listing of it from the beginning came by.
    bad: Mutex<Option<BadEntry>>,
    /// Whether it may have capabilities, which a write takes: most files have none, and are looked at once.
    pub(crate) capable: AtomicBool,
    /// How often the kernel was told of it, less the times that it gave back. Falls to 0 with the shard locked
    /// exclusively only.
    told: AtomicU64,
}

impl Known {
    fn new(inode: InodeRef) -> Known {
        Known {
            inode,
            stream: Stream::default(),
            file: OnceLock::new(),
            dir: OnceLock::new(),
            bad: Mutex::default(),
            capable: AtomicBool::new(true),
            told: AtomicU64::new(1),
        }
    }

    /// The regular file, opened with its first use.
    pub(crate) fn file(&self) -> Result<&File, FsError> {
        if self.file.get().is_none() {
            // Opened outside, so that its error is not kept; a second one that comes beside is dropped.
            let file = self.inode.open_file()?;
            let _ = self.file.get_or_init(|| Some(file));
        }
        self.file.get().and_then(Option::as_ref).ok_or(FsError::Invalid("not a regular file"))
    }

    /// The directory, opened with its first use.
    pub(crate) fn dir(&self) -> Result<&Dir, FsError> {
        if self.dir.get().is_none() {
            let dir = self.inode.open_dir()?;
            let _ = self.dir.get_or_init(|| Some(dir));
        }
        self.dir.get().and_then(Option::as_ref).ok_or(FsError::NotDirectory)
    }

    /// Up to `limit` entries of the directory behind `from`; none at the end. Entries without a valid name are passed
    /// over: one of them is told at the end, where a program has seen all others.
    pub(crate) fn list(&self, mut from: u64, limit: usize) -> Result<Vec<DirEntry>, FsError> {
        if from == 0 {
            *self.bad.lock() = None;
        }
        loop {
            match self.dir()?.read(from, limit) {
                Err(FsError::BadEntry(bad)) => {
                    from = bad.next;
                    self.bad.lock().get_or_insert(bad);
                }
                Ok(entries) if entries.is_empty() => {
                    return self.bad.lock().clone().map_or(Ok(entries), |bad| Err(bad.into()));
                }
                other => return other,
            }
        }
    }
}

/// Inodes that a shard's share of the kernel's has lost before it says so: they are counted in parts, since all threads
/// would write a count of each.
pub(crate) const PART: usize = 64;

/// The inodes of a shard of the numbers.
#[derive(Debug, Default)]
struct Share {
    known: FxHashMap<u64, Arc<Known>>,
    /// Those that went since the last part of them was told.
    gone: usize,
}

type Shard = CachePadded<RwLock<Share>>;

/// The table.
#[derive(Debug)]
pub(crate) struct Table {
    root: Arc<Known>,
    root_ino: u64,
    shards: Box<[Shard]>,
}

impl Table {
    pub(crate) fn new(root: InodeRef) -> Table {
        let root_ino = u64::from(root.ino().0);
        let shards = (0..SHARDS).map(|_| CachePadded::default()).collect();
        Table { root: Arc::new(Known::new(root)), root_ino, shards }
    }

    fn shard(&self, number: u64) -> &Shard {
        &self.shards[number as usize % SHARDS]
    }

    /// The number under which the kernel knows an inode.
    pub(crate) fn number(&self, ino: u64) -> u64 {
        if ino == self.root_ino { ROOT } else { ino }
    }

    /// The inode of a number that the kernel was told. It asks for no other.
    pub(crate) fn get(&self, number: u64) -> Result<Arc<Known>, FsError> {
        if number == ROOT {
            return Ok(self.root.clone());
        }
        self.shard(number).read().known.get(&number).cloned().ok_or(FsError::NotFound)
    }

    /// Counts that the kernel is told of an inode.
    pub(crate) fn tell(&self, inode: InodeRef) -> Arc<Known> {
        let ino = u64::from(inode.ino().0);
        if ino == self.root_ino {
            return self.root.clone();
        }
        let shard = self.shard(ino);
        if let Some(known) = shard.read().known.get(&ino) {
            known.told.fetch_add(1, Ordering::Relaxed);
            return known.clone();
        }
        let known = &mut shard.write().known;
        if let Some(known) = known.get(&ino) {
            known.told.fetch_add(1, Ordering::Relaxed);
            return known.clone();
        }
        let new = Arc::new(Known::new(inode));
        known.insert(ino, new.clone());
        new
    }

    /// Counts that the kernel is told once more of an inode that it was told of before, if it has not given all back.
    pub(crate) fn tell_again(&self, number: u64) -> Option<Arc<Known>> {
        if number == ROOT {
            return Some(self.root.clone());
        }
        let shard = self.shard(number).read();
        let known = shard.known.get(&number)?;
        known.told.fetch_add(1, Ordering::Relaxed);
        Some(known.clone())
    }

    /// Takes back `count` times of telling. With the last one the reference goes, and a file without a name with it.
    /// Whether [`PART`] inodes more are gone.
    pub(crate) fn forget(&self, number: u64, count: u64) -> bool {
        if number == ROOT {
            return false;
        }
        let mut shard = self.shard(number).write();
        let left = shard.known.get(&number).map(|known| {
            let left = known.told.load(Ordering::Relaxed).saturating_sub(count);
            known.told.store(left, Ordering::Relaxed);
            left
        });
        if left != Some(0) {
            return false;
        }
        let gone = shard.known.remove(&number);
        shard.gone = (shard.gone + 1) % PART;
        let is_part = shard.gone == 0;
        drop(shard);
        drop(gone);
        is_part
    }

    /// Whether the kernel was told of an inode, and has not given all back.
    pub(crate) fn is_known(&self, number: u64) -> bool {
        number == ROOT || self.shard(number).read().known.contains_key(&number)
    }

    /// How many inodes the kernel knows, beside the root.
    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.read().known.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use f2fs_files::{FileKind, FileSystem, NewFile, Options};

    use super::*;

    fn fs() -> FileSystem {
        let device = Arc::new(f2fs_device::MemoryDevice::new(32 * 1024));
        f2fs_volume::format::format(&*device, &Default::default()).unwrap();
        FileSystem::open(device, Options::new()).unwrap()
    }

    #[test]
    fn an_inode_stays_until_all_is_forgotten() {
        let fs = fs();
        let root = fs.root().unwrap();
        let table = Table::new(fs.root().unwrap());
        let made = root.create("f", &NewFile::new(FileKind::Regular, 0o644)).unwrap();
        let ino = u64::from(made.ino().0);
        table.tell(made);
        table.tell(root.lookup("f").unwrap());
        root.remove_file("f").unwrap();
        table.forget(ino, 1);
        assert_eq!(table.get(ino).unwrap().inode.metadata().unwrap().links, 0);
        table.forget(ino, 1);
        assert!(matches!(table.get(ino), Err(FsError::NotFound)));
        assert_eq!(fs.statfs().valid_inodes, 1);
        table.forget(ROOT, 9);
        assert!(table.get(ROOT).is_ok());
    }

    #[test]
    fn telling_and_forgetting_at_once_lose_no_count() {
        let fs = fs();
        let root = fs.root().unwrap();
        let table = Table::new(fs.root().unwrap());
        let made = root.create("f", &NewFile::new(FileKind::Regular, 0o644)).unwrap();
        let ino = u64::from(made.ino().0);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..5000 {
                        let known = table.tell(root.lookup("f").unwrap());
                        assert_eq!(u64::from(known.inode.ino().0), ino);
                        // Told and not yet forgotten: it must be there.
                        assert!(table.get(ino).is_ok());
                        table.forget(ino, 1);
                    }
                });
            }
        });
        assert!(matches!(table.get(ino), Err(FsError::NotFound)));
    }
}
