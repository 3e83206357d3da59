//! Building the tables again from the blocks that were reached: NAT, SIT, summaries, and a checkpoint with the right
//! counts.

use std::collections::{BTreeMap, BTreeSet};

use f2fs_format::bits::msb;
use f2fs_format::checkpoint::{Checkpoint, LogPosition, NextPack, alloc_type, flags};
use f2fs_format::feature::Features;
use f2fs_format::nat::{ENTRIES_PER_BLOCK, NatBlock, RawNatEntry};
use f2fs_format::sit::{self, RawSitEntry, SitBlock};
use f2fs_format::summary::{Journal, Summary, SummaryBlock, TYPE_DATA, TYPE_NODE};
use f2fs_format::{BLOCKS_PER_SEGMENT, BlockAddr, LogType, Nid, SegmentNo};

use super::RepairError;
use super::overlay::Overlay;
use super::state::State;
use super::tables::{Tables, bitmaps};
use super::zoned::Sections;
use crate::pack::slack_segments;
use crate::sit::is_possible;

/// The blocks of a segment that were reached.
#[derive(Clone, Copy, Debug)]
pub(super) struct Used {
    map: [u8; sit::VALID_MAP_SIZE],
    nodes: u32,
    data: u32,
}

/// Writes all of it; gives the block where the warm-node log goes on. `sections`: those that blocks on zones were moved
/// to.
pub(super) fn write(
    overlay: &Overlay,
    tables: &mut Tables,
    state: &mut State,
    sections: Option<&mut Sections>,
) -> Result<BlockAddr, RepairError> {
    let used = used(tables, state);
    let logs = match sections {
        Some(sections) => place_on_zones(tables, &used, state, sections)?,
        None => place_logs(tables, &used, state)?,
    };
    let entries = sit_entries(tables, &used, &logs, state);
    write_sit(overlay, tables, &entries, state)?;
    write_nat(overlay, tables, state)?;
    write_summaries(overlay, tables, &used, &logs, state)?;
    write_pack(overlay, tables, &logs, &entries, state)?;
    let chain = &logs[LogType::WarmNode.index()];
    Ok(tables.geometry.block_at(chain.segment, chain.next_offset.into()))
}

/// What was reached, by segment.
pub(super) fn used(tables: &Tables, state: &State) -> BTreeMap<u32, Used> {
    let mut all = BTreeMap::new();
    for (addr, claim) in &state.blocks {
        let Some((segment, offset)) = tables.geometry.locate(BlockAddr(*addr)) else { continue };
        let used = all.entry(segment.0).or_insert(Used { map: [0; sit::VALID_MAP_SIZE], nodes: 0, data: 0 });
        msb::set(&mut used.map, offset as usize);
        *(if claim.is_node { &mut used.nodes } else { &mut used.data }) += 1;
    }
    all
}

/// Where each log goes on: where it stood, if that can be.
fn place_logs(tables: &Tables, used: &BTreeMap<u32, Used>, state: &mut State) -> Result<[LogPosition; 6], RepairError> {
    let mut taken: BTreeSet<u32> = BTreeSet::new();
    // The blocks in a log's segment belong there before any others do.
    let mut others: BTreeSet<u32> = state.own.iter().map(|own| own.segment.0).collect();
    others.extend(used.keys());
    let mut logs = Vec::with_capacity(6);
    for log in LogType::ALL {
        let (segment, offset) = tables.pack.log(log);
        let is_used = |at: u32| used.get(&segment.0).is_some_and(|used| msb::test(&used.map, at as usize));
        let fits = segment.0 < tables.geometry.main_segments
            && used.get(&segment.0).is_none_or(|used| if log.is_node() { used.data == 0 } else { used.nodes == 0 });
        let behind = (0..BLOCKS_PER_SEGMENT).rev().find(|at| is_used(*at)).map_or(0, |last| last + 1);
        let ssr = tables.pack.is_ssr(log) && log != LogType::WarmNode;
        let place = if !fits || taken.contains(&segment.0) {
            None
        } else if ssr {
            (offset..BLOCKS_PER_SEGMENT).chain(0..offset).find(|at| !is_used(*at)).map(|at| (at, alloc_type::SSR))
        } else if behind.max(offset) < BLOCKS_PER_SEGMENT {
            Some((behind.max(offset), alloc_type::LFS))
        } else {
            None
        };
        let (segment, offset, alloc) = match place {
            Some((at, alloc)) => (segment, at, alloc),
            None => {
                let standing: BTreeSet<u32> = tables.log_segments().iter().map(|segment| segment.0).collect();
                let free = (0..tables.geometry.main_segments)
                    .find(|free| !others.contains(free) && !taken.contains(free) && !standing.contains(free))
                    .ok_or(RepairError::NoRoom("a log"))?;
                state.act(|| format!("{log:?} log: goes on in segment {free}, stood in {segment} at {offset}"));
                (SegmentNo(free), 0, alloc_type::LFS)
            }
        };
        taken.insert(segment.0);
        logs.push(LogPosition { segment, next_offset: offset as u16, alloc_type: alloc });
    }
    let Ok(logs) = <[LogPosition; 6]>::try_from(logs) else { unreachable!("one a log") };
    Ok(logs)
}

