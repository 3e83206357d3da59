//! The tables that a repair begins with, read without believing more of them than must be.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use f2fs_format::checkpoint::{CheckpointBlock, VersionBitmaps, flags};
use f2fs_format::node::NodeBlock;
use f2fs_format::sit::RawSitEntry;
use f2fs_format::summary::{Summary, SummaryBlock, TYPE_DATA, TYPE_NODE};
use f2fs_format::superblock::SuperBlock;
use f2fs_format::{BLOCKS_PER_SEGMENT, BlockAddr, Geometry, LogType, Nid, SegmentNo};

use super::RepairError;
use super::found_nodes::FoundNodes;
use super::overlay::Overlay;
use super::state::State;
use super::superblocks;
use crate::logs::{self, Logs};
use crate::nat::NatTable;
use crate::pack::{self, Pack};
use crate::report::Collector;
use crate::sit::{self, SitTable};
use crate::source::Source;
use crate::superblock;
use crate::zones::Zones;

/// Everything that is found by the superblock and the pack.
pub(super) struct Tables {
    pub(super) sb: SuperBlock,
    pub(super) geometry: Geometry,
    pub(super) seed: u32,
    pub(super) pack: Pack,
    pub(super) orphans: Vec<Nid>,
    pub(super) nat: NatTable,
    pub(super) sit: SitTable,
    pub(super) zones: Zones,
    /// Blocks of nodes that were synced after the checkpoint, and are kept: to it there is nothing there.
    synced: Rc<HashSet<u32>>,
    /// Summaries of the segments that were looked at.
    summaries: HashMap<u32, Box<SummaryBlock>>,
    /// What was found of nodes where the NAT does not lead.
    pub(super) found: FoundNodes,
}

impl Tables {
    /// The segments that the pack's logs stand in.
    pub(super) fn log_segments(&self) -> BTreeSet<SegmentNo> {
        LogType::ALL.into_iter().map(|log| self.pack.log(log).0).collect()
    }

    /// Reads them. `synced`: the blocks of nodes that are kept for roll-forward.
    pub(super) fn load(overlay: &Overlay, synced: &Rc<HashSet<u32>>, state: &mut State) -> Result<Tables, RepairError> {
        let source = Source::new(overlay);
        let ignored = Collector::default();
        let (mut sb, _) = superblock::load(&source, &ignored)?;
        superblocks::mend(overlay, &mut sb, state)?;
        let geometry = Geometry::from_superblock(&sb)?;
        let pack = load_pack(overlay, &source, &geometry, state)?;
        let orphans = logs::orphans(&source, &pack, &geometry, &ignored)?;
        let Logs { summaries: of_logs, mut nat_journal, mut sit_journal } = logs::load(&source, &pack, &ignored)?;
        nat_journal.retain(|(_, entry)| {
            let addr = BlockAddr::from(entry.block_addr);
            addr.is_null() || geometry.in_main(addr)
        });
        sit_journal.retain(|(segment, _)| segment.0 < geometry.main_segments);
        let mut nat = NatTable::load(&source, &geometry, &pack.bitmaps.nat)?;
        nat.apply_journal(&nat_journal, &geometry, &ignored);
        let mut sit = SitTable::load(&source, &geometry, &pack.bitmaps.sit)?;
        sit.apply_journal(&sit_journal, &ignored);
        let zones = Zones::load(&source, &geometry, &ignored)?;
        if !zones.are_known() {
            return Err(RepairError::NoZones);
        }
        let mut tables = Tables {
            zones,
            seed: f2fs_format::inode::checksum_seed(&sb),
            sb,
            pack,
            orphans,
            nat,
            sit,
            synced: Rc::clone(synced),
            summaries: HashMap::new(),
            found: FoundNodes::default(),
            geometry,
        };
        for (log, (segment, summary)) in LogType::ALL.into_iter().zip(&of_logs) {
            let summary = match summary {
                Some(summary) => Box::new(**summary),
                None => tables.summary_by_footers(overlay, *segment)?,
            };
            if log.is_node() || !of_logs[..log.index()].iter().any(|(other, _)| other == segment) {
                tables.summaries.insert(segment.0, summary);
            }
        }
        Ok(tables)
    }

