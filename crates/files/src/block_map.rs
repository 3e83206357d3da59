//! From a file's blocks to the address slots of its nodes.
//!
//! # Locking
//!
//! Pages are locked one at a time on the way down for reading; to hang in a missing node the parent's page is held
//! exclusively, so that two threads cannot both do it. The caller keeps truncation of the blocks that it looks for away (by
//! a lock of their range, or, for directories, by the gate alone, since directory nodes are freed only with the directory). Nodes
//! that hold no such block may go meanwhile: nobody who looks for a block comes by them.

use f2fs_format::node::NodeBlock;
use f2fs_format::path::{Addresses, NodePath};
use f2fs_format::{BlockAddr, Corruption, Nid};
use f2fs_volume::{NewNode, Node, Op, Volume};

use crate::FsError;
use crate::content::Content;
use crate::filesystem::Core;
use crate::inode::Inode;

/// An address slot.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) node: Node,
    pub(crate) index: usize,
}

impl Slot {
    pub(crate) fn get(&self, volume: &Volume) -> BlockAddr {
        self.node.read().address(self.index, volume.features()).unwrap_or(BlockAddr::NULL)
    }

    /// Stores an address; returns the old one.
    pub(crate) fn set(&self, op: &Op<'_>, addr: BlockAddr) -> BlockAddr {
        let features = op.volume().features();
        let mut block = self.node.write(op);
        let old = block.address(self.index, features).unwrap_or(BlockAddr::NULL);
        block.set_address(self.index, addr, features);
        old
    }
}

/// Blocks of a file that follow each other on the device, or share the same lack of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    /// The address of the first block; [`BlockAddr::NULL`] and [`BlockAddr::NEW`] read as zeros.
    pub(crate) addr: BlockAddr,
    pub(crate) len: u64,
}

fn addresses_of(volume: &Volume, inode: &Node) -> Addresses {
    inode.read().inode().layout(volume.features()).addresses()
}

