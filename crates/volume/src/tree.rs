//! The tree of a file's nodes: from its blocks to the address slots that name them.
//!
//! # Locking
//!
//! Pages are locked one at a time on the way down for reading; to hang in a missing node the parent's page is held
//! exclusively, so that two threads cannot both do it. The caller keeps truncation of the blocks that it looks for away
//! (by a lock of their range, or, for directories, by the gate alone, since directory nodes are freed only with the
//! directory). Nodes that hold no such block may go meanwhile: no look-up passes through them.

use f2fs_format::node::NodeBlock;
use f2fs_format::path::{Addresses, NodePath};
use f2fs_format::{BlockAddr, Corruption, Nid};

use crate::{NewNode, Node, Op, Volume, VolumeError};

/// An address slot.
#[derive(Clone, Debug)]
pub struct Slot {
    /// The node that has it.
    pub node: Node,
    /// Its number in the node.
    pub index: usize,
}

impl Slot {
    /// The block that it names.
    #[must_use]
    pub fn get(&self, volume: &Volume) -> BlockAddr {
        self.node.read().address(self.index, volume.features()).unwrap_or(BlockAddr::NULL)
    }
}

fn addresses_of(volume: &Volume, inode: &Node) -> Addresses {
    inode.read().inode().layout(volume.features()).addresses()
}

/// The way to a block in a file whose nodes have so many address slots.
///
/// # Errors
/// [`VolumeError::FileTooLarge`].
pub fn path_to(addresses: Addresses, block: u64) -> Result<NodePath, VolumeError> {
    NodePath::to_block(block, addresses).ok_or_else(|| VolumeError::FileTooLarge {
        size: block.saturating_add(1).saturating_mul(4096),
        limit: f2fs_format::path::max_file_blocks(addresses).saturating_mul(4096),
    })
}

/// The NID in a slot of a parent: the inode's `i_nid`, or an indirect node's slot.
fn child_nid(block: &NodeBlock, is_inode: bool, slot: usize) -> Nid {
    if is_inode {
        block.inode().i_nid.get(slot).map_or(Nid::NULL, |raw| (*raw).into())
    } else {
        block.slots().get(slot).map_or(Nid::NULL, |raw| (*raw).into())
    }
}

/// The slot that leads to the node on this level of a way, in the node above it.
fn slot_above(path: &NodePath, level: usize) -> usize {
    if level == 1 { path.inode_child().unwrap_or(0) } else { usize::from(path.slots()[level - 1]) }
}

fn set_child(block: &mut NodeBlock, is_inode: bool, slot: usize, nid: Nid) {
    if is_inode {
        block.inode_mut().i_nid[slot] = nid.into();
    } else {
        block.slots_mut()[slot] = nid.into();
    }
}

/// A child that must belong to `ino` and have this node offset.
///
/// # Errors
/// [`VolumeError::Corrupt`] if it is not, and those of [`Nodes::get`](crate::Nodes::get).
pub fn load_child(volume: &Volume, ino: Nid, nid: Nid, offset: u32) -> Result<Node, VolumeError> {
    let node = volume.nodes().get(nid)?;
    let wrong = |what, expected: u64, found: u64| {
        VolumeError::from(Corruption::Node { nid, addr: BlockAddr::NULL, what, expected, found })
    };
    if node.ino() != ino {
        return Err(wrong("owner of a child node", ino.0.into(), node.ino().0.into()));
    }
    let found = node.read().footer.node_offset();
    if found != offset {
        return Err(wrong("node offset", offset.into(), found.into()));
    }
    Ok(node)
}

/// Where the address of a block is.
#[derive(Debug)]
pub enum Place {
    /// In this slot.
    Slot(Slot),
    /// A node on the way does not exist: so many blocks, from this one on, are a hole.
    Hole(u64),
}

/// The slot of a block; `None` if a node on the way does not exist.
///
/// # Errors
/// As [`place_of`].
pub fn find_slot(volume: &Volume, inode: &Node, block: u64) -> Result<Option<Slot>, VolumeError> {
    match place_of(volume, inode, block)? {
        Place::Slot(slot) => Ok(Some(slot)),
        Place::Hole(_) => Ok(None),
    }
}

/// Where the address of a block is, or how much of a hole begins there for lack of a node.
///
/// # Errors
/// [`VolumeError::FileTooLarge`], and those of [`load_child`].
pub fn place_of(volume: &Volume, inode: &Node, block: u64) -> Result<Place, VolumeError> {
    let (path, child) = {
        let page = inode.read();
        let path = path_to(page.inode().layout(volume.features()).addresses(), block)?;
        let child = first_child(&page, &path);
        (path, child)
    };
    descend(volume, inode, &path, child)
}

/// The same, at the end of a [way](path_to).
///
/// # Errors
/// Those of [`load_child`].
pub fn place_at(volume: &Volume, inode: &Node, path: &NodePath) -> Result<Place, VolumeError> {
    let child = path.inode_child().and_then(|_| first_child(&inode.read(), path));
    descend(volume, inode, path, child)
}

/// The inode's child on a way, if it does not end in the inode.
fn first_child(inode: &NodeBlock, path: &NodePath) -> Option<Nid> {
    path.inode_child().map(|slot| child_nid(inode, true, slot))
}

