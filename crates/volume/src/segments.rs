//! The main area as an open volume knows it: all of it if the volume is open for writing, else the blocks that are
//! asked for.
//!
//! Who only reads files needs no segment information: addresses stand in nodes, and nodes in the NAT. So an opening for
//! reading reads neither SIT nor summaries. It reads a block of the SIT later, when a caller asks about one of its
//! segments: whether a directory's block is in use, or the owner of a block that roll-forward adopts.
//!
//! Changes that roll-forward makes there stay in memory, as a list of blocks that differ from the SIT.
//!
//! # Locking rules
//!
//! Of a volume that is open for reading, `blocks` and `changed` are two locks that are never held together, nor while
//! anything is read.

use std::collections::BTreeMap;

use f2fs_device::BlockDevice;
use f2fs_format::sit::{ENTRIES_PER_BLOCK, RawSitEntry, SitBlock};
use f2fs_format::summary::{Summary, SummaryBlock};
use f2fs_format::{BLOCKS_PER_SEGMENT, BlockAddr, Geometry, LogType, SegmentNo, bits};
use f2fs_segment::{Run, SegmentError, SegmentInfo, SegmentManager};
use f2fs_sync::{Arc, Mutex, PlainArc};

use crate::VolumeError;
use crate::blocks::read_block;
use crate::pack::Pack;
use crate::zones;

/// Blocks of the SIT that are kept at most: 4 MiB, for 110 GiB of main area.
const KEPT: usize = 1024;

/// The segments, as far as they are known.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)]
pub(crate) enum Segments {
    /// All: the volume is open for writing.
    Managed(SegmentManager),
    /// The blocks that were asked for: the volume is open for reading.
    OnDemand(Box<SitReader>),
}

/// Reads the SIT where it is asked for.
pub(crate) struct SitReader {
    device: PlainArc<dyn BlockDevice>,
    geometry: Geometry,
    /// Which copy of each block is current.
    bitmap: Vec<u8>,
    journal: BTreeMap<SegmentNo, RawSitEntry>,
    logs: [(SegmentNo, u16); 6],
    free_segments: u32,
    blocks: Mutex<BTreeMap<u32, Arc<SitBlock>>>,
    /// Blocks that roll-forward took into use, with their owners, and blocks that it took out of use.
    changed: Mutex<BTreeMap<BlockAddr, Option<Summary>>>,
}

impl core::fmt::Debug for SitReader {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("SitReader").field("free_segments", &self.free_segments).finish_non_exhaustive()
    }
}

impl SitReader {
    pub(crate) fn new(
        device: PlainArc<dyn BlockDevice>,
        geometry: &Geometry,
        pack: &Pack,
        journal: Vec<(SegmentNo, RawSitEntry)>,
    ) -> SitReader {
        let logs = LogType::ALL.map(|log| {
            let position = pack.checkpoint.log(log);
            (position.segment, position.next_offset)
        });
        SitReader {
            device,
            geometry: geometry.clone(),
            bitmap: pack.bitmaps.sit.clone(),
            journal: journal.into_iter().collect(),
            logs,
            free_segments: pack.checkpoint.free_segments,
            blocks: Mutex::new(BTreeMap::new()),
            changed: Mutex::new(BTreeMap::new()),
        }
    }

    /// A segment's entry.
    fn entry(&self, segment: SegmentNo) -> Result<RawSitEntry, VolumeError> {
        let segments = self.geometry.main_segments;
        if segment.0 >= segments {
            return Err(SegmentError::OutsideTable { segment, segments }.into());
        }
        if let Some(entry) = self.journal.get(&segment) {
            return Ok(*entry);
        }
        let (index, at) = (segment.0 / ENTRIES_PER_BLOCK as u32, segment.index() % ENTRIES_PER_BLOCK);
        if let Some(block) = self.blocks.lock().get(&index) {
            return Ok(block.entries[at]);
        }
        let second = bits::msb::test(&self.bitmap, index as usize);
        let buf = read_block(&*self.device, self.geometry.sit_block(index, second))?;
        let block = Arc::new(*SitBlock::read(buf.block(0)));
        let mut blocks = self.blocks.lock();
        if blocks.len() >= KEPT {
            blocks.clear();
        }
        blocks.insert(index, block.clone());
        Ok(block.entries[at])
    }

    /// Whether the zones that the logs stand in were written as far as blocks of theirs are in use. A device without
    /// zones, such as a copy of the volume in a file, does not say.
    pub(crate) fn check_written(&self) -> Result<(), VolumeError> {
        let segments = self.logs.iter().map(|(segment, _)| *segment);
        zones::check_written(&*self.device, &self.geometry, segments, |segment| Ok(self.info(segment)?.valid_map))
    }

    fn info(&self, segment: SegmentNo) -> Result<SegmentInfo, VolumeError> {
        let stands = self.logs.iter().any(|(held, _)| *held == segment);
        let mut info = SegmentInfo::from_entry(segment, &self.entry(segment)?, stands)?;
        let first = self.geometry.block_at(segment, 0);
        let blocks = first..BlockAddr(first.0 + BLOCKS_PER_SEGMENT);
        for (addr, owner) in self.changed.lock().range(blocks) {
            let offset = addr.0 - first.0;
            if owner.is_some() {
                info.valid_map.insert(offset, 1);
                info.taken_map.insert(offset, 1);
            } else {
                info.valid_map.remove(offset, 1);
            }
        }
        (info.valid, info.taken) = (info.valid_map.count(), info.taken_map.count());
        Ok(info)
    }

