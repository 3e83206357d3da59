//! The effects of a node of the chain on its file: attributes, inline data, addresses (`do_recover_data`).

use f2fs_format::feature::Features;
use f2fs_format::inode::{Extent, advise, inline};
use f2fs_format::node::{BODY_SIZE, NodeBlock, XATTR_NODE_OFFSET};
use f2fs_format::path::{NodeKind, first_block};
use f2fs_format::summary::Summary;
use f2fs_format::{BLOCK_SIZE, BlockAddr, Corruption, Nid};
use f2fs_sync::protocol_value;
use f2fs_volume::tree::{Slot, add_blocks, ensure_slot, load_child};
use f2fs_volume::{Change, NewNode, Op};

use crate::FsError;
use crate::inode::{Inode, is_inline};
use crate::recovery::RollForward;
use crate::stat::FileKind;
use crate::truncate::{Progress, truncate_step};

impl RollForward<'_> {
    /// Brings a file to what one of its nodes says; returns the data blocks taken into use.
    pub(super) fn recover_node(&self, op: &Op<'_>, inode: &Inode, block: &NodeBlock) -> Result<u64, FsError> {
        let offset = if block.is_inode() { 0 } else { block.footer.node_offset() };
        match NodeKind::of(offset) {
            Some(NodeKind::Inode) if block.is_inode() => {
                self.recover_inline_xattrs(op, inode, block.inode())?;
                if !matches!(inode.kind, FileKind::Regular | FileKind::Symlink) {
                    return Ok(0);
                }
                if self.recover_inline(op, inode, block)? {
                    return Ok(0);
                }
            }
            Some(NodeKind::Xattr) => {
                self.recover_xattr_node(op, inode, block)?;
                return Ok(0);
            }
            Some(NodeKind::Direct) if matches!(inode.kind, FileKind::Regular | FileKind::Symlink) => {
                if is_inline(&inode.node) {
                    self.clear_inline(op, inode);
                }
            }
            _ => return Err(FsError::corrupt("offset of a synced node", offset.into(), 0, XATTR_NODE_OFFSET.into())),
        }
        self.recover_addresses(op, inode, block, offset)
    }

    fn clear_inline(&self, op: &Op<'_>, inode: &Inode) {
        let mut node = inode.node.write(op);
        let raw = node.inode_mut();
        raw.inline_data_mut(self.volume.features()).fill(0);
        raw.i_inline &= !inline::DATA;
    }

    /// Inline data, before and now; tells whether the file is inline now (`f2fs_recover_inline_data`).
    fn recover_inline(&self, op: &Op<'_>, inode: &Inode, block: &NodeBlock) -> Result<bool, FsError> {
        let features = self.volume.features();
        let was = is_inline(&inode.node);
        let from = block.inode();
        if from.i_inline & inline::DATA == 0 {
            if was {
                self.clear_inline(op, inode);
            }
            return Ok(false);
        }
        if !was {
            while truncate_step(op, &inode.node, 0)? == Progress::More {}
        }
        let mut node = inode.node.write(op);
        let to = node.inode_mut();
        to.i_inline |= inline::DATA | inline::DATA_EXIST;
        let (from, to) = (from.inline_data(features), to.inline_data_mut(features));
        if from.len() != to.len() {
            let (found, expected) = (from.len() as u64, to.len() as u64);
            return Err(FsError::corrupt("inline data of a synced inode", found, expected, expected));
        }
        to.copy_from_slice(from);
        Ok(true)
    }

    /// The node that holds the attributes for which the inode has no room.
    fn recover_xattr_node(&self, op: &Op<'_>, inode: &Inode, block: &NodeBlock) -> Result<(), FsError> {
        let nid: Nid = inode.node.read().inode().i_xattr_nid.into();
        let node = if nid.is_null() {
            let new = NewNode { ino: Some(inode.ino), offset: XATTR_NODE_OFFSET, directory: false };
            let node = self.volume.nodes().create(op, new)?;
            inode.node.write(op).inode_mut().i_xattr_nid = node.nid().into();
            add_blocks(op, &inode.node, 1);
            node
        } else {
            load_child(&self.volume, inode.ino, nid, XATTR_NODE_OFFSET)?
        };
        node.write(op).body[..BODY_SIZE].copy_from_slice(&block.body);
        Ok(())
    }

    /// Brings the addresses of one node to those of the chain.
    fn recover_addresses(&self, op: &Op<'_>, inode: &Inode, block: &NodeBlock, offset: u32) -> Result<u64, FsError> {
        let features = self.volume.features();
        let addresses = inode.node.read().inode().layout(features).addresses();
        let start = first_block(offset, addresses).ok_or_else(|| {
            FsError::corrupt("offset of a synced node", offset.into(), 0, f2fs_format::path::END.into())
        })?;
        let whole = |count: usize| if block.is_inode() { count } else { usize::from(addresses.direct) };
        let count = whole(block.address_count(features));
        let slot = ensure_slot(op, &inode.node, start)?;
        let here = whole(slot.node.read().address_count(features));
        if here != count {
            return Err(FsError::corrupt("addresses of a synced node", count as u64, here as u64, here as u64));
        }
        let mut adopted = 0;
        for index in 0..count {
            let new = block.address(index, features).unwrap_or(BlockAddr::NULL);
            let slot = Slot { node: slot.node.clone(), index };
            let old = slot.get(&self.volume);
            if old == new || protocol_value!("recovery_keeps_punched_blocks", false, new.is_null()) {
                continue;
            }
            // A cluster of compressed blocks begins with an address that means none.
            let has_clusters = features.contains(Features::COMPRESSION);
            let means_a_block = |addr: &BlockAddr| match *addr {
                BlockAddr::NULL | BlockAddr::NEW => false,
                BlockAddr::COMPRESS => !has_clusters,
                _ => true,
            };
            for addr in [old, new].into_iter().filter(means_a_block) {
                if !self.volume.geometry().in_main(addr) {
                    let what = "address in a synced node";
                    return Err(FsError::Volume(Corruption::Address { what, nid: inode.ino, addr }.into()));
                }
            }
            if !new.is_null() {
                self.grow(op, inode, start + index as u64);
            }
            adopted += u64::from(new.is_real());
            self.recover_address(op, inode, &slot, old, new)?;
        }
        inode.node.write(op).inode_mut().i_ext = Extent::NONE;
        Ok(adopted)
    }

    /// The kernel lets the file reach over each block that is recovered, unless it was reserved behind the end on
    /// purpose.
    fn grow(&self, op: &Op<'_>, inode: &Inode, block: u64) {
        let reaches = {
            let node = inode.node.read();
            let raw = node.inode();
            raw.i_advise & advise::KEEP_SIZE != 0 || raw.i_size.get() > block * BLOCK_SIZE as u64
        };
        if !reaches {
            inode.node.write(op).inode_mut().i_size = ((block + 1) * BLOCK_SIZE as u64).into();
        }
    }

    fn recover_address(
        &self,
        op: &Op<'_>,
        inode: &Inode,
        slot: &Slot,
        old: BlockAddr,
        new: BlockAddr,
    ) -> Result<(), FsError> {
        if old.is_null() {
            self.volume.data().reserve(op, 1)?;
            add_blocks(op, &inode.node, 1);
        }
        if new.is_real() {
            self.release_owner(op, new)?;
            let version = self.volume.nodes().version(slot.node.nid())?;
            if let Err(error) =
                self.volume.recovery().adopt_block(op, new, Summary::new(slot.node.nid(), version, slot.index as u16))
            {
                return Err(error.into());
            }
        }
        let slots = slot.index..slot.index + 1;
        self.volume.slots().change(op, &slot.node, slots, |_, _| Change::To(new), |_, _| {})?;
        if new.is_null() {
            self.volume.data().unreserve(op, 1);
            add_blocks(op, &inode.node, -1);
        }
        Ok(())
    }

    /// A block that is in use belonged to another place when the checkpoint was written, or when an earlier node of the
    /// chain was: that place loses it (`check_index_in_prev_nodes`). It can only be a regular file's: blocks of a
    /// removed directory or link are not free before the next checkpoint, and that ends the chain.
    fn release_owner(&self, op: &Op<'_>, addr: BlockAddr) -> Result<(), FsError> {
        let Some(summary) = self.volume.recovery().owner_of(addr)? else { return Ok(()) };
        let node = self.volume.nodes().get(summary.nid.into())?;
        let slot = Slot { node, index: usize::from(summary.ofs_in_node.get()) };
        if slot.get(&self.volume) != addr {
            return Ok(());
        }
        let owner = self.inode(slot.node.ino())?;
        if owner.kind != FileKind::Regular {
            let what = "synced as another file's, and a directory's or a link's";
            return Err(FsError::Volume(Corruption::Block { what, nid: owner.ino, addr }.into()));
        }
        self.volume.slots().clear(op, &slot.node, slot.index..slot.index + 1, |_, _| {})?;
        add_blocks(op, &owner.node, -1);
        Ok(())
    }
}
