//! What was synced after the checkpoint: the chain of nodes that roll-forward follows, and what they name.
//!
//! To the checkpoint all of it stands in blocks that are free. A repair that keeps it writes none of them, and gives
//! them to nobody else; and the files that it belongs to are there, or are not yet, as they were.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use f2fs_format::inode::{inline, mode};
use f2fs_format::node::{NodeBlock, mark};
use f2fs_format::path::NodeKind;
use f2fs_format::{BlockAddr, Geometry, Nid};

use super::RepairError;
use super::overlay::Overlay;
use super::state::State;
use super::tables::Tables;
use crate::pack::{self, Pack};
use crate::report::Collector;
use crate::source::Source;
use crate::{recovery, superblock};

/// The chain behind a checkpoint, up to where it ends.
#[derive(Debug, Default)]
pub(super) struct Synced {
    /// The blocks of its nodes.
    pub(super) nodes: Rc<HashSet<u32>>,
    /// The slots that its nodes name blocks from, by block.
    slots: HashMap<u32, HashSet<(Nid, u16)>>,
    /// Inodes that a sync marked, in the order of the chain, and whether they are marked as new.
    marked: Vec<(Nid, bool)>,
}

impl Synced {
    /// Follows the chain. `None`: there is none.
    pub(super) fn read(overlay: &Overlay) -> Result<Option<Synced>, RepairError> {
        let (source, ignored) = (Source::new(overlay), Collector::default());
        let (sb, _) = superblock::load(&source, &ignored)?;
        let geometry = Geometry::from_superblock(&sb)?;
        let Some(pack) = pack::load(&source, &geometry, &ignored)? else { return Ok(None) };
        Synced::follow(overlay, &pack, &geometry)
    }

    fn follow(overlay: &Overlay, pack: &Pack, geometry: &Geometry) -> Result<Option<Synced>, RepairError> {
        let Some(mut addr) = recovery::start(pack, geometry) else { return Ok(None) };
        let (mut synced, mut nodes) = (Synced::default(), HashSet::new());
        while geometry.in_main(addr) {
            let block = overlay.block(addr)?;
            let node = NodeBlock::read(&block);
            if !recovery::is_recoverable(pack, node) {
                break;
            }
            // One that comes back to where it was is found by the check.
            if !nodes.insert(addr.0) {
                break;
            }
            synced.note(node, geometry);
            addr = node.footer.next_blkaddr.into();
        }
        synced.nodes = Rc::new(nodes);
        Ok((!synced.nodes.is_empty()).then_some(synced))
    }

    /// The nodes of a journal beside the volume, which lie in no block of it. Whether their inodes are there shows when
    /// they are brought back. A directory comes back without its blocks, and what is no file has none.
    pub(super) fn of_nodes<'a>(nodes: impl Iterator<Item = &'a NodeBlock>, geometry: &Geometry) -> Synced {
        let mut synced = Synced::default();
        let has_blocks =
            |node: &NodeBlock| !node.is_inode() || matches!(node.inode().file_type(), mode::REGULAR | mode::SYMLINK);
        nodes.filter(|node| has_blocks(node)).for_each(|node| synced.note_slots(node, geometry));
        synced
    }

    /// The blocks that its nodes name.
    pub(super) fn named(&self) -> impl Iterator<Item = u32> {
        self.slots.keys().copied()
    }

    fn note(&mut self, node: &NodeBlock, geometry: &Geometry) {
        if node.footer.has_mark(mark::FSYNC) {
            self.marked.push((node.ino(), node.is_inode() && node.footer.has_mark(mark::DENTRY)));
        }
        self.note_slots(node, geometry);
    }

    fn note_slots(&mut self, node: &NodeBlock, geometry: &Geometry) {
        let is_inline = node.is_inode() && node.inode().i_inline & (inline::DATA | inline::DENTRY) != 0;
        let is_direct = NodeKind::of(node.footer.node_offset()) == Some(NodeKind::Direct);
        if is_inline || !(node.is_inode() || is_direct) {
            return;
        }
        for (slot, addr) in node.addresses(geometry.features).enumerate().filter(|(_, addr)| addr.is_real()) {
            self.slots.entry(addr.0).or_default().insert((node.nid(), slot as u16));
        }
    }

    /// Whether no block of it is among these.
    pub(super) fn is_spared_by(&self, mut changed: impl Iterator<Item = u64>) -> bool {
        let is_of_it = |block: u64| {
            u32::try_from(block).is_ok_and(|addr| self.nodes.contains(&addr) || self.slots.contains_key(&addr))
        };
        !changed.any(is_of_it)
    }

    /// Whether roll-forward can take all of it into use, on the volume as it was mended. `tables`: its SIT as it was.
    pub(super) fn fits(&self, tables: &Tables, state: &State) -> bool {
        self.slots.iter().all(|(addr, slots)| is_free_for(*addr, slots, tables, state)) && self.finds_its_inodes(state)
    }

    /// Whether the inodes are there that are not new, and the others are not; as roll-forward decides it, which passes
    /// over what has no inode.
    fn finds_its_inodes(&self, state: &State) -> bool {
        let mut known = HashSet::new();
        let mut missing = HashSet::new();
        for (ino, is_new) in &self.marked {
            if known.contains(ino) {
                continue;
            }
            let is_there = state.nodes.contains_key(&ino.0);
            match (is_new, is_there) {
                (true, true) => return false,
                (false, false) => _ = missing.insert(*ino),
                _ => {
                    missing.remove(ino);
                    known.insert(*ino);
                }
            }
        }
        missing.is_empty()
    }
}

/// Whether a block that synced nodes name is free after the repair, or belongs to the slot that names it, or is
/// another's that the SIT knew of before: then it went from one file to another before it was synced.
fn is_free_for(addr: u32, slots: &HashSet<(Nid, u16)>, tables: &Tables, state: &State) -> bool {
    match state.blocks.get(&addr) {
        None => true,
        Some(claim) if claim.is_node => false,
        Some(claim) => slots.contains(&claim.owner) || tables.is_valid(BlockAddr(addr)),
    }
}