    /// The owners that node blocks state themselves, where the pack has no summary of a log.
    fn summary_by_footers(&self, overlay: &Overlay, segment: SegmentNo) -> Result<Box<SummaryBlock>, RepairError> {
        let mut summary = SummaryBlock::new_box();
        summary.entry_type = TYPE_NODE;
        // One that is not in use, on a read-only volume, may stand anywhere.
        let blocks = if segment.0 < self.geometry.main_segments { BLOCKS_PER_SEGMENT } else { 0 };
        for offset in 0..blocks {
            let addr = self.geometry.block_at(segment, offset);
            if !self.zones.is_written(addr) {
                break;
            }
            let block = overlay.block(addr)?;
            let nid = NodeBlock::read(&block).nid();
            if nid.0 < self.nat.len() {
                summary.entries[offset as usize] = Summary::new(nid, 0, 0);
            }
        }
        Ok(summary)
    }

    /// The summary of a segment.
    pub(super) fn summary(&mut self, overlay: &Overlay, segment: SegmentNo) -> Result<&mut SummaryBlock, RepairError> {
        if !self.summaries.contains_key(&segment.0) {
            let block = overlay.block(self.geometry.summary_block(segment))?;
            self.summaries.insert(segment.0, Box::new(*SummaryBlock::read(&block)));
        }
        Ok(self.summaries.entry(segment.0).or_insert_with(SummaryBlock::new_box))
    }

    /// The summary of a segment, if somebody looked at it, or a log has it.
    pub(super) fn known_summary(&self, segment: SegmentNo) -> Option<&SummaryBlock> {
        self.summaries.get(&segment.0).map(|summary| &**summary)
    }

    /// The node and slot that the summary says a block belongs to, and whether it is one of nodes. `None` if the summary
    /// says nothing: it is empty here, or no summary.
    pub(super) fn owner(
        &mut self,
        overlay: &Overlay,
        addr: BlockAddr,
    ) -> Result<Option<(Nid, u16, bool)>, RepairError> {
        let Some((segment, offset)) = self.geometry.locate(addr) else { return Ok(None) };
        let nids = self.nat.len();
        let summary = self.summary(overlay, segment)?;
        let entry = &summary.entries[offset as usize];
        let owner = Nid::from(entry.nid);
        let is_owner = !owner.is_null() && owner.0 < nids && matches!(summary.entry_type, TYPE_DATA | TYPE_NODE);
        Ok(is_owner.then(|| (owner, entry.ofs_in_node.get(), summary.entry_type == TYPE_NODE)))
    }

    /// Whether the summary of a block names this slot.
    pub(super) fn is_owner(
        &mut self,
        overlay: &Overlay,
        addr: BlockAddr,
        holder: Nid,
        slot: usize,
    ) -> Result<bool, RepairError> {
        let owner = self.owner(overlay, addr)?;
        Ok(owner.is_some_and(|(owner, owner_slot, _)| owner == holder && usize::from(owner_slot) == slot))
    }

    /// Whether an address names a block that can be read: one of the main area, in a zone one that was written, and
    /// none that is kept for roll-forward.
    pub(super) fn is_there(&self, addr: BlockAddr) -> bool {
        self.geometry.in_main(addr) && self.zones.is_written(addr) && !self.synced.contains(&addr.0)
    }

    /// Whether the SIT holds a block for valid.
    pub(super) fn is_valid(&self, addr: BlockAddr) -> bool {
        self.geometry.locate(addr).is_some_and(|(segment, offset)| self.sit.is_valid(segment, offset))
    }

    /// Whether the SIT has lost what it knew of the segment of a block: it says that nothing ever was there, or
    /// contradicts itself.
    pub(super) fn is_forgotten(&self, addr: BlockAddr) -> bool {
        let is_lost = |entry: &RawSitEntry| *entry == RawSitEntry::ZERO || !sit::is_possible(entry);
        self.geometry.locate(addr).is_some_and(|(segment, _)| is_lost(self.sit.get(segment)))
    }

    /// Whether the NAT knows nothing of a NID, or something that cannot be. Of one that was freed it keeps a version.
    pub(super) fn is_unknown(&self, nid: Nid) -> bool {
        let entry = self.nat.get(nid);
        let addr = BlockAddr::from(entry.block_addr);
        if addr.is_null() { (entry.ino.get(), entry.version) == (0, 0) } else { !self.geometry.in_main(addr) }
    }

    /// Whether the SIT says that a block lies in a segment of nodes.
    pub(super) fn in_node_segment(&self, addr: BlockAddr) -> Option<bool> {
        let (segment, _) = self.geometry.locate(addr)?;
        Some(self.sit.get(segment).log_type()?.is_node())
    }

