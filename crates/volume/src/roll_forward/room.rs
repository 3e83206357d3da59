//! Whether roll-forward will find room for all that syncs have promised since the last checkpoint.
//!
//! Roll-forward begins at the checkpoint. Files that were deleted since then are there again, although their room was
//! given to files that were synced. So roll-forward may need each block that was in use at the checkpoint, and each one
//! taken since, whether it was given back or not (`f2fs_space_for_roll_forward`).
//!
//! ```text
//!   in use at the checkpoint + data written + reserved without a write + nodes + names  <=  limit
//! ```
//!
//! # Locking
//!
//! Counts lie in lines of single processors. Syncs are counted side by side: each counts its own first, and then looks
//! whether there is room for all. So of two that find room for one alone, one sees the other at least; there is a fence in
//! between. All counts begin again while a checkpoint has the gate closed.

use f2fs_sync::atomic::{AtomicU64, Ordering, fence};
use f2fs_sync::{ShardedCounter, protocol_step, protocol_value};

use crate::batched_count::BatchedCount;
use crate::space::Space;

/// The most blocks that the name of a new file needs: a dentry block, and the nodes that lead to it. Also where the
/// directory had a place for it when the file was synced: names that were taken out of it come back. (One more may be
/// needed if an inline directory with a raised `i_dir_level` has to leave its inode; such a volume has far more blocks
/// than that in reserve.)
const NAME: u64 = 4;
/// Nodes, and the blocks for them, that a processor counts between two tellings to the others.
const BATCH: u32 = 32;

/// What roll-forward may have to take into use.
#[derive(Debug)]
pub(crate) struct Room {
    /// Valid blocks at the last checkpoint.
    blocks: AtomicU64,
    /// Valid nodes at the last checkpoint.
    nodes: AtomicU64,
    /// Nodes of files that were synced since, including indirect nodes, which roll-forward rebuilds.
    logged: BatchedCount,
    /// The most blocks that those nodes and the names of the files take.
    wanted: BatchedCount,
    /// Blocks reserved since.
    reserved: ShardedCounter,
}

impl Room {
    pub(crate) fn new(blocks: u64, nodes: u64) -> Room {
        Room {
            blocks: AtomicU64::new(blocks),
            nodes: AtomicU64::new(nodes),
            logged: BatchedCount::new(BATCH),
            wanted: BatchedCount::new(BATCH),
            reserved: ShardedCounter::new(0),
        }
    }

    /// Counts blocks that were reserved, and not written.
    pub(crate) fn reserve(&self, blocks: u64) {
        protocol_step!("room_forgets_reservations", self.reserved.add(blocks as i64));
    }

    /// Counts a file that a sync is about to write, with so many nodes that changed, indirect ones too; `names`: how
    /// many names may have to be added for it. False: there is no room for it, or what was logged is too much to repeat (more than `most` nodes); nothing
    /// is counted then. Data of the file is counted already.
    pub(crate) fn log(&self, nodes: u64, names: u64, space: &Space, written: &BatchedCount, most: u64) -> bool {
        let name = protocol_value!("room_forgets_names", NAME.saturating_mul(names), 0);
        let own = protocol_value!("room_forgets_nodes", nodes, 0);
        let wanted = own.saturating_add(name);
        self.logged.add(nodes);
        self.wanted.add(wanted);
        protocol_step!("room_counted_without_fence", fence(Ordering::SeqCst));
        let is_room = self.logged.is_at_most(most) && self.is_enough(space, written);
        if !is_room {
            self.logged.take_back(nodes);
            self.wanted.take_back(wanted);
        }
        is_room
    }

    /// Whether there is room for all that is counted.
    fn is_enough(&self, space: &Space, written: &BatchedCount) -> bool {
        let reserved = self.reserved.sum().max(0).unsigned_abs();
        let taken = self.blocks.load(Ordering::Relaxed).saturating_add(reserved);
        let nodes = self.nodes.load(Ordering::Relaxed);
        let blocks_left = space.block_limit().checked_sub(taken);
        let nodes_left = space.node_limit().checked_sub(nodes);
        blocks_left.is_some_and(|left| self.wanted.are_at_most(written, left))
            && nodes_left.is_some_and(|left| self.wanted.is_at_most(left))
    }

    /// A checkpoint is frozen, with so much in use. Called with the gate closed.
    pub(crate) fn begin(&self, blocks: u64, nodes: u64) {
        self.blocks.store(blocks, Ordering::Relaxed);
        self.nodes.store(nodes, Ordering::Relaxed);
        self.logged.restart();
        self.wanted.restart();
        self.reserved.sub(self.reserved.sum());
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    /// Ten blocks and five nodes in use, of a hundred and fifty.
    fn room() -> (Room, Space, BatchedCount) {
        (Room::new(10, 5), Space::new(10, 100, 5, 50, 1), BatchedCount::new(BATCH))
    }

    #[test]
    fn what_is_refused_is_not_counted() {
        let (room, space, written) = room();
        for _ in 0..3 {
            assert!(!room.log(46, 0, &space, &written, 1000), "more nodes than there can be");
            assert!(!room.log(1, 23, &space, &written, 1000), "more blocks than there are");
            assert!(!room.log(31, 0, &space, &written, 30), "more than should be repeated");
        }
        assert!(room.log(30, 0, &space, &written, 30));
        assert!(!room.log(1, 0, &space, &written, 30) && room.log(15, 0, &space, &written, 1000));
        assert!(!room.log(1, 0, &space, &written, 1000));
    }

    #[test]
    fn data_and_names_and_reservations_take_room() {
        let (room, space, written) = room();
        written.add(40);
        room.reserve(20);
        assert!(!room.log(3, 7, &space, &written, 1000) && room.log(2, 7, &space, &written, 1000));
        assert!(!room.log(1, 0, &space, &written, 1000));
        // From a checkpoint on, with other blocks and nodes in use.
        written.restart();
        room.begin(60, 40);
        assert!(room.log(10, 0, &space, &written, 1000) && !room.log(1, 0, &space, &written, 1000));
        room.begin(60, 5);
        assert!(room.log(2, 9, &space, &written, 1000) && !room.log(3, 0, &space, &written, 1000));
        room.begin(101, 5);
        assert!(!room.log(0, 0, &space, &written, 1000), "a damaged count");
    }
}
