//! Who owned each block and node, by the summaries and the footers: the second witness where what refers to them is lost.

use std::collections::HashMap;

use f2fs_format::dentry::FileType;
use f2fs_format::inode::inline;
use f2fs_format::node::NodeBlock;
use f2fs_format::path::NodeKind;
use f2fs_format::summary::{SummaryBlock, TYPE_DATA};
use f2fs_format::{BLOCKS_PER_SEGMENT, BlockAddr, Geometry, LogType, Nid, SegmentNo};

use super::RepairError;
use super::overlay::Overlay;
use super::tables::Tables;

/// What nobody refers to, by those to whom it belonged. Made when somebody asks first.
///
/// A block that another slot names is not here, whatever its summary says: what refers to a block is worth more than a
/// summary, which may have been lost itself.
#[derive(Debug, Default)]
pub(super) struct Owners {
    /// The blocks of each node, with the slots that they stood in.
    blocks: HashMap<Nid, Vec<(u16, BlockAddr)>>,
    /// The same in segments of which the SIT has lost what it knew: old ones are among them.
    forgotten: HashMap<Nid, Vec<(u16, BlockAddr)>>,
    /// The nodes of each inode but itself, by their node offsets.
    nodes: HashMap<Nid, Vec<(u32, Nid)>>,
}

impl Owners {
    /// Reads each node, and the summary of each segment in use. Takes one bit for each block while it does.
    pub(super) fn read(tables: &mut Tables, overlay: &Overlay) -> Result<Owners, RepairError> {
        let mut owners = Owners::default();
        let named = owners.read_nodes(tables, overlay)?;
        for segment in tables.sit.segments().map(SegmentNo) {
            let entry = tables.sit.get(segment);
            let is_known = entry.valid_blocks() != 0 && !entry.log_type().is_some_and(LogType::is_node);
            let is_forgotten = tables.is_forgotten(tables.geometry.block_at(segment, 0));
            if !is_known && !is_forgotten {
                continue;
            }
            let on_device = overlay.block(tables.geometry.summary_block(segment))?;
            let summary = tables.known_summary(segment).unwrap_or(SummaryBlock::read(&on_device));
            if summary.entry_type != TYPE_DATA {
                continue;
            }
            for (offset, entry) in (0..BLOCKS_PER_SEGMENT).zip(&summary.entries) {
                let is_valid = is_known && tables.sit.is_valid(segment, offset);
                let addr = tables.geometry.block_at(segment, offset);
                let is_owned = entry.nid.get() != 0 && tables.is_there(addr) && !named.contains(addr);
                if is_owned && (is_valid || is_forgotten) {
                    let all = if is_valid { &mut owners.blocks } else { &mut owners.forgotten };
                    all.entry(entry.nid.into()).or_default().push((entry.ofs_in_node.get(), addr));
                }
            }
        }
        Ok(owners)
    }

    /// Reads all nodes that the NAT knows, or has lost; returns the blocks that slots name which the summaries do not.
    fn read_nodes(&mut self, tables: &mut Tables, overlay: &Overlay) -> Result<Named, RepairError> {
        let address = |nid: Nid| BlockAddr::from(tables.nat.get(nid).block_addr);
        let mut all: Vec<_> = (0..tables.nat.len()).map(Nid).map(|nid| (address(nid), nid)).collect();
        all.extend(tables.unknown(overlay)?);
        all.retain(|(addr, _)| tables.is_there(*addr));
        all.sort_unstable();
        let mut named = Named::new(&tables.geometry);
        for (addr, nid) in all {
            let node = *NodeBlock::read(&*overlay.block(addr)?);
            if node.nid() != nid {
                continue;
            }
            if nid != node.ino() && tables.is_valid(addr) {
                self.nodes.entry(node.ino()).or_default().push((node.footer.node_offset(), nid));
            }
            if !has_addresses(&node) {
                continue;
            }
            for (slot, addr) in node.addresses(tables.geometry.features).enumerate() {
                if !tables.is_owner(overlay, addr, nid, slot)? {
                    named.insert(addr);
                }
            }
        }
        Ok(named)
    }

    /// The blocks of a node, with their slots.
    pub(super) fn blocks(&self, nid: Nid) -> &[(u16, BlockAddr)] {
        self.blocks.get(&nid).map_or(&[], |blocks| blocks)
    }

    /// The one block that stood in a slot; `None` also if there are several.
    pub(super) fn block(&self, nid: Nid, slot: usize) -> Option<BlockAddr> {
        single(self.blocks(nid), slot)
    }

    /// The one block that a summary says stood in a slot, and of which the SIT lost whether it is valid. For slots that
    /// held one: what was there before is named so as well.
    pub(super) fn forgotten_block(&self, nid: Nid, slot: usize) -> Option<BlockAddr> {
        single(self.forgotten.get(&nid)?, slot)
    }

    /// The node of an inode with this node offset.
    pub(super) fn node(&self, ino: Nid, offset: u32) -> Option<Nid> {
        self.nodes.get(&ino)?.iter().find(|(other, _)| *other == offset).map(|(_, nid)| *nid)
    }
}

/// The only block of a slot.
fn single(blocks: &[(u16, BlockAddr)], slot: usize) -> Option<BlockAddr> {
    let mut found = blocks.iter().filter(|(other, _)| usize::from(*other) == slot);
    let first = found.next()?.1;
    found.next().is_none().then_some(first)
}

/// Whether the slots of a node are addresses.
fn has_addresses(node: &NodeBlock) -> bool {
    if !node.is_inode() {
        return NodeKind::of(node.footer.node_offset()) == Some(NodeKind::Direct);
    }
    let inode = node.inode();
    let is_inline = inode.i_inline & (inline::DATA | inline::DENTRY) != 0;
    // An inode that lost its type lost what says where its addresses begin.
    !is_inline && FileType::from_mode(inode.i_mode.get()) != FileType::Unknown
}

/// Blocks of the main area: a bit each.
struct Named {
    first: BlockAddr,
    words: Vec<u64>,
}

impl Named {
    fn new(geometry: &Geometry) -> Named {
        let blocks = u64::from(geometry.main_segments) * u64::from(BLOCKS_PER_SEGMENT);
        Named { first: geometry.main_blkaddr, words: vec![0; blocks.div_ceil(64) as usize] }
    }

    /// The word and the bit of a block, if it lies in the main area.
    fn place(&self, addr: BlockAddr) -> Option<(usize, u64)> {
        let index = addr.0.checked_sub(self.first.0)? as usize;
        (index / 64 < self.words.len()).then_some((index / 64, 1 << (index % 64)))
    }

    fn insert(&mut self, addr: BlockAddr) {
        if let Some((word, bit)) = self.place(addr) {
            self.words[word] |= bit;
        }
    }

    fn contains(&self, addr: BlockAddr) -> bool {
        self.place(addr).is_some_and(|(word, bit)| self.words[word] & bit != 0)
    }
}
