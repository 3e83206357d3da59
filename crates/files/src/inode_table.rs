//! The inodes in memory: one object an inode, so that its locks are the same for everybody.
//!
//! # Locking
//!
//! One reader-writer lock a shard of the inode numbers. Under it nothing is waited for but the device, when an inode is
//! loaded: the first one to ask loads it, so that there is never a second object.

use f2fs_format::Nid;
use f2fs_sync::{Arc, CachePadded, RwLock, cache_stripes_here, protocol_value, stripe_of};
use rustc_hash::FxHashMap;

use crate::FsError;
use crate::directory::Directory;
use crate::inode::Inode;

/// Shards ([`cache_stripes_here`]).
const SHARDS: usize = if cfg!(loom) { 2 } else { 256 };
/// Inodes that each shard keeps at least.
const FEW_INODES: usize = 4;

type Shard = RwLock<Inodes>;

/// The inodes of a shard.
#[derive(Debug, Default)]
struct Inodes {
    map: FxHashMap<Nid, Arc<Inode>>,
    /// Inodes at which some are dropped; raised by those that are in use.
    crowded_at: usize,
}

/// The table.
#[derive(Debug)]
pub(crate) struct InodeTable {
    shards: Box<[CachePadded<Shard>]>,
    shard_capacity: usize,
}

impl InodeTable {
    /// A table that keeps about `capacity` inodes that nobody uses.
    pub(crate) fn new(capacity: usize) -> InodeTable {
        let shards = cache_stripes_here(SHARDS, capacity, FEW_INODES);
        InodeTable {
            shards: (0..shards).map(|_| CachePadded::new(RwLock::new(Inodes::default()))).collect(),
            shard_capacity: (capacity / shards).max(FEW_INODES),
        }
    }

    fn shard(&self, ino: Nid) -> &Shard {
        &self.shards[stripe_of(ino.0, self.shards.len())]
    }

    /// The inode, loaded if need be.
    pub(crate) fn get(&self, ino: Nid, load: impl FnOnce() -> Result<Inode, FsError>) -> Result<Arc<Inode>, FsError> {
        if let Some(inode) = self.shard(ino).read().map.get(&ino) {
            return Ok(Arc::clone(inode));
        }
        let mut inodes = self.shard(ino).write();
        if let Some(inode) = protocol_value!("inodes_loaded_twice", inodes.map.get(&ino), None) {
            return Ok(Arc::clone(inode));
        }
        let inode = Arc::new(load()?);
        self.make_room(&mut inodes);
        inodes.map.insert(ino, inode.clone());
        Ok(inode)
    }

    /// The inode, if it is in memory.
    pub(crate) fn in_memory(&self, ino: Nid) -> Option<Arc<Inode>> {
        self.shard(ino).read().map.get(&ino).map(Arc::clone)
    }

    /// Adds a new inode.
    pub(crate) fn insert(&self, inode: Inode) -> Arc<Inode> {
        let inode = Arc::new(inode);
        let mut inodes = self.shard(inode.ino).write();
        self.make_room(&mut inodes);
        inodes.map.insert(inode.ino, inode.clone());
        inode
    }

    /// Takes out a freed inode.
    pub(crate) fn remove(&self, ino: Nid) {
        self.shard(ino).write().map.remove(&ino);
    }

    /// Drops an inode unless somebody uses it; gives it then.
    pub(crate) fn drop_one(&self, ino: Nid) -> Option<Arc<Inode>> {
        let mut inodes = self.shard(ino).write();
        let inode = inodes.map.get(&ino)?;
        if protocol_value!("inodes_drop_in_use", Arc::strong_count(inode) > 1, false) {
            return Some(Arc::clone(inode));
        }
        // Its memory is given back without the lock.
        let _unused = inodes.map.remove(&ino);
        drop(inodes);
        None
    }

    /// Shows all directories.
    pub(crate) fn each_directory(&self, mut look: impl FnMut(&Directory)) {
        for shard in &self.shards {
            shard.read().map.values().filter_map(|inode| inode.directory.as_deref()).for_each(&mut look);
        }
    }

    /// Drops the directories that nobody uses and that `goes` chooses.
    pub(crate) fn drop_unused_directories(&self, mut goes: impl FnMut(&Directory) -> bool) {
        for shard in &self.shards {
            // Those with unwritten blocks are held by the list of dirty ones.
            let unused = |_: &Nid, inode: &mut Arc<Inode>| {
                Arc::strong_count(inode) == 1 && inode.directory.as_deref().is_some_and(&mut goes)
            };
            let dropped: Vec<_> = shard.write().map.extract_if(unused).collect();
            // Their memory is given back without the lock.
            drop(dropped);
        }
    }

    fn make_room(&self, inodes: &mut Inodes) {
        if inodes.map.len() >= inodes.crowded_at.max(self.shard_capacity) {
            let half = inodes.map.len() / 2;
            inodes.drop_unused(half);
            inodes.crowded_at = inodes.map.len() + inodes.map.len() / 2;
        }
    }

    /// Drops unused inodes of shards that are above their capacity: those that were in use when the shards grew.
    pub(crate) fn shrink(&self) {
        self.shrink_to(self.shard_capacity);
    }

    /// Drops all inodes that nobody uses.
    pub(crate) fn drop_unused(&self) {
        self.shrink_to(0);
    }

    fn shrink_to(&self, shard_capacity: usize) {
        for shard in &self.shards {
            if shard.read().map.len() > shard_capacity {
                let mut inodes = shard.write();
                let above = inodes.map.len().saturating_sub(shard_capacity);
                inodes.drop_unused(above);
                inodes.crowded_at = 0;
                // A map does not give back by itself what it had room for.
                inodes.map.shrink_to(shard_capacity);
            }
        }
    }
}