/// The same on zones: where the log's moved blocks end; else where it stood, if its zone goes on there; else at the
/// start of a free section.
fn place_on_zones(
    tables: &Tables,
    used: &BTreeMap<u32, Used>,
    state: &mut State,
    sections: &mut Sections,
) -> Result<[LogPosition; 6], RepairError> {
    let mut taken: BTreeSet<u32> = BTreeSet::new();
    let mut logs = Vec::with_capacity(6);
    for log in LogType::ALL {
        let (segment, offset) = tables.pack.log(log);
        let is_used = |at: u32| used.get(&segment.0).is_some_and(|used| msb::test(&used.map, at as usize));
        let fits = segment.0 < tables.geometry.main_segments
            && !taken.contains(&segment.0)
            && used.get(&segment.0).is_none_or(|used| if log.is_node() { used.data == 0 } else { used.nodes == 0 })
            && tables.zones.goes_on_at(segment, offset, &tables.geometry)
            && !(offset..BLOCKS_PER_SEGMENT).any(is_used);
        let (at, next) = match sections.goes_on(log, tables) {
            Some(place) => place,
            None if fits => (segment, offset),
            None => {
                let section = sections.free(tables, state).ok_or(RepairError::NoRoom("a log"))?;
                (SegmentNo(section * tables.geometry.segs_per_sec), 0)
            }
        };
        if (at, next) != (segment, offset) {
            state.act(|| format!("{log:?} log: goes on in segment {at} at {next}, stood in {segment} at {offset}"));
        }
        taken.insert(at.0);
        logs.push(LogPosition { segment: at, next_offset: next as u16, alloc_type: alloc_type::LFS });
    }
    let Ok(logs) = <[LogPosition; 6]>::try_from(logs) else { unreachable!("one a log") };
    sections.finish_others(&logs, tables);
    Ok(logs)
}

fn log_of(logs: &[LogPosition; 6], segment: SegmentNo) -> Option<LogType> {
    LogType::ALL.into_iter().find(|log| logs[log.index()].segment == segment)
}

/// The entry of each segment.
pub(super) fn sit_entries(
    tables: &Tables,
    used: &BTreeMap<u32, Used>,
    logs: &[LogPosition; 6],
    state: &mut State,
) -> Vec<RawSitEntry> {
    let mut entries = Vec::new();
    for segment in tables.sit.segments().map(SegmentNo) {
        let old = *tables.sit.get(segment);
        let mut entry = old;
        let used = used.get(&segment.0);
        entry.valid_map = used.map_or([0; sit::VALID_MAP_SIZE], |used| used.map);
        let is_node = used.map(|used| used.nodes >= used.data);
        let kept = old.log_type().filter(|log| is_node.is_none_or(|is_node| log.is_node() == is_node));
        let own = state.own.iter().find(|own| own.segment == segment).map(|own| own.log);
        let guess = own.unwrap_or(if is_node == Some(true) { LogType::WarmNode } else { LogType::WarmData });
        let log = log_of(logs, segment).or(kept).unwrap_or(guess);
        entry.set_blocks(log, msb::count(&entry.valid_map));
        if entry.valid_map != old.valid_map || entry.vblocks != old.vblocks {
            let (valid, was) = (entry.valid_blocks(), old.valid_blocks());
            let old_type = old.type_number();
            state.act(|| {
                let types = format!("type {}, was {old_type}", log.number());
                let blocks = format!("{valid} valid blocks, was {was}");
                match (log.number() == old_type, valid == was) {
                    (true, true) => format!("segment {segment}: other blocks are valid, {valid} as before"),
                    (true, false) => format!("segment {segment}: {blocks}"),
                    (false, true) => format!("segment {segment}: {types}"),
                    (false, false) => format!("segment {segment}: {types}; {blocks}"),
                }
            });
        }
        entries.push(entry);
    }
    entries
}

