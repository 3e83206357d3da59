//! More room in directories: blocks for entries, in segments that were free.

use f2fs_format::bits::msb;
use f2fs_format::dentry::{DentryView, DentryViewMut, FileType};
use f2fs_format::inode::inline;
use f2fs_format::node::NodeBlock;
use f2fs_format::{BLOCK_SIZE, BLOCKS_PER_SEGMENT, BlockAddr, LogType, Nid, SegmentNo, hash};

use super::RepairError;
use super::nodes::node_of;
use super::state::{Claim, OwnSegment, Reference, Slot, Trust};
use super::walk::Walk;

/// A block that nothing uses, in a segment of the repair's own; `None` if no segment is free. The caller claims it.
pub(super) fn block(walk: &mut Walk<'_>, log: LogType) -> Result<Option<BlockAddr>, RepairError> {
    let geometry = &walk.tables.geometry;
    let state = &mut *walk.state;
    let open = state.own.iter().position(|own| own.log == log && own.next < BLOCKS_PER_SEGMENT);
    let index = match open {
        Some(index) => index,
        None => {
            let (logs, sit) = (walk.tables.log_segments(), &walk.tables.sit);
            let unused = |segment: &SegmentNo| {
                let start = geometry.block_at(*segment, 0).0;
                !logs.contains(segment)
                    && !state.spoken_for.contains(segment)
                    && !state.own.iter().any(|own| own.segment == *segment)
                    && !(start..start + BLOCKS_PER_SEGMENT).any(|addr| state.blocks.contains_key(&addr))
            };
            let is_free = |segment: &SegmentNo| sit.get(*segment).valid_map.iter().all(|byte| *byte == 0);
            // An entry that contradicts itself is no reason to spare a segment that nothing was found in.
            let is_damaged = |segment: &SegmentNo| {
                let entry = sit.get(*segment);
                entry.valid_blocks() != msb::count(&entry.valid_map) || entry.log_type().is_none()
            };
            let unused = || sit.segments().map(SegmentNo).filter(unused);
            let Some(segment) = unused().find(is_free).or_else(|| unused().find(is_damaged)) else { return Ok(None) };
            state.own.push(OwnSegment { segment, log, next: 0 });
            state.own.len() - 1
        }
    };
    let own = &mut state.own[index];
    own.next += 1;
    Ok(Some(geometry.block_at(own.segment, own.next - 1)))
}

/// Moves the entries of an inline directory to a block; tells whether that can be (`f2fs_move_inline_dirents`).
pub(super) fn out_of_inode(walk: &mut Walk<'_>, dir: Nid) -> Result<bool, RepairError> {
    let features = walk.tables.geometry.features;
    let (addr, mut node) = node_of(walk, dir)?;
    if node.inode().i_dir_level != 0 {
        return Ok(false);
    }
    let mut bytes = Box::new([0; BLOCK_SIZE]);
    let mut entries = DentryViewMut::block(&mut bytes);
    for entry in DentryView::inline(node.inode().inline_data(features)).entries() {
        let entry = entry?;
        let file_type = FileType::from_number(entry.file_type).unwrap_or(FileType::Unknown);
        // There is one bucket for all of them on the first level, and the block has more slots.
        if !entries.insert(entry.slot, entry.name, entry.hash, entry.ino, file_type) {
            return Ok(false);
        }
    }
    let inode = node.inode_mut();
    inode.inline_data_mut(features).fill(0);
    inode.i_inline &= !inline::DENTRY;
    (inode.i_size, inode.i_current_depth) = (0.into(), 0.into());
    for slot in 0..node.address_count(features) {
        node.set_address(slot, BlockAddr::NULL, features);
    }
    let Some(fresh) = block(walk, LogType::HotData)? else { return Ok(false) };
    walk.overlay.put(fresh, &bytes);
    take(walk, dir, &mut node, (0, 0), fresh);
    walk.put(addr, &mut node);
    Ok(true)
}

/// Adds an empty block where a name with this hash belongs, as far as the inode's own addresses reach; tells whether
/// that can be.
pub(super) fn add_block(walk: &mut Walk<'_>, dir: Nid, wanted: u32) -> Result<bool, RepairError> {
    let features = walk.tables.geometry.features;
    let (addr, mut node) = node_of(walk, dir)?;
    let dir_level = node.inode().i_dir_level;
    let mut places = (0..hash::MAX_DEPTH)
        .flat_map(|level| hash::bucket_range(level, dir_level, wanted).map(move |block| (level, block)))
        .take_while(|(_, block)| *block < node.address_count(features) as u64);
    let hole = |place: &(u32, u64)| node.address(place.1 as usize, features).is_some_and(BlockAddr::is_null);
    let Some((level, at)) = places.find(hole) else { return Ok(false) };
    let Some(fresh) = block(walk, LogType::HotData)? else { return Ok(false) };
    walk.overlay.put(fresh, &[0; BLOCK_SIZE]);
    take(walk, dir, &mut node, (level, at), fresh);
    walk.put(addr, &mut node);
    Ok(true)
}

/// Makes a new block the directory's, at a file block of a level.
fn take(walk: &mut Walk<'_>, dir: Nid, node: &mut NodeBlock, (level, at): (u32, u64), fresh: BlockAddr) {
    node.set_address(at as usize, fresh, walk.tables.geometry.features);
    let inode = node.inode_mut();
    inode.add_blocks(1);
    inode.i_size = inode.i_size.get().max((at + 1) * BLOCK_SIZE as u64).into();
    inode.i_current_depth = inode.i_current_depth.get().max(level + 1).into();
    let by = Reference { holder: dir, slot: Slot::Address(at as u32) };
    walk.state.claim_block(fresh.0, Claim { by, trust: Trust::Sound, is_node: false, owner: (dir, at as u16) });
}
