//! Orphans: inodes with no link left that are still open. The checkpoint lists them, so that the next open frees them.
//!
//! # Locking
//!
//! One mutex a shard of the inode numbers, never two at a time, and nothing is waited for under it.

use std::collections::BTreeSet;

use f2fs_format::{Nid, orphan};
use f2fs_sync::atomic::{AtomicU64, Ordering};
use f2fs_sync::{CachePadded, Mutex};

use crate::VolumeError;

const SHARDS: usize = 32;

/// The set of orphans.
#[derive(Debug)]
pub(crate) struct Orphans {
    shards: Box<[CachePadded<Mutex<BTreeSet<Nid>>>]>,
    count: AtomicU64,
    limit: u64,
}

impl Orphans {
    /// No orphans yet; `limit` is what a checkpoint pack has room for.
    pub(crate) fn new(limit: u64, initial: &[Nid]) -> Orphans {
        let shards = (0..SHARDS).map(|_| CachePadded::new(Mutex::new(BTreeSet::new()))).collect();
        let orphans = Orphans { shards, count: AtomicU64::new(0), limit };
        for ino in initial {
            if orphans.shard(*ino).lock().insert(*ino) {
                orphans.count.fetch_add(1, Ordering::Relaxed);
            }
        }
        orphans
    }

    fn shard(&self, ino: Nid) -> &Mutex<BTreeSet<Nid>> {
        &self.shards[ino.index() % SHARDS]
    }

    /// Adds an inode. An error if the pack would overflow.
    pub(crate) fn add(&self, ino: Nid) -> Result<(), VolumeError> {
        if self.count.fetch_add(1, Ordering::Relaxed) >= self.limit {
            self.count.fetch_sub(1, Ordering::Relaxed);
            return Err(VolumeError::TooManyOrphans { limit: self.limit });
        }
        if !self.shard(ino).lock().insert(ino) {
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Removes an inode; tells whether it was there.
    pub(crate) fn remove(&self, ino: Nid) -> bool {
        let removed = self.shard(ino).lock().remove(&ino);
        if removed {
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
        removed
    }

    /// All of them, sorted.
    pub(crate) fn list(&self) -> Vec<Nid> {
        let mut all: Vec<Nid> =
            self.shards.iter().flat_map(|shard| shard.lock().iter().copied().collect::<Vec<_>>()).collect();
        all.sort_unstable();
        all
    }

    /// Blocks that the list takes in a pack.
    pub(crate) fn blocks(count: usize) -> u32 {
        count.div_ceil(orphan::PER_BLOCK) as u32
    }
}
