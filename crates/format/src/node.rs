//! Node blocks: inode, direct node, indirect node, xattr node; and the footer that they share.

use alloc::boxed::Box;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::inode::Inode;
use crate::{BlockAddr, Nid, RawBlock};

/// Address slots of a direct node, NID slots of an indirect node.
pub const ADDRS_PER_BLOCK: usize = 1018;
/// Bytes in front of the footer.
pub const BODY_SIZE: usize = 4072;
/// Node offset of an xattr node, as the footer holds it (`XATTR_NODE_OFFSET` >> 3 of a 32-bit word).
pub const XATTR_NODE_OFFSET: u32 = u32::MAX >> 3;

/// Mark bits of the footer's `flag`; the node offset stands above them.
#[allow(missing_docs)] // the names are the header's
pub mod mark {
    pub const COLD: u32 = 1;
    pub const FSYNC: u32 = 2;
    pub const DENTRY: u32 = 4;
    /// Bits below the node offset.
    pub const SHIFT: u32 = 3;
}

/// The footer of a node block (`struct node_footer`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct NodeFooter {
    /// The node.
    pub nid: U32,
    /// The inode that it belongs to.
    pub ino: U32,
    /// Marks, and the node's offset in the file's tree shifted by 3.
    pub flag: U32,
    /// Checkpoint version (with its checksum above) when the block was written.
    pub cp_ver: U64,
    /// The next block of the log: the chain that roll-forward follows.
    pub next_blkaddr: U32,
}

const _: () = assert!(size_of::<NodeFooter>() == 24);

impl NodeFooter {
    /// The node's offset in the file's node tree: 0 for the inode, [`XATTR_NODE_OFFSET`] for the xattr node.
    #[must_use]
    pub fn node_offset(&self) -> u32 {
        self.flag.get() >> mark::SHIFT
    }

    /// Stores the offset; the marks stay.
    pub fn set_node_offset(&mut self, offset: u32) {
        let marks = self.flag.get() & ((1 << mark::SHIFT) - 1);
        self.flag = U32::new(offset << mark::SHIFT | marks);
    }

    /// Whether a mark is set.
    #[must_use]
    pub fn has_mark(&self, mark: u32) -> bool {
        self.flag.get() & mark != 0
    }

    /// Sets or clears a mark.
    pub fn set_mark(&mut self, mark: u32, on: bool) {
        let flag = self.flag.get();
        self.flag = U32::new(if on { flag | mark } else { flag & !mark });
    }
}

/// A node block (`struct f2fs_node`).
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct NodeBlock {
    /// Inode, addresses or NIDs.
    pub body: [u8; BODY_SIZE],
    /// The footer.
    pub footer: NodeFooter,
}

const _: () = assert!(size_of::<NodeBlock>() == 4096);

impl core::fmt::Debug for NodeBlock {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("NodeBlock").field("footer", &self.footer).finish_non_exhaustive()
    }
}

impl NodeBlock {
    /// All zero.
    pub const ZERO: NodeBlock = zerocopy::transmute!([0u8; 4096]);

    /// All zero, on the heap.
    #[must_use]
    pub fn new_box() -> Box<NodeBlock> {
        NodeBlock::new_box_zeroed().unwrap_or_else(|_| Box::new(NodeBlock::ZERO))
    }

    /// The block as a node.
    #[must_use]
    pub fn read(block: &RawBlock) -> &NodeBlock {
        zerocopy::transmute_ref!(block)
    }

    /// The block as bytes.
    #[must_use]
    pub fn as_block(&self) -> &RawBlock {
        zerocopy::transmute_ref!(self)
    }

    /// Whether the footer says that this is an inode.
    #[must_use]
    pub fn is_inode(&self) -> bool {
        self.footer.nid == self.footer.ino
    }

    /// The body as an inode. Check [`is_inode`](Self::is_inode) first.
    #[must_use]
    pub fn inode(&self) -> &Inode {
        zerocopy::transmute_ref!(&self.body)
    }

    /// The body as an inode.
    pub fn inode_mut(&mut self) -> &mut Inode {
        zerocopy::transmute_mut!(&mut self.body)
    }

    /// The body as the slots of a direct node (block addresses) or an indirect node (NIDs).
    #[must_use]
    pub fn slots(&self) -> &[U32; ADDRS_PER_BLOCK] {
        zerocopy::transmute_ref!(&self.body)
    }

