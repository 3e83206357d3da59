//! The chain of node blocks that roll-forward would follow after an unclean stop.
//!
//! The check judges the checkpoint, not the result of roll-forward. But a chain that loops, or runs over blocks that
//! the checkpoint holds for valid, is no chain that a crash leaves.

use f2fs_device::AlignedBuf;
use f2fs_format::checkpoint::flags;
use f2fs_format::node::{NodeBlock, XATTR_NODE_OFFSET, mark};
use f2fs_format::{BLOCKS_PER_SEGMENT, BlockAddr, Geometry, LogType};

use super::ahead::Ahead;
use super::error::CheckError;
use super::finding::{FindingKind, Place};
use super::pack::Pack;
use super::report::Collector;
use super::sit::SitTable;
use super::source::Source;
use super::sparse::SparseBits;

/// Blocks of a chain that are read together at most: 1 MiB.
const MOST_AHEAD: usize = 256;

/// Whether the footer says that the block was written after this checkpoint (`is_recoverable_dnode`).
pub(super) fn is_recoverable(pack: &Pack, node: &NodeBlock) -> bool {
    let (version, found) = (pack.header().checkpoint_ver.get(), node.footer.cp_ver.get());
    if pack.has(flags::NOCRC_RECOVERY) {
        return version << 32 == found << 32;
    }
    pack.block.footer_version() == found
}

/// Where the chain begins, if there may be one: where the warm-node log goes on.
pub(super) fn start(pack: &Pack, geometry: &Geometry) -> Option<BlockAddr> {
    // A read-only volume has no such log, and the pack's fields of it were not checked.
    if pack.has(flags::UMOUNT) || !geometry.has_log(LogType::WarmNode) {
        return None;
    }
    let (segment, offset) = pack.log(LogType::WarmNode);
    Some(geometry.block_at(segment, offset))
}

/// Whether something was synced after the checkpoint.
pub(super) fn is_there(source: &Source<'_>, pack: &Pack, geometry: &Geometry) -> Result<bool, CheckError> {
    let Some(start) = start(pack, geometry).filter(|start| geometry.in_main(*start)) else { return Ok(false) };
    Ok(is_recoverable(pack, NodeBlock::read(source.block(start)?.block(0))))
}

/// Follows the chain.
pub(super) fn check(
    source: &Source<'_>,
    pack: &Pack,
    geometry: &Geometry,
    sit: &SitTable,
    findings: &Collector,
) -> Result<(), CheckError> {
    let Some(mut addr) = start(pack, geometry) else { return Ok(()) };
    let kind = FindingKind::RecoveryChain;
    let seen = SparseBits::new(geometry.main_blocks().into());
    let (mut ahead, mut reach) = (Ahead::default(), 1);
    while let Some((segment, offset)) = geometry.locate(addr) {
        if ahead.get(addr).is_none() {
            // A chain mostly goes on in the next block: the longer it was, the further it may.
            let mut addrs: Vec<BlockAddr> =
                (offset..BLOCKS_PER_SEGMENT).take(reach).map(|offset| geometry.block_at(segment, offset)).collect();
            ahead = Ahead::default();
            source.begin(&mut addrs, |blocks| vec![AlignedBuf::new(blocks)]).arrive(&mut ahead);
            reach = (2 * reach).min(MOST_AHEAD);
        }
        let blocks = source.blocks_behind(&[addr], &ahead)?;
        let node = NodeBlock::read(blocks.get(0));
        if !is_recoverable(pack, node) {
            break;
        }
        let place = Place::Block(addr);
        if seen.set(addr.0 - geometry.main_blkaddr.0) {
            findings.require(false, kind, &place, "the chain loops at node", node.nid().0.into());
            break;
        }
        let valid = sit.is_valid(segment, offset);
        findings.require(!valid, kind, &place, "a node behind the checkpoint in a valid block", node.nid().0.into());
        if node.footer.has_mark(mark::FSYNC) && node.footer.node_offset() != XATTR_NODE_OFFSET {
            check_addresses(node, geometry, &place, findings);
        }
        addr = node.footer.next_blkaddr.into();
    }
    Ok(())
}

/// Checks that the blocks which a synced node refers to lie in the main area.
fn check_addresses(node: &NodeBlock, geometry: &Geometry, place: &Place, findings: &Collector) {
    use f2fs_format::inode::inline;
    if node.is_inode() && node.inode().i_inline & (inline::DATA | inline::DENTRY) != 0 {
        return;
    }
    for addr in node.addresses(geometry.features).filter(|addr| addr.is_real()) {
        let what = "an fsync'd node refers to a block outside the main area";
        findings.require(geometry.in_main(addr), FindingKind::RecoveryChain, place, what, BlockAddr::get(addr).into());
    }
}
