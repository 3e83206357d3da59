//! From a file's blocks to the address slots of its nodes.
//!
//! # Locking
//!
//! Pages are locked one at a time on the way down for reading; to hang in a missing node the parent's page is held
//! exclusively, so that two threads cannot both do it. The caller keeps truncation of the blocks that it looks for away (by
//! a lock of their range, or, for directories, by the gate alone, since directory nodes are freed only with the directory). Nodes
//! that hold no such block may go meanwhile: nobody who looks for a block comes by them.

use f2fs_format::node::NodeBlock;
use f2fs_format::path::NodePath;
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

fn addresses_of(volume: &Volume, inode: &Node) -> usize {
    inode.read().inode().layout(volume.features()).address_count()
}

/// The way to a block in a file whose inode has so many address slots.
pub(crate) fn path_to(addresses: usize, block: u64) -> Result<NodePath, FsError> {
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

/// The slot of a block; `None` if a node on the way does not exist.
pub(crate) fn find_slot(volume: &Volume, inode: &Node, block: u64) -> Result<Option<Slot>, FsError> {
    find_slot_on(volume, inode, &path_to(addresses_of(volume, inode), block)?)
}

/// The slot at the end of a way; `None` if a node on the way does not exist.
fn find_slot_on(volume: &Volume, inode: &Node, path: &NodePath) -> Result<Option<Slot>, FsError> {
    let mut node = inode.clone();
    for (level, offset) in path.node_offsets().iter().enumerate().skip(1) {
        let slot = if level == 1 { path.inode_child().unwrap_or(0) } else { usize::from(path.slots()[level - 1]) };
        let nid = child_nid(&node.read(), level == 1, slot);
        if nid.is_null() {
            return Ok(None);
        }
        node = load_child(volume, inode.nid(), nid, *offset)?;
    }
    Ok(Some(Slot { node, index: path.address_slot() }))
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
        (path_to(raw.layout(volume.features()).address_count(), block)?, directory)
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

/// Maps blocks `start .. start + count` and hands out runs in order. Adjacent blocks come as one run.
pub(crate) fn map_range(
    volume: &Volume,
    inode: &Node,
    start: u64,
    count: u64,
    mut visit: impl FnMut(Mapping) -> Result<(), FsError>,
) -> Result<(), FsError> {
    let features = volume.features();
    let mut pending: Option<Mapping> = None;
    let mut push = |addr: BlockAddr, len: u64, visit: &mut dyn FnMut(Mapping) -> Result<(), FsError>| {
        if let Some(last) = &mut pending {
            let follows = if last.addr.is_real() { last.is_followed_by(addr) } else { addr == last.addr };
            if follows {
                last.len += len;
                return Ok(None);
            }
        }
        let full = pending.replace(Mapping { addr, len });
        full.map_or(Ok(()), visit).map(|()| None::<()>)
    };
    let mut block = start;
    let end = start.saturating_add(count);
    while block < end {
        let path = path_to(addresses_of(volume, inode), block)?;
        let slots = if path.level() == 0 {
            inode.read().inode().layout(features).address_count()
        } else {
            f2fs_format::node::ADDRS_PER_BLOCK
        };
        let here = (slots - path.address_slot()) as u64;
        let here = here.min(end - block);
        match find_slot(volume, inode, block)? {
            None => {
                push(BlockAddr::NULL, here, &mut visit)?;
            }
            Some(slot) => {
                let node = slot.node.read();
                for index in 0..here as usize {
                    let addr = node.address(slot.index + index, features).unwrap_or(BlockAddr::NULL);
                    push(addr, 1, &mut visit)?;
                }
            }
        }
        block += here;
    }
    pending.map_or(Ok(()), visit)
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
    /// Asks the nodes for the run that begins with block `first`, to block `last` at most and within one node; what else the node
    /// says of the file goes into the cache.
    #[cold]
    pub(crate) fn look_up(&self, inode: &Inode, content: &Content, first: u64, last: u64) -> Result<Mapping, FsError> {
        let features = self.volume.features();
        let most = (last - first).saturating_add(1);
        let path = path_to(content.addresses, first)?;
        let Some(slot) = find_slot_on(&self.volume, &inode.node, &path)? else {
            // Nothing of that node is there. It is not remembered: no page is locked that would keep a writer from making it.
            let slots = if path.level() == 0 { content.addresses } else { f2fs_format::node::ADDRS_PER_BLOCK };
            return Ok(Mapping { addr: BlockAddr::NULL, len: most.min((slots - path.address_slot()) as u64) });
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