/// Goes a way from the inode's child on.
fn descend(volume: &Volume, inode: &Node, path: &NodePath, child: Option<Nid>) -> Result<Place, VolumeError> {
    let mut node = inode.clone();
    for (level, offset) in path.node_offsets().iter().enumerate().skip(1) {
        let nid = match child {
            Some(child) if level == 1 => child,
            _ => child_nid(&node.read(), false, slot_above(path, level)),
        };
        if nid.is_null() {
            return Ok(Place::Hole(path.blocks_below(level)));
        }
        node = load_child(volume, inode.nid(), nid, *offset)?;
    }
    Ok(Place::Slot(Slot { node, index: path.address_slot() }))
}

/// How many blocks it takes that a file has all of `first ..= last`: those that are holes, and nodes on the way to
/// them. Where the data stands in the inode, no address does.
///
/// # Errors
/// As [`place_of`].
pub fn missing(volume: &Volume, inode: &Node, first: u64, last: u64, inline: bool) -> Result<u64, VolumeError> {
    let features = volume.features();
    let addresses = addresses_of(volume, inode);
    let (mut count, mut block) = (0, first);
    // The offset of the last node that was missing, by level.
    let mut counted = [0; 4];
    while block <= last {
        let path = path_to(addresses, block)?;
        let mut node = Some(inode.clone());
        for (level, offset) in path.node_offsets().iter().enumerate().skip(1) {
            let slot = slot_above(&path, level);
            let nid = node.as_ref().map_or(Nid::NULL, |node| child_nid(&node.read(), level == 1, slot));
            node = if nid.is_null() { None } else { Some(load_child(volume, inode.nid(), nid, *offset)?) };
            if node.is_none() && std::mem::replace(&mut counted[level], *offset) != *offset {
                count += 1;
            }
        }
        let left = last - block + 1;
        block += match node {
            Some(node) => {
                let node = node.read();
                let index = path.address_slot();
                let here = ((node.address_count(features) - index) as u64).min(left);
                let holes = (index..index + here as usize)
                    .filter(|index| inline || node.address(*index, features).is_some_and(BlockAddr::is_null));
                count += holes.count() as u64;
                here
            }
            None => {
                let here = path.blocks_below(path.level()).min(left);
                count += here;
                here
            }
        };
    }
    Ok(count)
}

/// The slot of a block; missing nodes on the way are made, and counted in `i_blocks`.
///
/// # Errors
/// As [`place_of`], and those of [`Nodes::create`](crate::Nodes::create). Nodes that were made already stay; they are empty, and are freed
/// with the file.
pub fn ensure_slot(op: &Op<'_>, inode: &Node, block: u64) -> Result<Slot, VolumeError> {
    let volume = op.volume();
    if let Some((page, index)) = volume.recent_nodes.find(inode.nid(), block) {
        return Ok(Slot { node: Node { page }, index });
    }
    let (slot, slots) = make_slot(op, inode, block)?;
    volume.recent_nodes.note(inode.nid(), block, &slot.node.page, slot.index, slots);
    Ok(slot)
}

/// The same, down the tree; also how many slots a direct node of the file has.
fn make_slot(op: &Op<'_>, inode: &Node, block: u64) -> Result<(Slot, u16), VolumeError> {
    let volume = op.volume();
    let (path, child, directory, slots) = {
        let page = inode.read();
        let raw = page.inode();
        let directory = raw.file_type() == f2fs_format::inode::mode::DIRECTORY;
        let addresses = raw.layout(volume.features()).addresses();
        let path = path_to(addresses, block)?;
        let child = first_child(&page, &path);
        (path, child, directory, addresses.direct)
    };
    let mut node = inode.clone();
    for (level, offset) in path.node_offsets().iter().enumerate().skip(1) {
        let slot = slot_above(&path, level);
        let nid = match child {
            Some(child) if level == 1 => child,
            _ => child_nid(&node.read(), false, slot),
        };
        node = if nid.is_null() {
            let mut parent = node.write(op);
            let nid = child_nid(&parent, level == 1, slot);
            if nid.is_null() {
                let new = NewNode { ino: Some(inode.nid()), offset: *offset, directory };
                let made = volume.nodes().create(op, new)?;
                set_child(&mut parent, level == 1, slot, made.nid());
                drop(parent);
                add_blocks(op, inode, 1);
                made
            } else {
                drop(parent);
                load_child(volume, inode.nid(), nid, *offset)?
            }
        } else {
            load_child(volume, inode.nid(), nid, *offset)?
        };
    }
    Ok((Slot { node, index: path.address_slot() }, slots))
}

/// Changes `i_blocks`.
pub fn add_blocks(op: &Op<'_>, inode: &Node, delta: i64) {
    let mut block = inode.write(op);
    let raw = block.inode_mut();
    raw.i_blocks = raw.i_blocks.get().saturating_add_signed(delta).into();
}

/// Which blocks from `start` on, below `end`, have an address: those of one node, added to `present`. Gives the block
/// to go on with, which is behind all of a hole.
///
/// # Errors
/// As [`place_of`].
pub fn present_blocks(
    volume: &Volume,
    inode: &Node,
    start: u64,
    end: u64,
    present: &mut Vec<u64>,
) -> Result<u64, VolumeError> {
    match place_of(volume, inode, start)? {
        Place::Hole(blocks) => Ok(start + blocks),
        Place::Slot(slot) => {
            let node = slot.node.read();
            let here = node.addresses(volume.features()).skip(slot.index);
            let behind = start + here.len() as u64;
            present.extend(here.zip(start..end).filter(|(addr, _)| !addr.is_null()).map(|(_, block)| block));
            Ok(behind)
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
