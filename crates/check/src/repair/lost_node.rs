//! Nodes whose blocks were lost: what summaries and footers still say of them is put together again.
//!
//! The summary of each block names the node and the slot that it stood in, and the footer of each node its inode and
//! its place there. So a file whose inode was lost keeps its content, to whole blocks; its name is its directory's. Its
//! permissions, owner, times and exact size are gone, and so is what stood in the inode itself.

use f2fs_format::dentry::FileType;
use f2fs_format::feature::Features;
use f2fs_format::inode::{self, DEFAULT_INLINE_XATTR_WORDS, EXTRA_SIZE, inline};
use f2fs_format::node::{NodeBlock, XATTR_NODE_OFFSET};
use f2fs_format::path::{self, NodeKind};
use f2fs_format::{BlockAddr, Nid};

use super::RepairError;
use super::walk::Walk;

/// Permissions of what lost its own: the owner's alone.
const DIRECTORY_MODE: u16 = 0o700;
const FILE_MODE: u16 = 0o600;

impl Walk<'_> {
    /// Gives an inode that does not say what it is its layout, its blocks and its nodes back.
    pub(super) fn remake_inode(
        &mut self,
        ino: Nid,
        file_type: FileType,
        node: &mut NodeBlock,
    ) -> Result<(), RepairError> {
        let features = self.tables.geometry.features;
        let inode = node.inode_mut();
        if inode.i_mode.get() == 0 {
            let mode = if file_type == FileType::Directory { DIRECTORY_MODE } else { FILE_MODE };
            inode.i_mode = mode.into();
        }
        if !matches!(file_type, FileType::Regular | FileType::Directory) || inode.i_inline & inline::DATA != 0 {
            return Ok(());
        }
        let owners = self.owners()?;
        let slots = owners.blocks(ino).iter().map(|(slot, _)| usize::from(*slot) + 1).max().unwrap_or(0);
        lay_out(node, features, slots);
        let mut found = 0;
        for slot in 0..node.address_count(features) {
            let lost = node.address(slot, features).is_none_or(BlockAddr::is_null);
            if let Some(addr) = owners.block(ino, slot).filter(|_| lost) {
                found += u64::from(node.set_address(slot, addr, features));
            }
        }
        let inode = node.inode_mut();
        let mut nodes = 0;
        for (slot, nid) in inode.i_nid.iter_mut().enumerate().filter(|(_, nid)| nid.get() == 0) {
            let child = path::child(0, slot).and_then(|offset| owners.node(ino, offset));
            if let Some(child) = child {
                *nid = child.into();
                nodes += 1;
            }
        }
        if let Some(nid) = owners.node(ino, XATTR_NODE_OFFSET).filter(|_| inode.i_xattr_nid.get() == 0) {
            inode.i_xattr_nid = nid.into();
            nodes += 1;
        }
        self.state.act(|| {
            format!(
                "inode {ino}: is put together again, {found} blocks and {nodes} nodes by what summaries and footers say; \
                 its permissions, owner, times and exact size are lost"
            )
        });
        Ok(())
    }

    /// Fills a node that has nothing in it, though blocks or nodes say that they stood there.
    pub(super) fn refill(&mut self, ino: Nid, nid: Nid, offset: u32, node: &mut NodeBlock) -> Result<(), RepairError> {
        if node.slots().iter().any(|slot| slot.get() != 0) {
            return Ok(());
        }
        let is_direct = NodeKind::of(offset) == Some(NodeKind::Direct);
        let owners = self.owners()?;
        let mut found = 0;
        for (slot, raw) in node.slots_mut().iter_mut().enumerate() {
            let value = if is_direct {
                owners.block(nid, slot).map(|addr| addr.0)
            } else {
                path::child(offset, slot).and_then(|child| owners.node(ino, child)).map(|child| child.0)
            };
            if let Some(value) = value {
                *raw = value.into();
                found += 1;
            }
        }
        if found != 0 {
            let what = if is_direct { "summaries" } else { "footers" };
            self.state.act(|| format!("nid {nid}: is put together again, {found} slots by what {what} say"));
        }
        Ok(())
    }
}

/// Gives an inode that may have lost its layout the one that leaves room for so many addresses: if the file has more in
/// other nodes, they are all that its inode holds, as a rule.
fn lay_out(node: &mut NodeBlock, features: Features, slots: usize) {
    let has_extra = features.contains(Features::EXTRA_ATTR);
    let is_whole = match has_extra {
        true => node.inode().i_inline & inline::EXTRA_ATTR != 0,
        // It may lack no flag.
        false => node.inode().i_addr.iter().any(|addr| addr.get() != 0),
    };
    if is_whole {
        return;
    }
    // Linux reserves all of the extra attributes, f2fs-tools those that are needed; most inodes keep room for others.
    let sizes: &[usize] = if has_extra { &[EXTRA_SIZE, inode::extra_size(features)] } else { &[0] };
    let layouts = sizes.iter().flat_map(|size| [(*size, inline::XATTR), (*size, 0)]);
    let with = |(size, xattr): (usize, u8)| {
        let mut node = *node;
        let inode = node.inode_mut();
        inode.i_inline = inode.i_inline & !inline::XATTR | xattr;
        if size != 0 {
            inode.i_inline |= inline::EXTRA_ATTR;
            inode.extra_mut().i_extra_isize = (size as u16).into();
            if features.contains(Features::FLEXIBLE_INLINE_XATTR) {
                inode.extra_mut().i_inline_xattr_size = (DEFAULT_INLINE_XATTR_WORDS as u16).into();
            }
        }
        node
    };
    let fits = |node: &NodeBlock| node.address_count(features) >= slots;
    let exactly = layouts.clone().map(with).find(|node| node.address_count(features) == slots);
    if let Some(node_with) = exactly.or_else(|| layouts.map(with).find(fits)) {
        *node = node_with;
    }
}