    /// The body as slots.
    pub fn slots_mut(&mut self) -> &mut [U32; ADDRS_PER_BLOCK] {
        zerocopy::transmute_mut!(&mut self.body)
    }

    /// Number of address slots: of the inode (less extra attributes and inline xattr), or of a direct node.
    #[must_use]
    pub fn address_count(&self, features: crate::feature::Features) -> usize {
        if self.is_inode() { self.inode().layout(features).address_count() } else { ADDRS_PER_BLOCK }
    }

    /// All addresses in this node, holes among them.
    pub fn addresses(&self, features: crate::feature::Features) -> impl ExactSizeIterator<Item = BlockAddr> + '_ {
        self.address_slots(features).iter().map(|raw| BlockAddr::from(*raw))
    }

    /// All address slots that are usable in this node: of the inode (less extra attributes and inline xattr), or of a
    /// direct node.
    #[must_use]
    pub fn address_slots(&self, features: crate::feature::Features) -> &[U32] {
        if !self.is_inode() {
            return self.slots();
        }
        let layout = self.inode().layout(features);
        &self.inode().i_addr[layout.extra_words..][..layout.address_count()]
    }

    /// The part of these address slots from the first one that is no hole to the last, or some slots more; most files use
    /// few of their inode's. Empty if all are holes.
    #[must_use]
    pub fn named_slots(
        &self,
        slots: core::ops::Range<usize>,
        features: crate::feature::Features,
    ) -> core::ops::Range<usize> {
        /// Looked at together, which is several at once for the processor.
        const TOGETHER: usize = 16;
        let all = self.address_slots(features);
        let end = slots.end.min(all.len());
        let part = all.get(slots.start..end).unwrap_or_default();
        let is_named = |slots: &[U32]| slots.iter().fold(0, |any, raw| any | raw.get()) != 0;
        let Some(first) = part.chunks(TOGETHER).position(is_named) else { return 0..0 };
        let last = part.chunks(TOGETHER).rposition(is_named).unwrap_or(first);
        slots.start + first * TOGETHER..(slots.start + (last + 1) * TOGETHER).min(end)
    }

    /// Address slot `index`, counted from the first one that is usable in this node; `None` beyond the last.
    #[must_use]
    pub fn address(&self, index: usize, features: crate::feature::Features) -> Option<BlockAddr> {
        if self.is_inode() {
            let layout = self.inode().layout(features);
            (index < layout.address_count()).then(|| self.inode().i_addr[layout.extra_words + index].into())
        } else {
            self.slots().get(index).map(|raw| (*raw).into())
        }
    }

    /// Stores an address slot; tells whether it exists.
    pub fn set_address(&mut self, index: usize, addr: BlockAddr, features: crate::feature::Features) -> bool {
        if self.is_inode() {
            let layout = self.inode().layout(features);
            if index >= layout.address_count() {
                return false;
            }
            self.inode_mut().i_addr[layout.extra_words + index] = addr.into();
            true
        } else if let Some(slot) = self.slots_mut().get_mut(index) {
            *slot = addr.into();
            true
        } else {
            false
        }
    }

    /// The footer's NID.
    #[must_use]
    pub fn nid(&self) -> Nid {
        self.footer.nid.into()
    }

    /// The footer's inode number.
    #[must_use]
    pub fn ino(&self) -> Nid {
        self.footer.ino.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feature::Features;

    #[test]
    fn named_slots_reach_from_the_first_address_to_the_last() {
        let mut node = NodeBlock::new_box();
        let features = Features::default();
        node.footer.nid = 5.into();
        node.footer.ino = 4.into();
        assert_eq!(node.named_slots(0..ADDRS_PER_BLOCK, features), 0..0);
        for at in [17, 40, ADDRS_PER_BLOCK - 1] {
            node.slots_mut()[at] = 9.into();
        }
        assert_eq!(node.named_slots(0..ADDRS_PER_BLOCK, features), 16..ADDRS_PER_BLOCK);
        assert_eq!(node.named_slots(0..30, features), 16..30);
        assert_eq!(node.named_slots(18..ADDRS_PER_BLOCK - 1, features), 34..50);
        assert_eq!(node.named_slots(41..ADDRS_PER_BLOCK - 1, features), 0..0);
        assert_eq!(node.named_slots(ADDRS_PER_BLOCK..usize::MAX, features), 0..0);
    }
}