/// The way to a block in a file whose nodes have so many address slots.
pub(crate) fn path_to(addresses: Addresses, block: u64) -> Result<NodePath, FsError> {
    NodePath::to_block(block, addresses).ok_or_else(|| FsError::FileTooLarge {
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

fn set_child(block: &mut NodeBlock, is_inode: bool, slot: usize, nid: Nid) {
    if is_inode {
        block.inode_mut().i_nid[slot] = nid.into();
    } else {
        block.slots_mut()[slot] = nid.into();
    }
}

/// A child that must belong to `ino` and have this node offset.
pub(crate) fn load_child(volume: &Volume, ino: Nid, nid: Nid, offset: u32) -> Result<Node, FsError> {
    let node = volume.node(nid)?;
    let wrong = |what, expected: u64, found: u64| {
        FsError::from(Corruption::Node { nid, addr: BlockAddr::NULL, what, expected, found })
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
pub(crate) enum Place {
    /// In this slot.
    Slot(Slot),
    /// A node on the way does not exist: so many blocks, from this one on, are a hole.
    Hole(u64),
}

/// The slot of a block; `None` if a node on the way does not exist.
pub(crate) fn find_slot(volume: &Volume, inode: &Node, block: u64) -> Result<Option<Slot>, FsError> {
    match place_of(volume, inode, block)? {
        Place::Slot(slot) => Ok(Some(slot)),
        Place::Hole(_) => Ok(None),
    }
}

/// Where the address of a block is, or how much of a hole begins there for lack of a node.
pub(crate) fn place_of(volume: &Volume, inode: &Node, block: u64) -> Result<Place, FsError> {
    find(volume, inode, &path_to(addresses_of(volume, inode), block)?)
}

/// What is at the end of a way.
fn find(volume: &Volume, inode: &Node, path: &NodePath) -> Result<Place, FsError> {
    let mut node = inode.clone();
    for (level, offset) in path.node_offsets().iter().enumerate().skip(1) {
        let slot = if level == 1 { path.inode_child().unwrap_or(0) } else { usize::from(path.slots()[level - 1]) };
        let nid = child_nid(&node.read(), level == 1, slot);
        if nid.is_null() {
            return Ok(Place::Hole(path.blocks_below(level)));
        }
        node = load_child(volume, inode.nid(), nid, *offset)?;
    }
    Ok(Place::Slot(Slot { node, index: path.address_slot() }))
}

/// How many blocks it takes that a file has all of `first ..= last`: those that are holes, and nodes on the way to them. Where the
/// data stands in the inode, no address does.
pub(crate) fn missing(volume: &Volume, inode: &Node, first: u64, last: u64, inline: bool) -> Result<u64, FsError> {
    let features = volume.features();
    let addresses = addresses_of(volume, inode);
    let (mut count, mut block) = (0, first);
    // The offset of the last node that was missing, by level.
    let mut counted = [0; 4];
    while block <= last {
        let path = path_to(addresses, block)?;
        let mut node = Some(inode.clone());
        for (level, offset) in path.node_offsets().iter().enumerate().skip(1) {
            let slot = if level == 1 { path.inode_child().unwrap_or(0) } else { usize::from(path.slots()[level - 1]) };
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
/// On `NoSpace` nodes that were made already stay; they are empty, and are freed with the file.
pub(crate) fn ensure_slot(op: &Op<'_>, inode: &Node, block: u64) -> Result<Slot, FsError> {
    let volume = op.volume();
    let (path, directory) = {
        let block_of_inode = inode.read();
        let raw = block_of_inode.inode();
        let directory = raw.file_type() == f2fs_format::inode::mode::DIRECTORY;
        (path_to(raw.layout(volume.features()).addresses(), block)?, directory)
    };
    let mut node = inode.clone();
    for (level, offset) in path.node_offsets().iter().enumerate().skip(1) {
        let slot = if level == 1 { path.inode_child().unwrap_or(0) } else { usize::from(path.slots()[level - 1]) };
        let nid = child_nid(&node.read(), level == 1, slot);
        node = if nid.is_null() {
            let mut parent = node.write(op);
            let nid = child_nid(&parent, level == 1, slot);
            if nid.is_null() {
                let new = NewNode { ino: Some(inode.nid()), offset: *offset, directory };
                let made = volume.new_node(op, new)?;
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
    Ok(Slot { node, index: path.address_slot() })
}

/// Changes `i_blocks`.
pub(crate) fn add_blocks(op: &Op<'_>, inode: &Node, delta: i64) {
    let mut block = inode.write(op);
    let raw = block.inode_mut();
    raw.i_blocks = raw.i_blocks.get().saturating_add_signed(delta).into();
}

/// Which blocks from `start` on, below `end`, have an address: those of one node, added to `present`. Gives the block to go on
/// with, which is behind all of a hole.
pub(crate) fn present_blocks(
    volume: &Volume,
    inode: &Node,
    start: u64,
    end: u64,
    present: &mut Vec<u64>,
) -> Result<u64, FsError> {
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

impl Mapping {
    /// Whether a run that begins at `addr` continues this one.
    pub(crate) fn is_followed_by(&self, addr: BlockAddr) -> bool {
        if self.addr.is_real() {
            addr.is_real() && u64::from(addr.0) == u64::from(self.addr.0) + self.len
        } else {
            !addr.is_real()
        }
    }
}

impl Core {
    /// Asks the nodes for the run that begins with block `first`, to block `last` at most, and within one node if it is not a hole;
    /// what else the node says of the file goes into the cache.
    #[cold]
    pub(crate) fn look_up(&self, inode: &Inode, content: &Content, first: u64, last: u64) -> Result<Mapping, FsError> {
        if let Some(cluster) = inode.form.cluster() {
            return self.look_up_in_cluster(inode, content, first, last, cluster);
        }
        let features = self.volume.features();
        let most = (last - first).saturating_add(1);
        let path = path_to(content.addresses, first)?;
        let slot = match find(&self.volume, &inode.node, &path)? {
            Place::Slot(slot) => slot,
            // It is not remembered: no page is locked that would keep a writer from making the node.
            Place::Hole(blocks) => return Ok(Mapping { addr: BlockAddr::NULL, len: most.min(blocks) }),
        };
        let node = slot.node.read();
        let address = |index| {
            let addr = node.address(index, features).unwrap_or(BlockAddr::NULL);
            if addr.is_real() { addr } else { BlockAddr::NULL }
        };
        let slots = node.address_count(features);
        let start = first - slot.index as u64;
        let used = content.size().div_ceil(4096).saturating_sub(start).min(slots as u64) as usize;
        // With the node's page locked: see the rules of the cache.
        content.cache.fill(start, (0..used).map(|index| address(index).0));
        let mut run = Mapping { addr: address(slot.index), len: 1 };
        let most = most.min((slots - slot.index) as u64);
        while run.len < most && run.is_followed_by(address(slot.index + run.len as usize)) {
            run.len += 1;
        }
        Ok(run)
    }
}

impl Core {
    /// The same in a compressed file: the run ends with the cluster, which no node divides, and a cluster that stands compressed
    /// is an error. Nothing is remembered, so that this is asked for every cluster.
    fn look_up_in_cluster(
        &self,
        inode: &Inode,
        content: &Content,
        first: u64,
        last: u64,
        cluster: u64,
    ) -> Result<Mapping, FsError> {
        let features = self.volume.features();
        let within = first % cluster;
        let most = (last - first).saturating_add(1);
        let slot = match find(&self.volume, &inode.node, &path_to(content.addresses, first - within)?)? {
            Place::Slot(slot) => slot,
            Place::Hole(blocks) => return Ok(Mapping { addr: BlockAddr::NULL, len: most.min(blocks - within) }),
        };
        let node = slot.node.read();
        let address = |block: u64| node.address(slot.index + block as usize, features).unwrap_or(BlockAddr::NULL);
        if address(0) == BlockAddr::COMPRESS {
            drop(node);
            let compression = inode.node.read().inode().compression(features);
            return Err(match compression {
                Some(compression) => FsError::Compressed { ino: inode.ino, cluster: first / cluster, compression },
                None => FsError::Unsupported { ino: inode.ino, what: "compression" },
            });
        }
        let mut run = Mapping { addr: address(within), len: 1 };
        while run.len < most.min(cluster - within) && run.is_followed_by(address(within + run.len)) {
            run.len += 1;
        }
        Ok(run)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use f2fs_device::MemoryDevice;
    use f2fs_sync::Arc;
    use f2fs_volume::format::{FormatOptions, format};

    use super::*;
    use crate::{FileSystem, Options};

    /// A damaged directory may claim the largest size there is: who lists it must not look at each of its million nodes.
    #[test]
    fn a_hole_is_passed_in_one_step() {
        let device = Arc::new(MemoryDevice::new((64 << 20) >> 12));
        format(&*device, &FormatOptions::default()).unwrap();
        let fs = FileSystem::open(device, Options::new()).unwrap();
        let file = fs.create_file("/sparse", 0o644).unwrap();
        let (addresses, end) = {
            let addresses = addresses_of(&fs.core.volume, &file.inode().node);
            (u64::from(addresses.inode), f2fs_format::path::max_file_blocks(addresses))
        };
        let direct = f2fs_format::node::ADDRS_PER_BLOCK as u64;
        let far = addresses + 2 * direct + 2 * direct * direct + 7 * direct * direct + 9 * direct + 11;
        for block in [3, far] {
            file.write_at(b"data", block * 4096).unwrap();
        }
        let (mut steps, mut at, mut present) = (0, 0, Vec::new());
        while at < end {
            at = present_blocks(&fs.core.volume, &file.inode().node, at, end, &mut present).unwrap();
            steps += 1;
        }
        assert_eq!((at, present), (end, vec![3, far]));
        // The inode, two direct nodes and two indirect ones that are not there; 7 indirect ones, 9 direct ones, the one with the
        // block, and as many steps behind it as there are nodes beside those on the way.
        assert_eq!(steps, 5 + 7 + 9 + 1 + (direct - 10) + (direct - 8));
    }
}