    /// The same. Where the SIT has lost what it knew of the segment, the summary tells, if it is one of nodes: one that
    /// was cleared looks like one of data.
    pub(super) fn is_beside_nodes(&mut self, overlay: &Overlay, addr: BlockAddr) -> Result<Option<bool>, RepairError> {
        if !self.is_forgotten(addr) {
            return Ok(self.in_node_segment(addr));
        }
        let Some((segment, _)) = self.geometry.locate(addr) else { return Ok(None) };
        Ok((self.summary(overlay, segment)?.entry_type == TYPE_NODE).then_some(true))
    }
}

/// The pack in force, or the other one; else one of them with its layout put right.
fn load_pack(
    overlay: &Overlay,
    source: &Source<'_>,
    geometry: &Geometry,
    state: &mut State,
) -> Result<Pack, RepairError> {
    let ignored = Collector::default();
    if let Some(pack) = pack::load(source, geometry, &ignored)? {
        return Ok(pack);
    }
    // Newest first; a pack that lies about its layout may still have everything in its place.
    let mut packs = Vec::new();
    for index in 0..2 {
        // The block that ends a pack is a copy of the one that begins it.
        let start = geometry.checkpoint_pack(index);
        let first = CheckpointBlock::read(&*overlay.block(start)?);
        let all = Some(first).filter(|first| first.verify().is_ok()).into_iter().chain(pack::ends(source, start)?);
        let all = all.map(|checkpoint| (checkpoint.header.checkpoint_ver.get(), index, checkpoint));
        packs.extend(all.filter(|(version, ..)| *version != 0));
    }
    packs.sort_by_key(|(version, ..)| std::cmp::Reverse(*version));
    for (_, index, mut checkpoint) in packs {
        mend_layout(geometry, &mut checkpoint);
        let total = checkpoint.header.cp_pack_total_block_count.get();
        if !(3..=BLOCKS_PER_SEGMENT).contains(&total) {
            continue;
        }
        checkpoint.seal();
        let trial = Overlay::new_on(overlay);
        let start = geometry.checkpoint_pack(index);
        let other = geometry.checkpoint_pack(1 - index);
        for addr in [start, start.offset(total - 1)] {
            trial.put(addr, checkpoint.as_block());
        }
        // The other one out of the way.
        trial.put(other, &[0; f2fs_format::BLOCK_SIZE]);
        let trial_source = Source::new(&trial);
        if let Some(pack) = pack::load(&trial_source, geometry, &ignored)? {
            state.act(|| format!("pack {index}: its layout is put right"));
            trial.copy_to(overlay, |addr| addr != u64::from(other.0));
            return Ok(pack);
        }
    }
    Err(RepairError::NoCheckpoint("neither pack has a checkpoint that its own checksum accepts".into()))
}

/// Gives a pack the right layout, from the geometry.
fn mend_layout(geometry: &Geometry, checkpoint: &mut CheckpointBlock) {
    let header = &mut checkpoint.header;
    header.sit_ver_bitmap_bytesize = (geometry.sit_bitmap_size() as u32).into();
    header.nat_ver_bitmap_bytesize = (geometry.nat_bitmap_size() as u32).into();
    let flags = header.ckpt_flags.get();
    let first = 1 + geometry.cp_payload;
    let nodes = if flags & (flags::UMOUNT | flags::FASTBOOT) != 0 { 3 } else { 0 };
    let total = header.cp_pack_total_block_count.get();
    let start = header.cp_pack_start_sum.get();
    if flags & flags::ORPHAN_PRESENT == 0 {
        header.cp_pack_start_sum = first.into();
    } else if start <= first || start.saturating_add(nodes) >= total {
        header.cp_pack_start_sum = (first + 1).into();
    }
    // A log that stands nowhere gets another segment later; for now any will do.
    for log in 0..3 {
        for (segment, offset) in [
            (&mut header.cur_node_segno[log], &mut header.cur_node_blkoff[log]),
            (&mut header.cur_data_segno[log], &mut header.cur_data_blkoff[log]),
        ] {
            if segment.get() >= geometry.main_segments {
                *segment = 0.into();
            }
            if u32::from(offset.get()) >= BLOCKS_PER_SEGMENT {
                *offset = 0.into();
            }
        }
    }
}

/// The bitmaps, for a pack that is written again.
pub(super) fn bitmaps(tables: &Tables) -> VersionBitmaps {
    VersionBitmaps { sit: tables.pack.bitmaps.sit.clone(), nat: tables.pack.bitmaps.nat.clone() }
}
