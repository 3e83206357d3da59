//! The cleaner: makes free segments out of segments with few valid blocks.
//!
//! It works within a checkpoint, with the gate closed: nothing else runs, so a block that is moved cannot be read, written
//! or freed meanwhile. Directories have written their blocks by then, so what stands on the device is what is in memory.
//!
//! ```text
//! gate closed -> above -> { victim: nodes become dirty, data blocks are read and written to the cold log } ... -> checkpoint
//!      ^                                                                                                            |
//!      +--------------------- again, while it frees more than it takes and the goal is not reached ----------------+
//! ```
//!
//! A victim is free only after the checkpoint that no longer speaks of its blocks is durable; until then both copies of a
//! moved block exist. So no crash loses one.

use f2fs_device::AlignedBuf;
use f2fs_format::node::ADDRS_PER_BLOCK;
use f2fs_format::summary::{Summary, SummaryBlock};
use f2fs_format::{BLOCKS_PER_SEGMENT, BlockAddr, LogType, Nid, SegmentNo};
use f2fs_segment::{Class, Victim, VictimPolicy};
use f2fs_sync::atomic::Ordering;

use crate::blocks::{read_block, read_each};
use crate::{Node, Op, Reason, Volume, VolumeError};

/// What a cleaning did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CleanReport {
    /// Sections emptied.
    pub victims: u64,
    /// Data blocks moved.
    pub data_blocks: u64,
    /// Node blocks moved.
    pub node_blocks: u64,
    /// Checkpoints written.
    pub checkpoints: u64,
    /// Free segments at the end.
    pub free_segments: u32,
}

/// A data block of a victim, with its owner.
struct Moved {
    node: Node,
    slot: usize,
    from: BlockAddr,
}

