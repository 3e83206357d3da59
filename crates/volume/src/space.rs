//! How many blocks, nodes and inodes are in use, and whether more fit.
//!
//! A block is counted when it is reserved: a `NEW_ADDR` slot, a node that was never written. Moving a block (every
//! overwrite does) changes nothing here.

use f2fs_sync::CachePadded;
use f2fs_sync::atomic::{AtomicU64, Ordering};

use crate::VolumeError;

/// One counter with a limit.
#[derive(Debug)]
struct Bounded {
    used: CachePadded<AtomicU64>,
    limit: u64,
}

impl Bounded {
    fn new(used: u64, limit: u64) -> Bounded {
        Bounded { used: CachePadded::new(AtomicU64::new(used)), limit }
    }

    fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    fn take(&self, count: u64) -> Result<(), u64> {
        let fits = |used: u64| used.checked_add(count).filter(|sum| *sum <= self.limit);
        match self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits) {
            Ok(_) => Ok(()),
            Err(used) => Err(self.limit.saturating_sub(used)),
        }
    }

    fn give(&self, count: u64) {
        // Saturating: a corrupt volume may free more than it said was in use.
        let _ = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| Some(used.saturating_sub(count)));
    }
}

/// The counts that the checkpoint records.
#[derive(Debug)]
pub(crate) struct Space {
    blocks: Bounded,
    nodes: Bounded,
    inodes: CachePadded<AtomicU64>,
}

impl Space {
    pub(crate) fn new(blocks: u64, block_limit: u64, nodes: u64, node_limit: u64, inodes: u64) -> Space {
        Space {
            blocks: Bounded::new(blocks, block_limit),
            nodes: Bounded::new(nodes, node_limit),
            inodes: CachePadded::new(AtomicU64::new(inodes)),
        }
    }

    /// Reserves data blocks.
    pub(crate) fn take_blocks(&self, count: u64) -> Result<(), VolumeError> {
        self.blocks.take(count).map_err(|available| VolumeError::NoSpace { wanted: count, available })
    }

    /// Gives data blocks back.
    pub(crate) fn give_blocks(&self, count: u64) {
        self.blocks.give(count);
    }

    /// Reserves a node (which is a block, too).
    pub(crate) fn take_node(&self) -> Result<(), VolumeError> {
        self.take_blocks(1)?;
        self.nodes.take(1).map_err(|_| {
            self.give_blocks(1);
            VolumeError::NoNids { used: self.nodes.used(), limit: self.nodes.limit }
        })
    }

    /// Gives a node back.
    pub(crate) fn give_node(&self) {
        self.nodes.give(1);
        self.blocks.give(1);
    }

    /// Counts an inode.
    pub(crate) fn add_inode(&self) {
        self.inodes.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an inode less.
    pub(crate) fn drop_inode(&self) {
        let _ = self.inodes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| Some(count.saturating_sub(1)));
    }

    pub(crate) fn blocks(&self) -> u64 {
        self.blocks.used()
    }

    pub(crate) fn block_limit(&self) -> u64 {
        self.blocks.limit
    }

    pub(crate) fn nodes(&self) -> u64 {
        self.nodes.used()
    }

    pub(crate) fn node_limit(&self) -> u64 {
        self.nodes.limit
    }

    pub(crate) fn inodes(&self) -> u64 {
        self.inodes.load(Ordering::Relaxed)
    }
}