    fn is_valid(&self, addr: BlockAddr) -> Result<bool, VolumeError> {
        let Some((segment, offset)) = self.geometry.locate(addr) else { return Ok(false) };
        if let Some(owner) = self.changed.lock().get(&addr) {
            return Ok(owner.is_some());
        }
        Ok(bits::msb::test(&self.entry(segment)?.valid_map, offset as usize))
    }

    fn change(&self, addr: BlockAddr, owner: Option<Summary>) -> Result<(), VolumeError> {
        let Some((segment, offset)) = self.geometry.locate(addr) else {
            let (start, end) = (self.geometry.main_blkaddr, self.geometry.main_end());
            return Err(SegmentError::OutsideMain { addr, start, end }.into());
        };
        match (self.is_valid(addr)?, owner) {
            (true, Some(_)) => Err(SegmentError::InUse { addr, segment, offset }.into()),
            (false, None) => Err(SegmentError::NotValid { addr, segment, offset }.into()),
            _ => {
                self.changed.lock().insert(addr, owner);
                Ok(())
            }
        }
    }

    /// Takes a block into use that a synced node names.
    fn adopt(&self, addr: BlockAddr, owner: Summary) -> Result<(), VolumeError> {
        if let Some((segment, _)) = self.geometry.locate(addr) {
            let entry = self.entry(segment)?;
            if let Some(found) = entry.log_type().filter(|log| log.is_node() && entry.valid_blocks() != 0) {
                return Err(SegmentError::LogType { log: LogType::WarmData, segment, found }.into());
            }
        }
        self.change(addr, Some(owner))
    }
}

impl Segments {
    /// The manager.
    ///
    /// # Errors
    /// [`VolumeError::ReadOnly`] for a volume that is open for reading.
    #[inline]
    pub(crate) fn manager(&self) -> Result<&SegmentManager, VolumeError> {
        match self {
            Segments::Managed(manager) => Ok(manager),
            Segments::OnDemand(_) => Err(VolumeError::ReadOnly),
        }
    }

    /// Whether a block is in use; false outside the main area.
    pub(crate) fn is_valid(&self, addr: BlockAddr) -> Result<bool, VolumeError> {
        match self {
            Segments::Managed(manager) => Ok(manager.is_valid(addr)),
            Segments::OnDemand(reader) => reader.is_valid(addr),
        }
    }

    /// A segment's state.
    pub(crate) fn info(&self, segment: SegmentNo) -> Result<SegmentInfo, VolumeError> {
        match self {
            Segments::Managed(manager) => Ok(manager.segment(segment)?),
            Segments::OnDemand(reader) => reader.info(segment),
        }
    }

    /// Segments that are free now, and those that are with the next checkpoint.
    pub(crate) fn free(&self) -> (u32, u32) {
        match self {
            Segments::Managed(manager) => (manager.free_segments(), manager.prefree_segments()),
            Segments::OnDemand(reader) => (reader.free_segments, 0),
        }
    }

    /// The block that a log hands out next.
    pub(crate) fn next_block(&self, log: LogType) -> BlockAddr {
        match self {
            Segments::Managed(manager) => manager.next_block(log),
            Segments::OnDemand(reader) => {
                let (segment, offset) = reader.logs[log.index()];
                reader.geometry.block_at(segment, offset.into())
            }
        }
    }

    /// Takes consecutive blocks out of use.
    #[inline]
    pub(crate) fn invalidate_run(&self, run: Run, now: u64) -> Result<(), VolumeError> {
        match self {
            Segments::Managed(manager) => Ok(manager.invalidate_run(run, now)?),
            Segments::OnDemand(reader) => (0..run.len).try_for_each(|at| reader.change(run.addr.offset(at), None)),
        }
    }

    /// Keeps a block from being written; nothing is written to a volume that is open for reading.
    pub(crate) fn hold(&self, addr: BlockAddr) -> Result<(), VolumeError> {
        match self {
            Segments::Managed(manager) => Ok(manager.hold(addr)?),
            Segments::OnDemand(_) => Ok(()),
        }
    }

    /// Moves the logs out of the way of held blocks.
    pub(crate) fn leave_held(&self) -> Result<(), VolumeError> {
        match self {
            Segments::Managed(manager) => Ok(manager.leave_held()?),
            Segments::OnDemand(_) => Ok(()),
        }
    }

    /// Takes a block into use that a synced node names.
    pub(crate) fn adopt(&self, addr: BlockAddr, owner: Summary, now: u64) -> Result<(), VolumeError> {
        match self {
            Segments::Managed(manager) => Ok(manager.adopt(addr, owner, now)?),
            Segments::OnDemand(reader) => reader.adopt(addr, owner),
        }
    }

    /// The owner of a block that is in use, where the SSA does not know it yet.
    pub(crate) fn newer_owner(&self, addr: BlockAddr, segment: SegmentNo, offset: u32) -> Option<Summary> {
        match self {
            Segments::Managed(manager) => {
                manager.summary(segment).map(|summary: Box<SummaryBlock>| summary.entries[offset as usize])
            }
            Segments::OnDemand(reader) => reader.changed.lock().get(&addr).copied().flatten(),
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
