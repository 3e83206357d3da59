//! Segment summaries: does each block's entry name the node, and the slot, that refer to it?
//!
//! # Locking rules
//!
//! A direct-mapped cache of SSA blocks, one mutex a slot, held to look or to store and never across a read. Two threads
//! may read the same summary twice; it is the same. It is filled before the walk, in large requests, as far as it
//! reaches. Most lookups do not get here: a [`SummaryCursor`] keeps the last one.

use f2fs_format::feature::Features;
use f2fs_format::summary::{SummaryBlock, TYPE_DATA, TYPE_NODE};
use f2fs_format::{BlockAddr, Geometry, LogType, Nid, RawBlock, SegmentNo};
use f2fs_sync::{Arc, Mutex};
use rayon::prelude::*;

use super::error::CheckError;
use super::finding::{FindingKind, Place};
use super::subject::Subject;

/// Summaries that are kept: 4 MiB.
const SLOTS: usize = 1024;
/// SSA blocks that one task reads together.
const BATCH: usize = 256;

type Slot = Mutex<Option<(SegmentNo, Arc<SummaryBlock>)>>;

/// The summaries of all segments: those of the logs from the pack, the others from the SSA.
#[derive(Debug)]
pub(super) struct Summaries {
    /// Segment and summary of each log; none where the pack leaves it to the node footers.
    logs: [(SegmentNo, Option<Arc<SummaryBlock>>); 6],
    slots: Vec<Slot>,
    /// A read-only volume has no SSA to speak of.
    absent: bool,
}

/// The summary that was looked at last.
#[derive(Debug, Default)]
pub(super) struct SummaryCursor {
    last: Option<(SegmentNo, Option<Arc<SummaryBlock>>)>,
}

impl Summaries {
    pub(super) fn new(mut logs: [(SegmentNo, Option<Arc<SummaryBlock>>); 6], geometry: &Geometry) -> Summaries {
        // A log that is not in use stands nowhere, whatever the pack says.
        let unused = LogType::ALL.into_iter().zip(&mut logs).filter(|(log, _)| !geometry.has_log(*log));
        unused.for_each(|(_, (segment, _))| *segment = SegmentNo::NULL);
        let slots = (0..SLOTS).map(|_| Mutex::new(None)).collect();
        Summaries { logs, slots, absent: geometry.features.contains(Features::READONLY) }
    }

    /// The segments of the logs.
    pub(super) fn log_segments(&self) -> [SegmentNo; 6] {
        LogType::ALL.map(|log| self.logs[log.index()].0)
    }

    /// The summary of a segment; `None` if there is none to check against.
    fn get(&self, subject: &Subject<'_>, segment: SegmentNo) -> Result<Option<Arc<SummaryBlock>>, CheckError> {
        if let Some((_, summary)) = self.logs.iter().find(|(log, _)| *log == segment) {
            return Ok(summary.clone());
        }
        if let Some(summary) = self.kept(segment) {
            return Ok(Some(summary));
        }
        let block = subject.source.block(subject.geometry.summary_block(segment))?;
        Ok(Some(self.keep(segment, block.block(0))))
    }

    /// The summary of a segment, if the cache has it.
    fn kept(&self, segment: SegmentNo) -> Option<Arc<SummaryBlock>> {
        let slot = self.slots[segment.index() % SLOTS].lock();
        slot.as_ref().filter(|(kept, _)| *kept == segment).map(|(_, summary)| Arc::clone(summary))
    }

    fn keep(&self, segment: SegmentNo, block: &RawBlock) -> Arc<SummaryBlock> {
        let summary = Arc::new(*SummaryBlock::read(block));
        *self.slots[segment.index() % SLOTS].lock() = Some((segment, Arc::clone(&summary)));
        summary
    }

    /// Segments with valid blocks that are no log's, and whether they hold nodes.
    fn used(&self, subject: &Subject<'_>) -> Vec<(SegmentNo, bool)> {
        let logs = self.log_segments();
        let used = |segment: u32| {
            let segment = SegmentNo(segment);
            let sort = subject.sit.get(segment).log_type().filter(|_| !logs.contains(&segment))?;
            (subject.sit.get(segment).valid_blocks() > 0).then_some((segment, sort.is_node()))
        };
        subject.sit.segments().filter_map(used).collect()
    }

