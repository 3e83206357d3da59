//! On zones: a block there is not changed in place, but written anew in an empty zone.
//!
//! ```text
//!   blocks that changed, and those where none can be ─► data moves, and its slots change ─► nodes move, and their NAT entries change
//!        ─► logs that stand where their zone does not go on move ─► zones that they leave are finished
//! ```
//!
//! What the old checkpoint names stays where it is, so that a repair that is cut off, or undone, leads back to it:
//! zones get new blocks that are empty, or hold nothing for either checkpoint.

use std::collections::{BTreeMap, BTreeSet};

use f2fs_device::{Zone, ZoneChange, ZoneState};
use f2fs_format::checkpoint::LogPosition;
use f2fs_format::dentry::FileType;
use f2fs_format::inode::Extent;
use f2fs_format::node::{NodeBlock, mark};
use f2fs_format::path::NodeKind;
use f2fs_format::{BLOCKS_PER_SEGMENT, BlockAddr, LogType, Nid, SegmentNo};

use super::RepairError;
use super::nodes::node_of;
use super::overlay::Overlay;
use super::state::{Claim, Slot, State};
use super::tables::Tables;
use super::walk::Walk;

/// A section that gets new blocks, from its start on.
#[derive(Clone, Copy, Debug)]
struct Target {
    section: u32,
    /// Blocks that it has now.
    next: u32,
}

/// The sections that a repair writes to, and what becomes of zones.
#[derive(Debug, Default)]
pub(super) struct Sections {
    /// The last one of each log.
    open: [Option<Target>; 6],
    taken: BTreeSet<u32>,
    /// What is done to zones before anything is written, by their first block.
    pub(super) changes: BTreeMap<u64, ZoneChange>,
    /// Blocks in each that was taken.
    written: BTreeMap<u32, u32>,
}

impl Sections {
    /// A section that nothing uses, neither now nor by the old checkpoint; one whose zone is empty, if there is any.
    pub(super) fn free(&mut self, tables: &Tables, state: &State) -> Option<u32> {
        let geometry = &tables.geometry;
        let per_section = geometry.segs_per_sec;
        let segments = |section: u32| (section * per_section..(section + 1) * per_section).map(SegmentNo);
        let used: BTreeSet<u32> =
            state.blocks.keys().filter_map(|addr| geometry.locate(BlockAddr(*addr))).map(|at| at.0.0).collect();
        let standing = tables.log_segments();
        let is_free = |section: &u32| {
            !self.taken.contains(section)
                && segments(*section).all(|segment| {
                    tables.sit.get(segment).valid_map.iter().all(|byte| *byte == 0)
                        && !used.contains(&segment.0)
                        && !standing.contains(&segment)
                        && !state.spoken_for.contains(&segment)
                })
        };
        let of = |section: u32| tables.zones.at(geometry.block_at(SegmentNo(section * per_section), 0));
        let can_be_written = |section: &u32| {
            of(*section).is_none_or(|zone| !matches!(zone.state, ZoneState::ReadOnly | ZoneState::Offline))
        };
        let is_empty = |section: &u32| of(*section).is_none_or(|zone| zone.written == Some(0));
        let all: Vec<u32> = (0..geometry.sections).filter(can_be_written).filter(is_free).collect();
        let section = all.iter().copied().find(is_empty).or(all.first().copied())?;
        if let Some(zone) = of(section).filter(|_| !is_empty(&section)) {
            self.changes.insert(zone.start, ZoneChange::Reset);
        }
        self.taken.insert(section);
        self.written.insert(section, 0);
        Some(section)
    }

    /// The next block for a log.
    fn block(&mut self, log: LogType, tables: &Tables, state: &State) -> Result<BlockAddr, RepairError> {
        let room = tables.zones.section_blocks(&tables.geometry);
        let target = match self.open[log.index()].filter(|target| target.next < room) {
            Some(target) => target,
            None => {
                Target { section: self.free(tables, state).ok_or(RepairError::NoRoom("blocks that change"))?, next: 0 }
            }
        };
        self.open[log.index()] = Some(Target { next: target.next + 1, ..target });
        self.written.insert(target.section, target.next + 1);
        let first = tables.geometry.block_at(SegmentNo(target.section * tables.geometry.segs_per_sec), 0);
        Ok(first.offset(target.next))
    }

    /// Where a log that got blocks goes on, if its section has room.
    pub(super) fn goes_on(&self, log: LogType, tables: &Tables) -> Option<(SegmentNo, u32)> {
        let target =
            self.open[log.index()].filter(|target| target.next < tables.zones.section_blocks(&tables.geometry))?;
        let segment = target.section * tables.geometry.segs_per_sec + target.next / BLOCKS_PER_SEGMENT;
        Some((SegmentNo(segment), target.next % BLOCKS_PER_SEGMENT))
    }

    /// Finishes the zones that are written in part and where no log of these goes on: the device lets so many be
    /// written at a time.
    pub(super) fn finish_others(&mut self, logs: &[LogPosition; 6], tables: &Tables) {
        let standing: BTreeSet<u64> = logs
            .iter()
            .filter_map(|log| tables.zones.at(tables.geometry.block_at(log.segment, 0)))
            .map(|zone| zone.start)
            .collect();
        for zone in tables.zones.all().iter().filter(|zone| zone.state.is_active()) {
            if !standing.contains(&zone.start) && !self.changes.contains_key(&zone.start) {
                self.changes.insert(zone.start, ZoneChange::Finish);
            }
        }
    }

