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