    /// Fills the cache with the summaries of segments in use, the first ones that have room beside each other.
    pub(super) fn fill(&self, subject: &Subject<'_>) -> Result<(), CheckError> {
        if self.absent {
            return Ok(());
        }
        let mut free = vec![true; SLOTS];
        let mut segments: Vec<SegmentNo> = self.used(subject).into_iter().map(|(segment, _)| segment).collect();
        segments.retain(|segment| std::mem::take(&mut free[segment.index() % SLOTS]));
        segments.par_chunks(BATCH).try_for_each(|part| {
            let addrs: Vec<BlockAddr> = part.iter().map(|segment| subject.geometry.summary_block(*segment)).collect();
            let blocks = subject.source.blocks(&addrs)?;
            part.iter().zip(blocks.iter()).for_each(|(segment, block)| drop(self.keep(*segment, block)));
            Ok(())
        })
    }

    /// The entry of a block.
    fn entry(
        &self,
        subject: &Subject<'_>,
        cursor: &mut SummaryCursor,
        addr: BlockAddr,
    ) -> Result<Option<f2fs_format::summary::Summary>, CheckError> {
        let Some((segment, offset)) = subject.segment_of(addr).filter(|_| !self.absent) else { return Ok(None) };
        if cursor.last.as_ref().is_none_or(|(last, _)| *last != segment) {
            cursor.last = Some((segment, self.get(subject, segment)?));
        }
        let summary = cursor.last.as_ref().and_then(|(_, summary)| summary.as_ref());
        Ok(summary.map(|summary| summary.entries[offset as usize]))
    }

    /// Checks the entry of a node's block. Only the NID counts: neither the kernel nor fsck.f2fs use the rest of it.
    pub(super) fn check_node(
        &self,
        subject: &Subject<'_>,
        cursor: &mut SummaryCursor,
        addr: BlockAddr,
        nid: Nid,
    ) -> Result<(), CheckError> {
        if let Some(entry) = self.entry(subject, cursor, addr)? {
            let place = Place::Block(addr);
            let found = entry.nid.get().into();
            subject.findings.expect(FindingKind::Summary, &place, "nid of the summary entry", nid.0.into(), found);
        }
        Ok(())
    }

    /// Checks the entry of a data block: node, version of its NAT entry, and slot.
    pub(super) fn check_data(
        &self,
        subject: &Subject<'_>,
        cursor: &mut SummaryCursor,
        addr: BlockAddr,
        owner: (Nid, u8, u32),
    ) -> Result<(), CheckError> {
        let (nid, version, slot) = owner;
        if let Some(entry) = self.entry(subject, cursor, addr)? {
            let fields = [
                ("nid of the summary entry", nid.0, entry.nid.get()),
                ("version of the summary entry", version.into(), entry.version.into()),
                ("slot of the summary entry", slot, entry.ofs_in_node.get().into()),
            ];
            for (what, expected, found) in fields {
                let place = Place::Block(addr);
                subject.findings.expect(FindingKind::Summary, &place, what, expected.into(), found.into());
            }
        }
        Ok(())
    }

    /// Checks the type of every summary: of the logs, and of segments with valid blocks.
    pub(super) fn check_types(&self, subject: &Subject<'_>) -> Result<(), CheckError> {
        if self.absent {
            return Ok(());
        }
        let check = |place: Place, is_node: bool, summary: &SummaryBlock| {
            let expected = if is_node { TYPE_NODE } else { TYPE_DATA };
            let (what, found) = ("type of the summary", summary.entry_type.into());
            subject.findings.expect(FindingKind::Summary, &place, what, expected.into(), found);
        };
        for (log, (_, summary)) in LogType::ALL.into_iter().zip(&self.logs) {
            if let Some(summary) = summary {
                check(Place::Log(log), log.is_node(), summary);
            }
        }
        self.used(subject).par_chunks(BATCH).try_for_each(|part| {
            let mut missing = Vec::with_capacity(part.len());
            for (segment, is_node) in part {
                match self.kept(*segment) {
                    Some(summary) => check(Place::Segment(*segment), *is_node, &summary),
                    None => missing.push((*segment, *is_node)),
                }
            }
            let addr = |(segment, _): &(SegmentNo, bool)| subject.geometry.summary_block(*segment);
            let blocks = subject.source.blocks(&missing.iter().map(addr).collect::<Vec<BlockAddr>>())?;
            for ((segment, is_node), block) in missing.iter().zip(blocks.iter()) {
                check(Place::Segment(*segment), *is_node, SummaryBlock::read(block));
            }
            Ok(())
        })
    }
}
