//! Nodes as the repair sees them: what it has changed in memory, else what the device has.

use f2fs_format::node::NodeBlock;
use f2fs_format::{BlockAddr, Nid};

use super::RepairError;
use super::walk::Walk;

/// A node, and where it is.
pub(super) fn node_of(walk: &Walk<'_>, ino: Nid) -> Result<(BlockAddr, Box<NodeBlock>), RepairError> {
    let addr: BlockAddr = walk.tables.nat.get(ino).block_addr.into();
    Ok((addr, Box::new(*NodeBlock::read(&*walk.overlay.block(addr)?))))
}
