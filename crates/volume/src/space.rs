//! How many blocks, nodes and inodes are in use, and whether more fit.
//!
//! A block is counted when it is reserved: a `NEW_ADDR` slot, a node that was never written. Moving a block (every
//! overwrite does) changes nothing here.
//!
//! # Locking
//!
//! The counts live in per-core caches ([`Budget`], [`ShardedCounter`]): no line is written by every operation of every
//! core, until so few are left that "full" has to be exact.

use f2fs_sync::atomic::AtomicU64;
use f2fs_sync::atomic::Ordering::Relaxed;
use f2fs_sync::{Budget, ShardedCounter};

use crate::VolumeError;

/// The counts that the checkpoint records.
#[derive(Debug)]
pub(crate) struct Space {
    blocks: Budget,
    block_limit: u64,
    /// Blocks that there is room for, if the checkpoint promises more to users.
    room: u64,
    /// Blocks above that, which nobody gets.
    kept_back: AtomicU64,
    nodes: Budget,
    node_limit: u64,
    inodes: ShardedCounter,
}

impl Space {
    pub(crate) fn new(blocks: u64, block_limit: u64, nodes: u64, node_limit: u64, inodes: u64) -> Space {
        Space {
            blocks: Budget::new(block_limit.saturating_sub(blocks)),
            block_limit,
            room: u64::MAX,
            kept_back: AtomicU64::new(0),
            nodes: Budget::new(node_limit.saturating_sub(nodes)),
            node_limit,
            inodes: ShardedCounter::new(inodes as i64),
        }
    }

    /// Says for how many blocks there is room; all by default.
    pub(crate) fn with_room(self, room: u64) -> Space {
        Space { room, ..self }
    }

    /// Keeps back from now on what the checkpoint promises above the room that there is. Not before all is recovered
    /// that was synced: Linux fills a volume as far as the checkpoint says. Nothing else runs.
    pub(crate) fn keep_back(&self) {
        let above = self.block_limit().saturating_sub(self.room).min(self.blocks.available_exact());
        if self.blocks.try_take(above) {
            self.kept_back.fetch_add(above, Relaxed);
        }
    }

    /// Reserves data blocks.
    pub(crate) fn take_blocks(&self, count: u64) -> Result<(), VolumeError> {
        if count == 0 || self.blocks.try_take(count) {
            return Ok(());
        }
        Err(VolumeError::NoSpace { wanted: count, available: self.blocks.available_exact() })
    }

    /// Whether so many data blocks are left, at one moment during the call.
    pub(crate) fn has_blocks(&self, count: u64) -> bool {
        self.blocks.available_exact() >= count
    }

    /// Gives data blocks back.
    pub(crate) fn give_blocks(&self, count: u64) {
        if count != 0 {
            self.blocks.give(count);
        }
    }

    /// Reserves a node (which is a block, too).
    pub(crate) fn take_node(&self) -> Result<(), VolumeError> {
        self.take_blocks(1)?;
        if self.nodes.try_take(1) {
            return Ok(());
        }
        self.give_blocks(1);
        Err(VolumeError::NoNids { used: self.nodes(), limit: self.node_limit })
    }

    /// Gives a node back.
    pub(crate) fn give_node(&self) {
        self.nodes.give(1);
        self.blocks.give(1);
    }

    /// Counts an inode.
    pub(crate) fn add_inode(&self) {
        self.inodes.add(1);
    }

    /// Counts an inode less.
    pub(crate) fn drop_inode(&self) {
        self.inodes.sub(1);
    }

    /// Blocks in use. Exact when nothing else runs.
    pub(crate) fn blocks(&self) -> u64 {
        // A corrupt volume may free more than it said was in use.
        self.block_limit().saturating_sub(self.blocks.available_exact())
    }

    /// Blocks that users can have in use.
    pub(crate) fn block_limit(&self) -> u64 {
        self.block_limit - self.kept_back.load(Relaxed)
    }

    /// Nodes in use. Exact when nothing else runs.
    pub(crate) fn nodes(&self) -> u64 {
        self.node_limit.saturating_sub(self.nodes.available_exact())
    }

    pub(crate) fn node_limit(&self) -> u64 {
        self.node_limit
    }

    /// Inodes in use. Exact when nothing else runs.
    pub(crate) fn inodes(&self) -> u64 {
        self.inodes.sum().max(0) as u64
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests {
    use super::*;

    fn counts(space: &Space) -> (u64, u64, u64) {
        (space.blocks(), space.nodes(), space.inodes())
    }

    #[test]
    fn what_is_in_use_and_what_fits_are_counted() {
        let space = Space::new(10, 100, 5, 50, 3);
        assert_eq!((counts(&space), space.block_limit(), space.node_limit()), ((10, 5, 3), 100, 50));
        assert!(space.has_blocks(90) && !space.has_blocks(91));
        space.take_blocks(89).unwrap();
        assert_eq!(counts(&space), (99, 5, 3));
        assert!(matches!(space.take_blocks(2), Err(VolumeError::NoSpace { wanted: 2, available: 1 })));
        space.take_node().unwrap();
        assert_eq!(counts(&space), (100, 6, 3));
        assert!(matches!(space.take_node(), Err(VolumeError::NoSpace { wanted: 1, available: 0 })));
        assert!(space.take_blocks(0).is_ok(), "nothing always fits");
        space.give_blocks(0);
        space.give_node();
        space.give_blocks(80);
        space.add_inode();
        assert_eq!(counts(&space), (19, 5, 4));
        space.drop_inode();
        assert_eq!(counts(&space), (19, 5, 3));
    }

    #[test]
    fn a_node_that_has_no_number_takes_no_block() {
        let space = Space::new(10, 100, 5, 6, 3);
        space.take_node().unwrap();
        assert!(matches!(space.take_node(), Err(VolumeError::NoNids { used: 6, limit: 6 })));
        assert_eq!(counts(&space), (11, 6, 3));
    }

    #[test]
    fn what_is_promised_above_the_room_is_kept_back() {
        let space = Space::new(10, 100, 5, 50, 3).with_room(60);
        assert_eq!(space.block_limit(), 100, "not before it is said");
        space.keep_back();
        assert_eq!((counts(&space), space.block_limit()), ((10, 5, 3), 60));
        assert!(space.has_blocks(50) && !space.has_blocks(51));
        space.keep_back();
        assert_eq!(space.block_limit(), 60);
        // No more than there is.
        let space = Space::new(90, 100, 5, 50, 3).with_room(60);
        space.keep_back();
        assert_eq!((space.blocks(), space.block_limit(), space.has_blocks(1)), (90, 90, false));
        // There is room for all.
        let space = Space::new(10, 100, 5, 50, 3);
        space.keep_back();
        assert_eq!((space.blocks(), space.block_limit()), (10, 100));
    }
}
