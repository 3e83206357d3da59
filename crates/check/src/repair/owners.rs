//! Who owned each block and node, by the summaries and the footers: the second witness where what refers to them is lost.

use std::collections::HashMap;

use f2fs_format::node::NodeBlock;
use f2fs_format::summary::{SummaryBlock, TYPE_DATA};
use f2fs_format::{BLOCKS_PER_SEGMENT, BlockAddr, LogType, Nid, SegmentNo};

use super::RepairError;
use super::overlay::Overlay;
use super::tables::Tables;

/// All of a volume's. Some 20 bytes for each valid block; made when somebody asks first.
#[derive(Debug, Default)]
pub(super) struct Owners {
    /// The blocks of each node, with the slots that they stood in.
    blocks: HashMap<Nid, Vec<(u16, BlockAddr)>>,
    /// The nodes of each inode but itself, by their node offsets.
    nodes: HashMap<Nid, Vec<(u32, Nid)>>,
}

impl Owners {
    /// Reads the summary of each segment in use, and each node.
    pub(super) fn read(tables: &Tables, overlay: &Overlay) -> Result<Owners, RepairError> {
        let mut owners = Owners::default();
        for segment in tables.sit.segments().map(SegmentNo) {
            let entry = tables.sit.get(segment);
            if entry.valid_blocks() == 0 {
                continue;
            }
            let is_node = entry.log_type().is_some_and(LogType::is_node);
            let on_device = overlay.block(tables.geometry.summary_block(segment))?;
            let summary = tables.known_summary(segment).unwrap_or(SummaryBlock::read(&on_device));
            for offset in (0..BLOCKS_PER_SEGMENT).filter(|offset| tables.sit.is_valid(segment, *offset)) {
                let addr = tables.geometry.block_at(segment, offset);
                if !tables.is_there(addr) {
                    continue;
                }
                if is_node {
                    let node = *NodeBlock::read(&*overlay.block(addr)?);
                    let is_known = BlockAddr::from(tables.nat.get(node.nid()).block_addr) == addr;
                    if is_known && node.nid() != node.ino() {
                        owners.nodes.entry(node.ino()).or_default().push((node.footer.node_offset(), node.nid()));
                    }
                } else if summary.entry_type == TYPE_DATA {
                    let entry = &summary.entries[offset as usize];
                    owners.blocks.entry(entry.nid.into()).or_default().push((entry.ofs_in_node.get(), addr));
                }
            }
        }
        Ok(owners)
    }

    /// The blocks of a node, with their slots.
    pub(super) fn blocks(&self, nid: Nid) -> &[(u16, BlockAddr)] {
        self.blocks.get(&nid).map_or(&[], |blocks| blocks)
    }

    /// The one block that stood in a slot; `None` also if there are several.
    pub(super) fn block(&self, nid: Nid, slot: usize) -> Option<BlockAddr> {
        let mut found = self.blocks(nid).iter().filter(|(other, _)| usize::from(*other) == slot);
        let first = found.next()?.1;
        found.next().is_none().then_some(first)
    }

    /// The node of an inode with this node offset.
    pub(super) fn node(&self, ino: Nid, offset: u32) -> Option<Nid> {
        self.nodes.get(&ino)?.iter().find(|(other, _)| *other == offset).map(|(_, nid)| *nid)
    }
}
