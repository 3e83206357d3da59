//! Quota files that lost blocks.
//!
//! Quotas are not counted here, and whatever stood in such a block will be counted anew by `fsck.f2fs`. But it writes
//! over the blocks that a quota file has, and dies where it has none. So each hole gets a block of zeros.

use f2fs_format::dentry::FileType;
use f2fs_format::inode::inline;
use f2fs_format::node::NodeBlock;
use f2fs_format::{BLOCK_SIZE, BlockAddr, LogType, Nid};

use super::RepairError;
use super::grow::block;
use super::nodes::node_of;
use super::overlay::Overlay;
use super::state::{Claim, Reference, Slot, State, Trust};
use super::tables::Tables;
use super::walk::Walk;
use crate::quota;

/// Fills the holes of all quota files, as far as their inodes' own addresses reach. Everything that is in use must be
/// known: the new blocks go where nothing is.
pub(super) fn fill(overlay: &Overlay, tables: &mut Tables, state: &mut State) -> Result<(), RepairError> {
    let mut walk = Walk::new(overlay, tables, state);
    for ino in walk.tables.sb.qf_ino.map(Nid::from) {
        if walk.state.inodes.contains_key(&ino.0) {
            fill_one(&mut walk, ino)?;
        }
    }
    Ok(())
}

fn fill_one(walk: &mut Walk<'_>, ino: Nid) -> Result<(), RepairError> {
    let features = walk.tables.geometry.features;
    let (addr, mut node) = node_of(walk, ino)?;
    let is_file = FileType::from_mode(node.inode().i_mode.get()) == FileType::Regular;
    if !is_file || node.inode().i_inline & inline::DATA != 0 {
        return Ok(());
    }
    let mut filled = 0;
    for slot in 0..blocks(walk, &node)? {
        if node.address(slot, features) != Some(BlockAddr::NULL) {
            continue;
        }
        // Without room it stays a hole.
        let Some(fresh) = block(walk, LogType::WarmData)? else { break };
        let by = Reference { holder: ino, slot: Slot::Address(slot as u32) };
        let claim = Claim { by, trust: Trust::Sound, is_node: false, owner: (ino, slot as u16) };
        walk.state.claim_block(fresh.0, claim);
        walk.overlay.put(fresh, &[0; BLOCK_SIZE]);
        node.set_address(slot, fresh, features);
        node.inode_mut().add_blocks(1);
        filled += 1;
    }
    if filled != 0 {
        walk.state.act(|| {
            format!("inode {ino}: a quota file, {filled} blocks that it lost are there again, without numbers")
        });
        walk.put(addr, &mut node);
    }
    Ok(())
}

/// The blocks that a quota file has, as its head says; else its size.
fn blocks(walk: &Walk<'_>, node: &NodeBlock) -> Result<usize, RepairError> {
    let features = walk.tables.geometry.features;
    let by_size = node.inode().i_size.get().div_ceil(BLOCK_SIZE as u64);
    let mut blocks = by_size;
    if let Some(first) = node.address(0, features).filter(|addr| walk.tables.is_there(*addr))
        && let Some(bytes) = quota::length(&*walk.overlay.block(first)?)
    {
        blocks = by_size.min(bytes.div_ceil(BLOCK_SIZE as u64));
    }
    Ok(blocks.min(node.address_count(features) as u64) as usize)
}
