//! The direct node that each processor used last: a thread that writes its part of a large file finds its slots without
//! a look at the nodes above, which all writers of the file would share.
//!
//! # Locking
//!
//! Each processor has a lock of its own. It is never waited for: who finds it taken goes down the tree. A node that is
//! remembered stays in memory, so there is no second page of it; it is of use until it is removed. The caller keeps
//! truncation of the block away (`tree.rs`), so a node that is not removed yet has the block's slot until the caller is
//! done.

use f2fs_format::Nid;
use f2fs_format::inode::ADDRS_PER_INODE;
use f2fs_sync::atomic::Ordering;
use f2fs_sync::{Arc, Mutex, PerCore, protocol_value};

use crate::node_page::NodePage;

/// Blocks in front of this one may have their slots in the inode.
const FIRST: u64 = ADDRS_PER_INODE as u64;

/// Slots of one node.
#[derive(Clone, Debug)]
struct Recent {
    ino: Nid,
    /// The block of its first slot.
    first: u64,
    slots: u64,
    node: Arc<NodePage>,
}

/// One direct node for each processor.
#[derive(Debug, Default)]
pub(crate) struct RecentNodes(PerCore<Mutex<Option<Recent>>>);

impl RecentNodes {
    /// The node with the slot of a block, and the slot's number, if this processor used it last.
    #[inline]
    pub(crate) fn find(&self, ino: Nid, block: u64) -> Option<(Arc<NodePage>, usize)> {
        if block < FIRST {
            return None;
        }
        let recent = self.0.slot().try_lock()?;
        let Recent { first, slots, node, .. } = recent.as_ref().filter(|recent| recent.ino == ino)?;
        let index = block.checked_sub(*first).filter(|index| index < slots)?;
        if protocol_value!("recent_node_was_removed", node.removed.load(Ordering::Acquire), false) {
            return None;
        }
        Some((node.clone(), index as usize))
    }

    /// Remembers the node that has the slot of a block, at `index`. A direct node of the file has so many slots.
    pub(crate) fn note(&self, ino: Nid, block: u64, node: &Arc<NodePage>, index: usize, slots: u16) {
        if block < FIRST || node.nid == ino {
            return;
        }
        let Some(mut recent) = self.0.slot().try_lock() else { return };
        let (first, node) = (block - index as u64, node.clone());
        let before = recent.replace(Recent { ino, first, slots: slots.into(), node });
        drop(recent);
        drop(before);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests {
    use super::*;

    use f2fs_format::node::NodeBlock;

    fn page(nid: u32, ino: u32) -> Arc<NodePage> {
        let mut block = NodeBlock::new_box();
        block.footer.nid = nid.into();
        block.footer.ino = ino.into();
        Arc::new(NodePage::new(block))
    }

    /// What the processor finds right behind a note, even if the thread moves to another one now and then.
    fn found(recent: &RecentNodes, note: impl Fn(&RecentNodes), ino: u32, block: u64) -> Option<usize> {
        (0..100).find_map(|_| {
            note(recent);
            recent.find(Nid(ino), block).map(|(_, index)| index)
        })
    }

    #[test]
    fn a_node_has_the_slots_around_the_one_that_was_used() {
        let (recent, node) = (RecentNodes::default(), page(9, 5));
        let note = |recent: &RecentNodes| recent.note(Nid(5), 3000, &node, 77, 1018);
        let at = |ino, block| found(&recent, note, ino, block);
        assert_eq!((at(5, 3000), at(5, 2923), at(5, 2922 + 1018)), (Some(77), Some(0), Some(1017)));
        assert_eq!((at(5, 2922), at(5, 2923 + 1018), at(6, 3000)), (None, None, None));
        node.removed.store(true, Ordering::Release);
        assert_eq!(at(5, 3000), None, "it was freed");
    }

    #[test]
    fn inodes_are_not_remembered() {
        let (recent, inode, first) = (RecentNodes::default(), page(5, 5), page(9, 5));
        let note = |recent: &RecentNodes| recent.note(Nid(5), 3000, &inode, 77, 1018);
        assert_eq!(found(&recent, note, 5, 3000), None);
        // The first direct node, where an inode has as many slots as it can.
        let note = |recent: &RecentNodes| recent.note(Nid(5), FIRST, &first, 0, 1018);
        assert_eq!(found(&recent, note, 5, FIRST), Some(0));
        let note = |recent: &RecentNodes| recent.note(Nid(5), FIRST + 9, &first, 10, 1018);
        assert_eq!(found(&recent, note, 5, FIRST - 1), None);
        let note = |recent: &RecentNodes| recent.note(Nid(7), FIRST - 1, &first, 10, 1018);
        assert_eq!(found(&recent, note, 7, FIRST), None);
    }
}