    /// The zones of the device when all of it is done.
    pub(super) fn afterwards(&self, tables: &Tables) -> Vec<Zone> {
        let mut zones = tables.zones.all().to_vec();
        for zone in &mut zones {
            match self.changes.get(&zone.start) {
                Some(ZoneChange::Reset) => (zone.state, zone.written) = (ZoneState::Empty, Some(0)),
                Some(_) => (zone.state, zone.written) = (ZoneState::Full, None),
                None => {}
            }
        }
        for (section, blocks) in self.written.iter().filter(|(_, blocks)| **blocks > 0) {
            let start = tables.geometry.block_at(SegmentNo(section * tables.geometry.segs_per_sec), 0).0;
            let zone = zones.iter_mut().find(|zone| zone.start == u64::from(start));
            if let Some(zone) = zone.filter(|zone| zone.state != ZoneState::Conventional) {
                let full = u64::from(*blocks) >= zone.capacity;
                zone.state = if full { ZoneState::Full } else { ZoneState::Closed };
                zone.written = (!full).then_some(u64::from(*blocks));
            }
        }
        zones
    }
}

/// Moves the blocks that cannot stay where they are. Gives the sections that they went to.
pub(super) fn move_blocks(overlay: &Overlay, tables: &mut Tables, state: &mut State) -> Result<Sections, RepairError> {
    let mut sections = Sections::default();
    // What the walk made has places for the time being.
    state.own.clear();
    let mut walk = Walk::new(overlay, tables, state);
    let mut holders = BTreeSet::new();
    for (addr, claim) in moving(&walk, false)? {
        let Slot::Address(slot) = claim.by.slot else { continue };
        let holder = claim.by.holder;
        let (node_addr, mut node) = node_of(&walk, holder)?;
        let log = if holder_is_directory(&walk, &node)? { LogType::HotData } else { LogType::WarmData };
        let fresh = move_block(&mut walk, &mut sections, addr, claim, log)?;
        node.set_address(slot as usize, fresh, walk.tables.geometry.features);
        walk.put(node_addr, &mut node);
        holders.insert(node.ino());
    }
    // The extent that an inode caches may name a block that moved.
    for ino in holders {
        let (addr, mut node) = node_of(&walk, ino)?;
        if node.inode().i_ext.len.get() != 0 {
            node.inode_mut().i_ext = Extent { fofs: 0.into(), blk_addr: 0.into(), len: 0.into() };
            walk.put(addr, &mut node);
        }
    }
    for (addr, claim) in moving(&walk, true)? {
        let nid = claim.owner.0;
        let mut node = *NodeBlock::read(&*walk.overlay.block(BlockAddr(addr))?);
        let offset = node.footer.node_offset();
        let is_direct = node.is_inode() || NodeKind::of(offset) == Some(NodeKind::Direct);
        let log = match (is_direct, node.footer.has_mark(mark::COLD)) {
            (false, _) => LogType::ColdNode,
            (true, true) => LogType::WarmNode,
            (true, false) => LogType::HotNode,
        };
        let fresh = move_block(&mut walk, &mut sections, addr, claim, log)?;
        node.footer.next_blkaddr = fresh.offset(1).into();
        walk.put(fresh, &mut node);
        let mut entry = walk.tables.nat.get(nid);
        entry.block_addr = fresh.into();
        walk.tables.nat.set(nid, entry);
    }
    // What changed there and is nobody's.
    for (block, _) in walk.overlay.changes()? {
        let addr = BlockAddr(block as u32);
        if walk.tables.zones.is_sequential(addr) && !walk.state.blocks.contains_key(&addr.0) {
            walk.overlay.forget(addr);
        }
    }
    Ok(sections)
}

/// The blocks that cannot stay, of nodes or of data, in the order of their addresses.
fn moving(walk: &Walk<'_>, nodes: bool) -> Result<BTreeMap<u32, Claim>, RepairError> {
    let changed: BTreeSet<u64> = walk.overlay.changes()?.into_iter().map(|(block, _)| block).collect();
    let cannot_stay = |addr: u32| {
        let (zones, addr) = (&walk.tables.zones, BlockAddr(addr));
        zones.is_sequential(addr) && changed.contains(&addr.0.into())
            || zones.is_behind_capacity(addr, &walk.tables.geometry)
    };
    let of_kind = walk.state.blocks.iter().filter(|(addr, claim)| claim.is_node == nodes && cannot_stay(**addr));
    Ok(of_kind.map(|(addr, claim)| (*addr, *claim)).collect())
}

/// Copies a block to a new place, which gets its claim.
fn move_block(
    walk: &mut Walk<'_>,
    sections: &mut Sections,
    addr: u32,
    claim: Claim,
    log: LogType,
) -> Result<BlockAddr, RepairError> {
    let fresh = sections.block(log, walk.tables, walk.state)?;
    let block = walk.overlay.block(BlockAddr(addr))?;
    walk.overlay.forget(BlockAddr(addr));
    walk.overlay.put(fresh, &block);
    walk.state.blocks.remove(&addr);
    walk.state.blocks.insert(fresh.0, claim);
    walk.state.act(|| format!("block {addr}, of nid {}: written anew as block {fresh}", claim.owner.0));
    Ok(fresh)
}

fn holder_is_directory(walk: &Walk<'_>, node: &NodeBlock) -> Result<bool, RepairError> {
    let ino: Nid = node.ino();
    let inode = node_of(walk, ino)?.1;
    Ok(FileType::from_mode(inode.inode().i_mode.get()) == FileType::Directory)
}
