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