impl Inodes {
    /// Drops so many inodes that nobody holds; a directory with unwritten blocks is held by the list of dirty ones.
    fn drop_unused(&mut self, mut most: usize) {
        self.map.retain(|_, inode| {
            let goes = most > 0 && Arc::strong_count(inode) == 1;
            most -= usize::from(goes);
            !goes
        });
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // a test fails by panicking

    use std::num::NonZeroUsize;
    use std::sync::Arc;

    use super::{Inode, Inodes};
    use crate::samples::formatted;
    use crate::{FileSystem, Options};

    /// Open inodes cannot go, so the table grows. When they are closed, the next checkpoint brings it back to its
    /// limit.
    #[test]
    fn a_table_that_grew_shrinks_again() {
        const FILES: usize = 8000;
        let device = formatted(32 * 1024);
        let fs = FileSystem::open(device, Options::new().inode_cache(NonZeroUsize::MIN)).unwrap();
        let inodes = || fs.core.inodes.shards.iter().map(|shard| shard.read().map.len()).sum::<usize>();
        for number in 0..FILES {
            fs.create_file(format!("/{number}"), 0o644).unwrap();
        }
        let limit = inodes();
        assert!(limit < FILES / 2, "{limit} of {FILES} inodes stay");
        for _ in 0..2 {
            let open: Vec<_> = (0..FILES).map(|number| fs.open_file(format!("/{number}")).unwrap()).collect();
            assert!(inodes() >= FILES);
            drop(open);
            fs.checkpoint().unwrap();
            assert!(inodes() <= 2 * limit, "{} inodes stay, {limit} before", inodes());
            let room: usize = fs.core.inodes.shards.iter().map(|shard| shard.read().map.capacity()).sum();
            assert!(room < FILES, "room for {room}");
            // It does not grow again for inodes that nobody uses.
            (0..FILES).for_each(|number| assert_eq!(fs.metadata(format!("/{number}")).unwrap().size, 0));
            assert!(inodes() <= 2 * limit, "{} inodes stay, {limit} before", inodes());
        }
    }

    fn file_system() -> FileSystem {
        let device = formatted(32 * 1024);
        FileSystem::open(device, Options::new().inode_cache(NonZeroUsize::MIN)).unwrap()
    }

    #[test]
    fn looking_at_many_files_keeps_few_of_them() {
        const FILES: usize = 4000;
        let fs = file_system();
        let numbers: Vec<_> =
            (0..FILES).map(|number| fs.create_file(format!("/{number}"), 0o644).unwrap().ino()).collect();
        let kept = || numbers.iter().filter(|ino| fs.core.inodes.in_memory(**ino).is_some()).count();
        fs.drop_unused();
        assert_eq!(kept(), 0);
        (0..FILES).for_each(|number| assert_eq!(fs.metadata(format!("/{number}")).unwrap().size, 0));
        assert!((1..FILES / 2).contains(&kept()), "{} of {FILES}", kept());
    }

    /// There is one object of an inode as long as anybody has it.
    #[test]
    fn an_inode_is_loaded_once_and_goes_when_nobody_has_it() {
        let fs = file_system();
        let ino = fs.create_file("/f", 0o644).unwrap().ino();
        fs.drop_unused();
        let (table, core) = (&fs.core.inodes, &fs.core);
        assert!(table.in_memory(ino).is_none() && table.drop_one(ino).is_none());
        let inode = core.inode(ino).unwrap();
        let again = table.get(ino, || unreachable!("it is in memory")).unwrap();
        assert!(core::ptr::eq(&*inode, &*again));
        drop(again);
        assert!(table.drop_one(ino).is_some_and(|found| core::ptr::eq(&*inode, &*found)), "it is in use");
        assert!(table.in_memory(ino).is_some());
        drop(inode);
        assert!(table.drop_one(ino).is_none() && table.in_memory(ino).is_none());
        let failed = table.get(ino, || Err(crate::FsError::NotFound));
        assert!(failed.is_err() && table.in_memory(ino).is_none());
        let inode = core.inode(ino).unwrap();
        table.remove(ino);
        assert!(table.in_memory(ino).is_none(), "also if somebody has it");
        drop(inode);
    }

    #[test]
    fn so_many_are_dropped_as_was_said_and_none_that_is_in_use() {
        let fs = file_system();
        let load = |number: usize| {
            let ino = fs.create_file(format!("/{number}"), 0o644).unwrap().ino();
            (ino, Arc::new(Inode::load(&fs.core.volume, ino, &fs.core.directories).unwrap()))
        };
        let mut inodes = Inodes { map: (0..6).map(load).collect(), crowded_at: 0 };
        inodes.drop_unused(2);
        assert_eq!(inodes.map.len(), 4);
        let used = inodes.map.values().next().unwrap().clone();
        inodes.drop_unused(0);
        assert_eq!(inodes.map.len(), 4);
        inodes.drop_unused(10);
        assert!(inodes.map.keys().eq([&used.ino]));
    }

    #[test]
    fn files_that_were_looked_at_stay_as_long_as_there_is_room() {
        let device = formatted(32 * 1024);
        let fs = FileSystem::open(device, Options::new()).unwrap();
        let numbers: Vec<_> =
            (0..200).map(|number| fs.create_file(format!("/{number}"), 0o644).unwrap().ino()).collect();
        assert!(numbers.iter().all(|ino| fs.core.inodes.in_memory(*ino).is_some()));
    }
}
