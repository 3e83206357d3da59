//! The entries of directories that are whole already: finding one, room for one, adding one. Only the blocks that the inode
//! refers to by itself are looked at.

use f2fs_format::dentry::{DentryView, DentryViewMut, FileType, slots_for};
use f2fs_format::inode::inline;
use f2fs_format::node::NodeBlock;
use f2fs_format::{BlockAddr, Nid, hash};

use super::RepairError;
use super::directory::room_in;
use super::walk::Walk;

/// The longest number, which takes two slots.
pub(super) const LONGEST: &[u8] = b"4294967295";

/// The blocks that the inode of a directory refers to by itself.
fn own_blocks(walk: &Walk<'_>, node: &NodeBlock) -> Vec<(u64, BlockAddr)> {
    let features = walk.tables.geometry.features;
    let addrs = (0..).zip(node.addresses(features));
    addrs.filter(|(_, addr)| walk.tables.geometry.in_main(*addr)).collect()
}

pub(super) fn node_of(walk: &Walk<'_>, ino: Nid) -> Result<(BlockAddr, Box<NodeBlock>), RepairError> {
    let addr: BlockAddr = walk.tables.nat.get(ino).block_addr.into();
    Ok((addr, Box::new(*NodeBlock::read(&*walk.overlay.block(addr)?))))
}

fn is_inline(node: &NodeBlock) -> bool {
    node.inode().i_inline & inline::DENTRY != 0
}

pub(super) fn has_room(walk: &Walk<'_>, dir: Nid, name: &[u8]) -> Result<bool, RepairError> {
    let (_, node) = node_of(walk, dir)?;
    if is_inline(&node) {
        let area = node.inode().inline_data(walk.tables.geometry.features);
        return Ok(DentryView::inline(area).room_for(slots_for(name.len())).is_some());
    }
    let data = own_blocks(walk, &node);
    if name != LONGEST {
        return Ok(room_in(walk, &node, &data, name)?.is_some());
    }
    // Whatever the number hashes to: both buckets of the first level.
    for probe in [&b"4294967290"[..], b"4294967291", b"4294967292", b"4294967293", b"4294967294"] {
        if room_in(walk, &node, &data, probe)?.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether an inline directory has so many slots left when it has taken a name.
pub(super) fn leaves_room(walk: &Walk<'_>, dir: Nid, name: &[u8], left: usize) -> Result<bool, RepairError> {
    let (_, node) = node_of(walk, dir)?;
    let entries = DentryView::inline(node.inode().inline_data(walk.tables.geometry.features));
    Ok(entries.used_slots() + slots_for(name.len()) + left <= entries.slots())
}

pub(super) fn look_up(walk: &Walk<'_>, dir: Nid, name: &[u8]) -> Result<Option<Nid>, RepairError> {
    let (_, node) = node_of(walk, dir)?;
    let wanted = hash::dentry_hash(name);
    let found = |view: DentryView<'_>| view.find(wanted, name).ok().flatten().map(|entry| entry.ino);
    if is_inline(&node) {
        return Ok(found(DentryView::inline(node.inode().inline_data(walk.tables.geometry.features))));
    }
    for (_, addr) in own_blocks(walk, &node) {
        let bytes = walk.overlay.block(addr)?;
        if let Some(ino) = found(DentryView::block(&bytes)) {
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
        let data = own_blocks(walk, &node);
        let Some(block) = room_in(walk, &node, &data, name)? else { return Ok(false) };
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
        if let Ok(Some(dots)) = entries.as_view().find(0, b"..").map(|entry| entry.map(|entry| entry.slot)) {
            entries.set_target(dots, parent, FileType::Directory)?;
        }
        walk.put(addr, &mut node);
        return Ok(());
    }
    for (_, block) in own_blocks(walk, &node).into_iter().take(1) {
        let mut bytes = walk.overlay.block(block)?;
        let mut entries = DentryViewMut::block(&mut bytes);
        if let Ok(Some(dots)) = entries.as_view().find(0, b"..").map(|entry| entry.map(|entry| entry.slot)) {
            entries.set_target(dots, parent, FileType::Directory)?;
            walk.overlay.put(block, &bytes);
        }
    }
    Ok(())
}
