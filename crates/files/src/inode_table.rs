//! The inodes in memory: one object an inode, so that its locks are the same for everybody.
//!
//! # Locking
//!
//! One reader-writer lock a shard of the inode numbers. Under it nothing is waited for but the device, when an inode is
//! loaded: the first one to ask loads it, so that there is never a second object.

use f2fs_format::Nid;
use f2fs_sync::{Arc, CachePadded, RwLock, mutant};
use rustc_hash::FxHashMap;

use crate::FsError;
use crate::directory::Directory;
use crate::inode::Inode;

const SHARDS: usize = if cfg!(loom) { 2 } else { 256 };

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
        InodeTable {
            shards: (0..SHARDS).map(|_| CachePadded::new(RwLock::new(Inodes::default()))).collect(),
            shard_capacity: (capacity / SHARDS).max(4),
        }
    }

    fn shard(&self, ino: Nid) -> &Shard {
        &self.shards[ino.index() % SHARDS]
    }

    /// The inode, loaded if need be.
    pub(crate) fn get(&self, ino: Nid, load: impl FnOnce() -> Result<Inode, FsError>) -> Result<Arc<Inode>, FsError> {
        if let Some(inode) = self.shard(ino).read().map.get(&ino) {
            return Ok(Arc::clone(inode));
        }
        let mut inodes = self.shard(ino).write();
        if let Some(inode) = inodes.map.get(&ino)
            && !mutant("inodes_loaded_twice")
        {
            return Ok(Arc::clone(inode));
        }
        let inode = Arc::new(load()?);
        self.make_room(&mut inodes);
        inodes.map.insert(ino, inode.clone());
        Ok(inode)
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

    /// Drops an inode that nobody uses; gives it if somebody does.
    pub(crate) fn drop_unused(&self, ino: Nid) -> Option<Arc<Inode>> {
        let mut inodes = self.shard(ino).write();
        let inode = inodes.map.get(&ino)?;
        if Arc::strong_count(inode) > 1 && !mutant("inodes_drop_in_use") {
            return Some(Arc::clone(inode));
        }
        let unused = inodes.map.remove(&ino);
        // Its memory is given back without the lock.
        drop(inodes);
        drop(unused);
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
            // Half of those that nobody holds; a directory with unwritten blocks is held by the list of dirty ones.
            let mut spare = inodes.map.len() / 2;
            inodes.map.retain(|_, inode| {
                if spare > 0 && Arc::strong_count(inode) == 1 {
                    spare -= 1;
                    return false;
                }
                true
            });
            inodes.crowded_at = inodes.map.len() + inodes.map.len() / 2;
        }
    }
}