fn write_sit(
    overlay: &Overlay,
    tables: &Tables,
    entries: &[RawSitEntry],
    state: &mut State,
) -> Result<(), RepairError> {
    for index in 0..tables.geometry.sit_blocks() {
        let addr = tables.geometry.sit_block(index, msb::test(&tables.pack.bitmaps.sit, index as usize));
        let mut block = Box::new(*SitBlock::read(&*overlay.block(addr)?));
        let first = index as usize * sit::ENTRIES_PER_BLOCK;
        for (index, slot) in block.entries.iter_mut().enumerate() {
            let segment = SegmentNo((first + index) as u32);
            let Some(entry) = entries.get(segment.index()) else { break };
            if !is_possible(slot) && slot != tables.sit.get(segment) {
                state.act(|| format!("segment {segment}: its entry below that of the journal is put right"));
            }
            *slot = *entry;
        }
        overlay.put(addr, block.as_block());
    }
    Ok(())
}

/// The entries of a block of the NAT: without those of nodes that nothing refers to. `None`: there are only zeros, and
/// nothing to put right.
pub(super) fn nat_entries(
    tables: &mut Tables,
    index: u32,
    state: &mut State,
) -> Option<[RawNatEntry; ENTRIES_PER_BLOCK]> {
    let mut entries = match tables.nat.block(index) {
        Some(block) => block.entries,
        None if index == 0 => NatBlock::ZERO.entries,
        None => return None,
    };
    for (slot, entry) in entries.iter_mut().enumerate() {
        let nid = Nid(index * ENTRIES_PER_BLOCK as u32 + slot as u32);
        let was = *entry;
        match nid.0 {
            0 => *entry = RawNatEntry::default(),
            1 | 2 => {
                entry.ino = nid.into();
                entry.block_addr = 1.into();
            }
            _ if entry.block_addr.get() != 0 && !state.nodes.contains_key(&nid.0) => {
                state.act(|| format!("nid {nid}: nothing refers to it, it is free"));
                (entry.ino, entry.block_addr) = (0.into(), 0.into());
            }
            _ => continue,
        }
        if *entry != was {
            tables.nat.set(nid, *entry);
        }
    }
    Some(entries)
}

/// Whether the table says something of a node below an entry of the journal that cannot be.
pub(super) fn is_wrong_below(below: &RawNatEntry) -> bool {
    below.block_addr.get() != 0 && below.ino.get() == 0
}

fn write_nat(overlay: &Overlay, tables: &mut Tables, state: &mut State) -> Result<(), RepairError> {
    for index in 0..tables.geometry.nat_blocks() {
        let read = tables.nat.block(index).map_or(NatBlock::ZERO.entries, |block| block.entries);
        let Some(entries) = nat_entries(tables, index, state) else { continue };
        let addr = tables.geometry.nat_block(index, msb::test(&tables.pack.bitmaps.nat, index as usize));
        let before = overlay.block(addr)?;
        let mut block = Box::new(*NatBlock::read(&before));
        for (slot, (below, entry)) in block.entries.iter().zip(&read).enumerate() {
            if is_wrong_below(below) && below != entry {
                let nid = index * ENTRIES_PER_BLOCK as u32 + slot as u32;
                state.act(|| format!("nid {nid}: its entry below that of the journal is put right"));
            }
        }
        block.entries = entries;
        if *block.as_block() != *before {
            overlay.put(addr, block.as_block());
        }
    }
    Ok(())
}

/// The summaries of segments in use that are no log's.
pub(super) fn write_summaries(
    overlay: &Overlay,
    tables: &mut Tables,
    used: &BTreeMap<u32, Used>,
    logs: &[LogPosition; 6],
    state: &mut State,
) -> Result<(), RepairError> {
    for (addr, claim) in &state.blocks {
        let Some((segment, offset)) = tables.geometry.locate(BlockAddr(*addr)) else { continue };
        let (nid, slot) = claim.owner;
        let version = if claim.is_node { 0 } else { tables.nat.get(nid).version };
        let entry = &mut tables.summary(overlay, segment)?.entries[offset as usize];
        let wrong = Nid::from(entry.nid) != nid
            || (!claim.is_node && (entry.version != version || entry.ofs_in_node.get() != slot));
        if wrong {
            *entry = Summary::new(nid, version, slot);
        }
    }
    for (segment, used) in used {
        let segment = SegmentNo(*segment);
        let entry_type = if used.nodes >= used.data { TYPE_NODE } else { TYPE_DATA };
        let summary = tables.summary(overlay, segment)?;
        summary.entry_type = entry_type;
        let summary = *summary;
        if log_of(logs, segment).is_none() {
            let addr = tables.geometry.summary_block(segment);
            let block = overlay.block(addr)?;
            if *block != *summary.as_block() {
                state.actions.push(format!("segment {segment}: its summary is put right"));
                overlay.put(addr, summary.as_block());
            }
        }
    }
    Ok(())
}

