//! The inodes that the kernel knows.
//!
//! The kernel names an inode by a number, counts each time that it was told of one, and gives the counts back by
//! *forget*. Until then its number is not another file's.
//!
//! ```text
//!            told, or asked for
//!   resting ───────────────────► awake: a reference keeps the inode in memory, with a name or without
//!           ◄───────────────────        its last name goes: it stays awake until it is forgotten
//!           not used for long
//! ```
//!
//! The kernel may know millions of inodes, with 6 KiB each here. So those that were not used for the longest time rest
//! when there are many: then only the count is left. An inode with a name is there when it is asked for again. One whose
//! name is about to go is held first ([`Table::hold`]), for its number would be another file's.
//!
//! # Locking
//!
//! One reader-writer lock a shard of the numbers, held to look up, count or take out. No other lock is taken under it;
//! values are dropped after it is released. An inode that is to wake is found with no lock held. A directory has a lock
//! for what a listing remembers, held for that alone.

use std::collections::VecDeque;

use f2fs_files::{BadEntry, Dir, DirEntry, File, FsError, InodeRef, Nid};
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
    /// Whether it was asked for since it was last looked at for a rest.
    used: AtomicBool,
    /// It does not rest: its name may have gone, or a write may have an error that was not told yet.
    held: AtomicBool,
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
            used: AtomicBool::new(false),
            held: AtomicBool::new(false),
        }
    }

    /// It stays awake until it is forgotten.
    pub(crate) fn hold(&self) {
        // Most calls find it so, and write nothing that others read.
        if !self.held.load(Ordering::Relaxed) {
            self.held.store(true, Ordering::Relaxed);
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

/// An inode of which the kernel was told.
#[derive(Debug)]
struct Slot {
    /// How often, less the times that it gave back. Falls to 0 with the shard locked exclusively only.
    told: AtomicU64,
    /// Tells it from a later inode with its number.
    generation: u32,
    /// `None`: it rests.
    known: Option<Arc<Known>>,
}

/// The inodes of a shard of the numbers.
#[derive(Debug, Default)]
struct Share {
    slots: FxHashMap<u64, Slot>,
    /// Those that woke, the first one in front, and some that are gone.
    woken: VecDeque<u64>,
    /// Those that went since the last part of them was told.
    gone: usize,
}

/// Numbers of [`Share::woken`] that are looked at for each one that is added: some are used, and come to the end again.
const LOOKS: usize = 4;

impl Share {
    /// An inode wakes; those that are put to rest for it are for the caller to drop, without the lock.
    fn wake(&mut self, number: u64, inode: InodeRef, generation: u32, most: usize) -> (Arc<Known>, Vec<Arc<Known>>) {
        let known = Arc::new(Known::new(inode));
        let slot = self.slots.entry(number).or_insert(Slot { told: AtomicU64::new(0), generation, known: None });
        (slot.generation, slot.known) = (generation, Some(known.clone()));
        self.woken.push_back(number);
        let mut rest = Vec::new();
        for _ in 0..LOOKS {
            if self.woken.len() <= most {
                break;
            }
            let Some(number) = self.woken.pop_front() else { break };
            // One that is gone, or was here twice.
            let Some(slot) = self.slots.get_mut(&number) else { continue };
            let Some(known) = &slot.known else { continue };
            let used = known.used.swap(false, Ordering::Relaxed);
            // Nobody comes to it from elsewhere while the shard is locked.
            if used || known.held.load(Ordering::Relaxed) || Arc::strong_count(known) > 1 {
                self.woken.push_back(number);
            } else {
                rest.extend(slot.known.take());
            }
        }
        (known, rest)
    }
}

type Shard = CachePadded<RwLock<Share>>;

/// The table.
#[derive(Debug)]
pub(crate) struct Table {
    root: Arc<Known>,
    root_ino: u64,
    shards: Box<[Shard]>,
    /// Inodes of a shard from which on some are put to rest.
    awake: usize,
}

impl Table {
    /// A table with about `awake` inodes that do not rest, beside those that are used or held.
    pub(crate) fn new(root: InodeRef, awake: usize) -> Table {
        let root_ino = u64::from(root.ino().0);
        let shards = (0..SHARDS).map(|_| CachePadded::default()).collect();
        Table { root: Arc::new(Known::new(root)), root_ino, shards, awake: awake / SHARDS }
    }

    fn shard(&self, number: u64) -> &Shard {
        &self.shards[number as usize % SHARDS]
    }

    /// The number under which the kernel knows an inode.
    pub(crate) fn number(&self, ino: u64) -> u64 {
        if ino == self.root_ino { ROOT } else { ino }
    }

    /// The inode of a number that the kernel was told, which is `found` if it rests. The kernel asks for no other.
    pub(crate) fn get(
        &self,
        number: u64,
        found: impl FnOnce(Nid, u32) -> Result<InodeRef, FsError>,
    ) -> Result<Arc<Known>, FsError> {
        if number == ROOT {
            return Ok(self.root.clone());
        }
        let generation = {
            let shard = self.shard(number).read();
            let slot = shard.slots.get(&number).ok_or(FsError::NotFound)?;
            if let Some(known) = &slot.known {
                if !known.used.load(Ordering::Relaxed) {
                    known.used.store(true, Ordering::Relaxed);
                }
                return Ok(known.clone());
            }
            slot.generation
        };
        let inode = found(Nid(u32::try_from(number).map_err(|_| FsError::NotFound)?), generation)?;
        let mut shard = self.shard(number).write();
        let slot = shard.slots.get(&number).ok_or(FsError::NotFound)?;
        if let Some(known) = &slot.known {
            return Ok(known.clone());
        }
        let (known, rest) = shard.wake(number, inode, generation, self.awake);
        drop(shard);
        drop(rest);
        Ok(known)
    }

    /// Counts that the kernel is told of an inode, of this generation.
    pub(crate) fn tell(&self, inode: InodeRef, generation: u32) -> Arc<Known> {
        let ino = u64::from(inode.ino().0);
        if let Some(known) = self.tell_again(self.number(ino)) {
            return known;
        }
        let mut shard = self.shard(ino).write();
        let (known, rest) = match shard.slots.get(&ino).and_then(|slot| slot.known.clone()) {
            Some(known) => (known, Vec::new()),
            None => shard.wake(ino, inode, generation, self.awake),
        };
        if let Some(slot) = shard.slots.get(&ino) {
            slot.told.fetch_add(1, Ordering::Relaxed);
        }
        drop(shard);
        drop(rest);
        known
    }

    /// Counts that the kernel is told once more of an inode that it was told of before, if it has not given all back,
    /// and the inode does not rest.
    pub(crate) fn tell_again(&self, number: u64) -> Option<Arc<Known>> {
        if number == ROOT {
            return Some(self.root.clone());
        }
        let shard = self.shard(number).read();
        let slot = shard.slots.get(&number)?;
        let known = slot.known.clone()?;
        slot.told.fetch_add(1, Ordering::Relaxed);
        Some(known)
    }

    /// An inode whose name is about to go stays awake, if the kernel knows it: it keeps its number until it is
    /// forgotten.
    pub(crate) fn hold(&self, inode: InodeRef) -> Result<(), FsError> {
        let number = self.number(inode.ino().0.into());
        match self.get(number, |_, _| Ok(inode)) {
            Ok(known) => known.hold(),
            // The kernel does not know it.
            Err(FsError::NotFound) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Takes back `count` times of telling. With the last one the reference goes, and a file without a name with it.
    /// Whether [`PART`] inodes more are gone.
    pub(crate) fn forget(&self, number: u64, count: u64) -> bool {
        if number == ROOT {
            return false;
        }
        let mut shard = self.shard(number).write();
        let left = shard.slots.get(&number).map(|slot| {
            let left = slot.told.load(Ordering::Relaxed).saturating_sub(count);
            slot.told.store(left, Ordering::Relaxed);
            left
        });
        if left != Some(0) {
            return false;
        }
        let gone = shard.slots.remove(&number);
        shard.gone = (shard.gone + 1) % PART;
        let is_part = shard.gone == 0;
        drop(shard);
        drop(gone);
        is_part
    }

    /// Whether the kernel was told of an inode, and has not given all back.
    pub(crate) fn is_known(&self, number: u64) -> bool {
        number == ROOT || self.shard(number).read().slots.contains_key(&number)
    }

    /// Whether an inode that the kernel knows rests.
    #[cfg(test)]
    pub(crate) fn rests(&self, number: u64) -> bool {
        self.shard(number).read().slots.get(&number).is_some_and(|slot| slot.known.is_none())
    }

    /// How many inodes the kernel knows, beside the root.
    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.read().slots.len()).sum()
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

    /// None of these rests.
    fn get(table: &Table, number: u64) -> Result<Arc<Known>, FsError> {
        table.get(number, |ino, _| panic!("{ino:?} rests"))
    }

    #[test]
    fn an_inode_stays_until_all_is_forgotten() {
        let fs = fs();
        let root = fs.root().unwrap();
        let table = Table::new(fs.root().unwrap(), 1 << 20);
        let made = root.create("f", &NewFile::new(FileKind::Regular, 0o644)).unwrap();
        let ino = u64::from(made.ino().0);
        table.tell(made, 0);
        table.tell(root.lookup("f").unwrap(), 0);
        root.remove_file("f").unwrap();
        table.forget(ino, 1);
        assert_eq!(get(&table, ino).unwrap().inode.metadata().unwrap().links, 0);
        table.forget(ino, 1);
        assert!(matches!(get(&table, ino), Err(FsError::NotFound)));
        assert_eq!(fs.statfs().valid_inodes, 1);
        table.forget(ROOT, 9);
        assert!(get(&table, ROOT).is_ok());
    }

    #[test]
    fn telling_and_forgetting_at_once_lose_no_count() {
        let fs = fs();
        let root = fs.root().unwrap();
        let table = Table::new(fs.root().unwrap(), 1 << 20);
        let made = root.create("f", &NewFile::new(FileKind::Regular, 0o644)).unwrap();
        let ino = u64::from(made.ino().0);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..5000 {
                        let known = table.tell(root.lookup("f").unwrap(), 0);
                        assert_eq!(u64::from(known.inode.ino().0), ino);
                        // Told and not yet forgotten: it must be there.
                        assert!(get(&table, ino).is_ok());
                        table.forget(ino, 1);
                    }
                });
            }
        });
        assert!(matches!(get(&table, ino), Err(FsError::NotFound)));
    }
}
