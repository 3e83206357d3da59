//! A node, and the guards through which its block is read and changed.
//!
//! # Locking
//!
//! Each page has one reader-writer lock over its block. Order: the page of an inode before the pages of its tree,
//! parents before children; NAT, logs and segments come after any page. A page is changed only by the holder of an
//! [`Op`], so that a checkpoint, which holds the gate closed, sees no page in the middle of an operation.

use core::fmt;
use core::ops::{Deref, DerefMut};

use f2fs_format::feature::Features;
use f2fs_format::node::NodeBlock;
use f2fs_format::{BlockAddr, Nid};
use f2fs_sync::atomic::Ordering;
use f2fs_sync::{Arc, RwLockReadGuard, RwLockWriteGuard, protocol_value};

use crate::node_page::NodePage;
use crate::node_store::NodeStore;
use crate::op::Unwinding;
use crate::{Op, Volume};

/// A node: an inode, a direct or indirect node, or an xattr node. Cheap to clone; keeps the block in memory.
#[derive(Clone)]
pub struct Node {
    pub(crate) page: Arc<NodePage>,
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node").field("nid", &self.page.nid).field("ino", &self.page.ino).finish()
    }
}

impl Node {
    /// Its identifier.
    #[must_use]
    pub fn nid(&self) -> Nid {
        self.page.nid
    }

    /// The inode that it belongs to.
    #[must_use]
    pub fn ino(&self) -> Nid {
        self.page.ino
    }

    /// Whether the node was freed; its content means nothing any more.
    #[must_use]
    pub fn is_removed(&self) -> bool {
        self.page.removed.load(Ordering::Acquire)
    }

    /// The block, to read.
    #[must_use]
    #[cfg_attr(f2fs_manycore, track_caller)]
    pub fn read(&self) -> NodeRead<'_> {
        NodeRead { guard: self.page.block.read() }
    }

    /// Whether a data slot names this block, and the block is on the device.
    pub(crate) fn owns(&self, slot: usize, addr: BlockAddr, features: Features) -> bool {
        let block = self.page.block.read();
        let named = block.address(slot, features) == Some(addr);
        // Counted under the page's lock before a slot names what is on its way, and down when it has landed.
        named && protocol_value!("node_owns_what_is_on_its_way", self.page.awaits.load(Ordering::Acquire), 0) == 0
    }

    /// The block, to change; it is dirty from here on. `op` must be of the volume that the node came from.
    #[must_use]
    #[cfg_attr(f2fs_manycore, track_caller)]
    pub fn write<'a>(&'a self, op: &Op<'a>) -> NodeWrite<'a> {
        let guard = self.page.block.write();
        if let Some(dirty) = NodeStore::mark_dirty(&op.volume.store, &self.page) {
            let Volume { pressure, store, segments, .. } = op.volume;
            pressure.node_became_dirty(dirty, store, segments);
        }
        NodeWrite { _unwinding: op.unwinding.again(), guard }
    }
}

/// Shared access to a node block.
pub struct NodeRead<'a> {
    guard: RwLockReadGuard<'a, Box<NodeBlock>>,
}

impl Deref for NodeRead<'_> {
    type Target = NodeBlock;
    fn deref(&self) -> &NodeBlock {
        &self.guard
    }
}

impl fmt::Debug for NodeRead<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// Exclusive access to a node block.
pub struct NodeWrite<'a> {
    /// In front of the lock, so that it is dropped first: a sync that reads a page half changed finds the volume
    /// stopped.
    _unwinding: Unwinding<'a>,
    guard: RwLockWriteGuard<'a, Box<NodeBlock>>,
}

impl Deref for NodeWrite<'_> {
    type Target = NodeBlock;
    fn deref(&self) -> &NodeBlock {
        &self.guard
    }
}

impl DerefMut for NodeWrite<'_> {
    fn deref_mut(&mut self) -> &mut NodeBlock {
        &mut self.guard
    }
}

impl fmt::Debug for NodeWrite<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests {
    use super::*;

    use f2fs_format::LogType;

    use crate::samples::{address, inode, leave_free, plain, segments, write};

    #[test]
    fn a_node_owns_the_blocks_that_its_slots_name() {
        let volume = plain(64);
        let node = inode(&volume);
        write(&volume, &node, 3..5, LogType::WarmData);
        let (addr, features) = (address(&volume, &node, 3), volume.features());
        assert!(node.owns(3, addr, features) && node.owns(4, addr.offset(1), features));
        assert!(!node.owns(3, addr.offset(1), features) && !node.owns(5, addr, features));
        // A write is on its way to one of them.
        node.page.awaits.fetch_add(1, Ordering::AcqRel);
        assert!(!node.owns(3, addr, features));
        assert!(!node.is_removed());
        volume.nodes().remove(&volume.begin().unwrap(), &node).unwrap();
        assert!(node.is_removed());
    }

    /// Where sections are few, every eighth node that becomes dirty on a processor is told.
    #[test]
    fn dirty_nodes_are_told() {
        let volume = plain(64);
        leave_free(&volume, 9);
        let told = (0..8 * f2fs_sync::processors() + 8).any(|_| {
            drop(inode(&volume));
            segments(&volume).dirty_sections() == 1
        });
        assert!(told);
    }
}