fn write_pack(
    overlay: &Overlay,
    tables: &mut Tables,
    logs: &[LogPosition; 6],
    entries: &[RawSitEntry],
    state: &mut State,
) -> Result<(), RepairError> {
    let mut summaries: Vec<Box<SummaryBlock>> = Vec::with_capacity(6);
    for log in LogType::ALL {
        let mut summary = Box::new(*tables.summary(overlay, logs[log.index()].segment)?);
        summary.entry_type = if log.is_node() { TYPE_NODE } else { TYPE_DATA };
        if log != LogType::HotNode {
            summary.journal = Journal::ZERO;
        }
        summaries.push(summary);
    }
    let header = tables.pack.header();
    let geometry = &tables.geometry;
    let segment = u64::from(BLOCKS_PER_SEGMENT);
    let reserve = |found: u32| if (1..geometry.main_segments).contains(&found) { found } else { 0 };
    let (mut reserved, mut overprovision) =
        (reserve(header.rsvd_segment_count.get()), reserve(header.overprov_segment_count.get()));
    if reserved == 0 {
        // The number of segments that mkfs set aside is not written anywhere else.
        reserved = overprovision.saturating_sub(6).clamp(1, geometry.main_segments - 1);
    }
    if overprovision == 0 {
        overprovision = (reserved + 6).min(geometry.main_segments - 1);
    }
    let most = u64::from(geometry.main_segments.saturating_sub(overprovision)) * segment;
    let valid_blocks = state.blocks.len() as u64 + state.reserved;
    let mut user_blocks = header.user_block_count.get();
    if user_blocks == 0 || user_blocks > most + slack_segments(geometry) * segment || user_blocks < valid_blocks {
        user_blocks = most;
    }
    let free = |nid: &u32| tables.nat.get(Nid(*nid)).block_addr.get() == 0;
    let mut next_free_nid = header.next_free_nid.get();
    if next_free_nid >= geometry.max_nid() {
        next_free_nid = (4..geometry.max_nid()).find(free).unwrap_or(4);
    }
    let in_log = |index: usize| log_of(logs, SegmentNo(index as u32)).is_some();
    let is_usable = |index: usize| tables.zones.is_usable(SegmentNo(index as u32), geometry);
    let is_free =
        |(index, entry): &(usize, &RawSitEntry)| entry.valid_blocks() == 0 && !in_log(*index) && is_usable(*index);
    let free_segments = entries.iter().enumerate().filter(is_free).count() as u32;
    // Files have changed, and nobody has counted them.
    let quotas = if geometry.features.contains(Features::QUOTA) { flags::QUOTA_NEED_FSCK } else { 0 };
    let checkpoint = Checkpoint {
        version: header.checkpoint_ver.get().wrapping_add(1),
        flags: header.ckpt_flags.get() & flags::LARGE_NAT_BITMAP | flags::CRC_RECOVERY | flags::UMOUNT | quotas,
        user_blocks,
        valid_blocks,
        reserved_segments: reserved,
        overprovision_segments: overprovision,
        free_segments,
        logs: *logs,
        pack_blocks: 0,
        start_sum: 0,
        valid_nodes: state.nodes.len() as u32,
        valid_inodes: state.inodes.len() as u32,
        next_free_nid: Nid(next_free_nid),
        elapsed_time: header.elapsed_time.get(),
        opening: 0,
    };
    let orphans: Vec<Nid> = state.orphans.iter().copied().collect();
    let index = 1 - tables.pack.index;
    let next = NextPack {
        geometry,
        checkpoint,
        bitmaps: bitmaps(tables),
        orphans: &orphans,
        summaries: core::array::from_fn(|log| &*summaries[log]),
        node_summaries: true,
    };
    let pack = next.compose()?;
    for (block, bytes) in pack.front.iter().enumerate() {
        overlay.put(geometry.pack_block(index, block), bytes);
    }
    overlay.put(geometry.pack_block(index, pack.front.len()), pack.block.as_block());
    state.act(|| format!("checkpoint {:#x} is written as pack {index}", pack.checkpoint.version));
    Ok(())
}