impl Volume {
    /// Cleans until `goal` segments are free, or cleaning gains nothing more. `above` is as in
    /// [`checkpoint_with`](Self::checkpoint_with); at least one checkpoint is written.
    ///
    /// # Errors
    /// As [`checkpoint_with`](Self::checkpoint_with). A block that cannot be read or moved is an error, too; that one does not
    /// stop the volume.
    pub fn clean_with<E: From<VolumeError>>(
        &self,
        goal: u32,
        above: impl FnOnce(&Op<'_>) -> Result<(), E>,
    ) -> Result<CleanReport, E> {
        let mut report = CleanReport::default();
        self.alone(above, |op, state| {
            loop {
                let before = self.segments.free_segments();
                let victims = self.clean_round(op, goal, &mut report)?;
                self.write_checkpoint(Reason::Sync, state)?;
                report.checkpoints += 1;
                let after = self.segments.free_segments();
                if after >= goal || victims == 0 || after <= before {
                    break;
                }
            }
            report.free_segments = self.segments.free_segments();
            if report.free_segments < goal {
                // Nothing more can be gained until blocks are freed.
                self.futile.store(self.space.blocks(), Ordering::Relaxed);
            }
            Ok(())
        })?;
        Ok(report)
    }

    /// Empties victims as far as there is room to move their blocks to; returns how many.
    fn clean_round(&self, op: &Op<'_>, goal: u32, report: &mut CleanReport) -> Result<u64, VolumeError> {
        let section = self.geometry.segs_per_sec * BLOCKS_PER_SEGMENT;
        let mut victims = 0;
        let mut moved: u64 = 0;
        let mut gained: u64 = 0;
        loop {
            let free = u64::from(self.segments.free_segments()) * u64::from(BLOCKS_PER_SEGMENT);
            // What is dirty must fit as well, and each log leaves a segment unfinished.
            let room = free.saturating_sub(self.store.dirty() + 3 * u64::from(section));
            let wanted = u64::from(goal) * u64::from(BLOCKS_PER_SEGMENT);
            if free + gained >= wanted {
                return Ok(victims);
            }
            let Some(victim) = self.segments.choose_victim(VictimPolicy::Greedy, self.clock.now()) else {
                return Ok(victims);
            };
            // A section that is nearly full costs as much as it gives.
            let worth = u64::from(victim.valid) * 64 < u64::from(section) * 63;
            if !worth || u64::from(victim.valid) > room {
                self.segments.release_victim(&victim)?;
                return Ok(victims);
            }
            // What was moved until an error came is whole: each block is written before its slot changes.
            let emptied = self.empty(op, &victim, report);
            if !matches!(emptied, Ok(true)) {
                self.segments.release_victim(&victim)?;
            }
            if emptied? {
                victims += 1;
                report.victims += 1;
                moved += u64::from(victim.valid);
                gained += u64::from(section - victim.valid.min(section));
            } else {
                return Ok(victims);
            }
            if moved >= room {
                return Ok(victims);
            }
        }
    }

    /// Moves what is valid in a victim. False: its tables contradict each other, or there is no room; the rest of it is left
    /// as it is.
    fn empty(&self, op: &Op<'_>, victim: &Victim, report: &mut CleanReport) -> Result<bool, VolumeError> {
        for segment in victim.segments() {
            let info = self.segments.segment(segment)?;
            if info.valid == 0 {
                continue;
            }
            let summary = match self.segments.summary(segment) {
                Some(summary) => summary,
                None => self.read_summary(segment)?,
            };
            let offsets: Vec<u32> = info.valid_map.runs(true).flat_map(|(start, len)| start..start + len).collect();
            let owners: Vec<Nid> = offsets.iter().map(|at| summary.entries[*at as usize].nid.into()).collect();
            self.prefetch(&owners);
            let whole = if info.log.is_node() {
                self.move_nodes(op, segment, &offsets, &summary, report)?
            } else {
                self.move_data(op, segment, &offsets, &summary, report)?
            };
            if !whole {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn read_summary(&self, segment: SegmentNo) -> Result<Box<SummaryBlock>, VolumeError> {
        let buf = read_block(&*self.device, self.geometry.summary_block(segment))?;
        Ok(Box::new(*SummaryBlock::read(buf.block(0))))
    }

    /// Nodes move by being written back: they only have to become dirty.
    fn move_nodes(
        &self,
        op: &Op<'_>,
        segment: SegmentNo,
        offsets: &[u32],
        summary: &SummaryBlock,
        report: &mut CleanReport,
    ) -> Result<bool, VolumeError> {
        for offset in offsets {
            let nid: Nid = summary.entries[*offset as usize].nid.into();
            let here = self.geometry.block_at(segment, *offset);
            if !self.nat.get(nid).is_ok_and(|entry| entry.addr == here) {
                return Ok(false);
            }
            let Ok(node) = self.node(nid) else { return Ok(false) };
            drop(node.write(op));
            report.node_blocks += 1;
        }
        Ok(true)
    }

    fn move_data(
        &self,
        op: &Op<'_>,
        segment: SegmentNo,
        offsets: &[u32],
        summary: &SummaryBlock,
        report: &mut CleanReport,
    ) -> Result<bool, VolumeError> {
        let features = self.features();
        let mut blocks = Vec::with_capacity(offsets.len());
        let mut summaries = Vec::with_capacity(offsets.len());
        for offset in offsets {
            let entry = summary.entries[*offset as usize];
            let from = self.geometry.block_at(segment, *offset);
            let slot = usize::from(entry.ofs_in_node.get());
            let Ok(node) = self.node(entry.nid.into()) else { return Ok(false) };
            if slot >= ADDRS_PER_BLOCK || node.read().address(slot, features) != Some(from) {
                return Ok(false);
            }
            summaries.push(Summary::new(node.nid(), self.node_version(node.nid())?, entry.ofs_in_node.get()));
            blocks.push(Moved { node, slot, from });
        }
        let addrs: Vec<BlockAddr> = blocks.iter().map(|block| block.from).collect();
        let mut data = AlignedBuf::new(blocks.len());
        read_each::<VolumeError>(&*self.device, &addrs, |index, block| {
            data.block_mut(index).copy_from_slice(block);
            Ok(())
        })?;
        let runs = match self.write_as(Class::Cleaner, LogType::ColdData, &summaries, data) {
            Err(error) if error.is_no_space() => return Ok(false),
            runs => runs?,
        };
        let mut fresh = runs.iter().flat_map(|run| (0..run.len).map(|i| run.addr.offset(i)));
        for block in &blocks {
            let to = fresh.next().unwrap_or(BlockAddr::NULL);
            block.node.write(op).set_address(block.slot, to, features);
            self.count_move(op, block.node.ino());
            self.invalidate(op, block.from)?;
            self.forget_extent(op, block.node.ino())?;
        }
        report.data_blocks += blocks.len() as u64;
        Ok(true)
    }

    /// The largest extent that an inode caches may speak of a block that moved.
    fn forget_extent(&self, op: &Op<'_>, ino: Nid) -> Result<(), VolumeError> {
        let inode = self.node(ino)?;
        if inode.read().inode().i_ext.len.get() != 0 {
            let mut block = inode.write(op);
            let extent = &mut block.inode_mut().i_ext;
            extent.len = 0.into();
            extent.fofs = 0.into();
            extent.blk_addr = 0.into();
        }
        Ok(())
    }
}
