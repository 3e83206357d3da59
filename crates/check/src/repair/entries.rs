//! The entries of directories that are whole already: finding one, room for one, adding one.

use f2fs_format::dentry::{DentryView, DentryViewMut, FileType, slots_for};
use f2fs_format::inode::inline;
use f2fs_format::node::NodeBlock;
use f2fs_format::path::NodePath;
use f2fs_format::{BlockAddr, Nid, hash};

use super::RepairError;
use super::grow;
use super::nodes::node_of;
use super::walk::Walk;

fn is_inline(node: &NodeBlock) -> bool {
    node.inode().i_inline & inline::DENTRY != 0
}

/// Where a block of a directory is; `None` for a hole.
fn address(walk: &Walk<'_>, node: &NodeBlock, block: u64) -> Result<Option<BlockAddr>, RepairError> {
    let geometry = &walk.tables.geometry;
    let Some(path) = NodePath::to_block(block, node.address_count(geometry.features)) else { return Ok(None) };
    let mut below: Option<Box<NodeBlock>> = None;
    for slot in &path.slots()[..path.level()] {
        let nid = match &below {
            None => node.inode().i_nid[usize::from(*slot)],
            Some(node) => node.slots()[usize::from(*slot)],
        };
        let nid = Nid::from(nid);
        if nid.is_null() || nid.0 >= walk.tables.nat.len() {
            return Ok(None);
        }
        below = Some(node_of(walk, nid)?.1);
    }
    let holder = below.as_deref().unwrap_or(node);
    Ok(holder.address(path.address_slot(), geometry.features).filter(|addr| walk.tables.is_there(*addr)))
}

/// The blocks in which a name with this hash may stand.
fn bucket(walk: &Walk<'_>, node: &NodeBlock, wanted: u32) -> Result<Vec<BlockAddr>, RepairError> {
    let inode = node.inode();
    let mut found = Vec::new();
    for level in 0..inode.i_current_depth.get().min(hash::MAX_DEPTH) {
        for block in hash::bucket_range(level, inode.i_dir_level, wanted) {
            found.extend(address(walk, node, block)?);
        }
    }
    Ok(found)
}

/// The block that has room for a name in a directory with blocks.
fn room_for(walk: &Walk<'_>, node: &NodeBlock, name: &[u8]) -> Result<Option<BlockAddr>, RepairError> {
    for addr in bucket(walk, node, hash::dentry_hash(name))? {
        if DentryView::block(&*walk.overlay.block(addr)?).room_for(slots_for(name.len())).is_some() {
            return Ok(Some(addr));
        }
    }
    Ok(None)
}

/// Whether a directory has room for a name, now. If it had none before, it has a block more.
pub(super) fn make_room(walk: &mut Walk<'_>, dir: Nid, name: &[u8]) -> Result<bool, RepairError> {
    let (_, mut node) = node_of(walk, dir)?;
    if is_inline(&node) {
        let area = node.inode().inline_data(walk.tables.geometry.features);
        if DentryView::inline(area).room_for(slots_for(name.len())).is_some() {
            return Ok(true);
        }
        if !grow::out_of_inode(walk, dir)? {
            return Ok(false);
        }
        (_, node) = node_of(walk, dir)?;
    }
    Ok(room_for(walk, &node, name)?.is_some() || grow::add_block(walk, dir, hash::dentry_hash(name))?)
}

pub(super) fn look_up(walk: &Walk<'_>, dir: Nid, name: &[u8]) -> Result<Option<Nid>, RepairError> {
    let (_, node) = node_of(walk, dir)?;
    let wanted = hash::dentry_hash(name);
    let found = |view: DentryView<'_>| view.find(wanted, name).map(|entry| entry.ino);
    if is_inline(&node) {
        return Ok(found(DentryView::inline(node.inode().inline_data(walk.tables.geometry.features))));
    }
    for addr in bucket(walk, &node, wanted)? {
        if let Some(ino) = found(DentryView::block(&*walk.overlay.block(addr)?)) {
            return Ok(Some(ino));
        }
    }
    Ok(None)
}

/// Puts an entry into a directory, and counts its link. False: there is no room.
pub(super) fn insert(
    walk: &mut Walk<'_>,
    dir: Nid,
    name: &[u8],
    ino: Nid,
    file_type: FileType,
) -> Result<bool, RepairError> {
    let (addr, mut node) = node_of(walk, dir)?;
    let features = walk.tables.geometry.features;
    let (wanted, slots) = (hash::dentry_hash(name), slots_for(name.len()));
    if is_inline(&node) {
        let area = node.inode_mut().inline_data_mut(features);
        let mut entries = DentryViewMut::inline(area);
        let Some(slot) = entries.as_view().room_for(slots) else { return Ok(false) };
        if !entries.insert(slot, name, wanted, ino, file_type) {
            return Ok(false);
        }
    } else {
        let Some(block) = room_for(walk, &node, name)? else { return Ok(false) };
        let mut bytes = walk.overlay.block(block)?;
        let mut entries = DentryViewMut::block(&mut bytes);
        let Some(slot) = entries.as_view().room_for(slots) else { return Ok(false) };
        if !entries.insert(slot, name, wanted, ino, file_type) {
            return Ok(false);
        }
        walk.overlay.put(block, &bytes);
    }
    if file_type == FileType::Directory {
        let links = node.inode().i_links.get() + 1;
        node.inode_mut().i_links = links.into();
    }
    walk.put(addr, &mut node);
    Ok(true)
}

/// `..` of a directory that was moved.
pub(super) fn set_parent(walk: &mut Walk<'_>, ino: Nid, parent: Nid) -> Result<(), RepairError> {
    let (addr, mut node) = node_of(walk, ino)?;
    let features = walk.tables.geometry.features;
    if is_inline(&node) {
        let mut entries = DentryViewMut::inline(node.inode_mut().inline_data_mut(features));
        if let Some(dots) = entries.as_view().find(0, b"..").map(|entry| entry.slot) {
            entries.set_target(dots, parent, FileType::Directory)?;
        }
        walk.put(addr, &mut node);
        return Ok(());
    }
    if let Some(block) = address(walk, &node, 0)? {
        let mut bytes = walk.overlay.block(block)?;
        let mut entries = DentryViewMut::block(&mut bytes);
        if let Some(dots) = entries.as_view().find(0, b"..").map(|entry| entry.slot) {
            entries.set_target(dots, parent, FileType::Directory)?;
            walk.overlay.put(block, &bytes);
        }
    }
    Ok(())
}
