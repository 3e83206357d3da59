//! Orphans: inodes with no link left that are not freed yet. They are still open, or so large that freeing them takes
//! several operations. The checkpoint lists them, so that the next open frees them.
//!
//! A pack has room for a limited number. An operation that may take the last link of an inode takes room for an orphan
//! first ([`OrphanRoom`]). It can still fail at that point; after the name is gone it cannot.
//!
//! # Locking
//!
//! Room is an exact budget with a cache for each core, so that unlinking does not meet in one line. The set has one
//! mutex a shard of the inode numbers, never two at a time, and nothing is waited for under it.

use std::collections::BTreeSet;

use f2fs_format::{Corruption, Nid};
use f2fs_sync::{Budget, CachePadded, Mutex};

use crate::VolumeError;

const SHARDS: usize = if cfg!(loom) { 2 } else { 32 };

/// The set of orphans.
#[derive(Debug)]
pub(crate) struct Orphans {
    shards: Box<[CachePadded<Mutex<BTreeSet<Nid>>>]>,
    room: Budget,
    limit: u64,
}

/// Room for one orphan in the checkpoint pack. Given back when dropped.
#[derive(Debug)]
#[must_use = "the room is given back when this is dropped"]
pub struct OrphanRoom<'a> {
    orphans: &'a Orphans,
    used: bool,
}

impl OrphanRoom<'_> {
    /// Lists an inode.
    pub(crate) fn fill(mut self, ino: Nid) {
        self.used = self.orphans.shard(ino).lock().insert(ino);
    }
}

impl Drop for OrphanRoom<'_> {
    fn drop(&mut self) {
        if !self.used {
            self.orphans.room.give(1);
        }
    }
}

impl Orphans {
    /// With those of a pack; `limit` is the number that a pack has room for. A pack that lists more is refused: the
    /// next one might not hold them, and nothing writes such a pack (the kernel's `max_orphans`).
    pub(crate) fn new(limit: u64, initial: &[Nid]) -> Result<Orphans, Corruption> {
        let shards = (0..SHARDS).map(|_| CachePadded::new(Mutex::new(BTreeSet::new()))).collect();
        let mut orphans = Orphans { shards, room: Budget::new(0), limit };
        let listed = initial.iter().filter(|ino| orphans.shard(**ino).lock().insert(**ino)).count() as u64;
        Corruption::check_range("orphans in the checkpoint pack", listed, 0, limit)?;
        orphans.room = Budget::new(limit - listed);
        Ok(orphans)
    }

    fn shard(&self, ino: Nid) -> &Mutex<BTreeSet<Nid>> {
        &self.shards[ino.index() % SHARDS]
    }

    /// Takes room for one. An error if the pack would overflow.
    #[inline]
    pub(crate) fn room(&self) -> Result<OrphanRoom<'_>, VolumeError> {
        if self.room.try_take(1) {
            Ok(OrphanRoom { orphans: self, used: false })
        } else {
            Err(VolumeError::TooManyOrphans { limit: self.limit })
        }
    }

    /// Removes an inode; tells whether it was there.
    pub(crate) fn remove(&self, ino: Nid) -> bool {
        let removed = self.shard(ino).lock().remove(&ino);
        if removed {
            self.room.give(1);
        }
        removed
    }

    /// Whether an inode is listed.
    pub(crate) fn has(&self, ino: Nid) -> bool {
        self.shard(ino).lock().contains(&ino)
    }

    /// All of them, sorted.
    pub(crate) fn list(&self) -> Vec<Nid> {
        let mut all: Vec<Nid> =
            self.shards.iter().flat_map(|shard| shard.lock().iter().copied().collect::<Vec<_>>()).collect();
        all.sort_unstable();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_are_listed_than_a_pack_holds() {
        let limit = 2;
        let listed = |inos: &[u32]| Orphans::new(limit, &inos.iter().map(|ino| Nid(*ino)).collect::<Vec<_>>());
        let problem = listed(&[3, 4, 5]).unwrap_err();
        assert!(matches!(problem, Corruption::Range { found: 3, max: 2, .. }), "{problem}");
        let orphans = listed(&[3, 3, 4]).unwrap();
        assert!(matches!(orphans.room(), Err(VolumeError::TooManyOrphans { limit: 2 })));
        assert!(orphans.remove(Nid(3)) && !orphans.remove(Nid(3)));
        let room = orphans.room().unwrap();
        assert!(orphans.room().is_err());
        room.fill(Nid(6));
        assert_eq!(orphans.list(), [Nid(4), Nid(6)]);
        assert!(orphans.room().is_err());
        // An inode that is listed already takes no further room.
        assert!(orphans.remove(Nid(4)));
        orphans.room().unwrap().fill(Nid(6));
        assert!(orphans.room().is_ok());
    }

    #[test]
    fn orphans_of_all_shards_are_found() {
        let orphans = Orphans::new(100, &[]).unwrap();
        let inos = [70, 3, 64, 65, 66, 4000, 5];
        for ino in inos {
            orphans.room().unwrap().fill(Nid(ino));
        }
        assert_eq!(orphans.list(), [3, 5, 64, 65, 66, 70, 4000].map(Nid));
        assert!(inos.iter().all(|ino| orphans.has(Nid(*ino))) && !orphans.has(Nid(4)) && !orphans.has(Nid(35)));
    }
}
