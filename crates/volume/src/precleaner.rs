//! The precleaner: moves valid runs of dirty segments out of the way of later writes, and plans writes into their holes.
//!
//! ```text
//!   segment cleared ──► nobody's until a checkpoint is durable ──► its log's: `prepared` blocks more to write before the next step
//! ```
//!
//! # Locking
//!
//! `cleared` is the last in the order of locks. The counts are hints: updates of concurrent writers that get lost change when the
//! next step is due, and nothing else.

use f2fs_format::{BLOCKS_PER_SEGMENT, LogType, Nid, SegmentNo};
use f2fs_segment::SegmentManager;
use f2fs_segment::plan::Planner;
use f2fs_sync::Mutex;
use f2fs_sync::atomic::{AtomicI64, AtomicU64, Ordering};

use crate::flight::Destination;
use crate::write_stat::Count;
use crate::{Allocation, Volume, VolumeError};

/// Segments cleared for later writes in one step.
const STEP: usize = 16;

/// The planner of writes into holes, and the segments that were cleared for them.
#[derive(Debug)]
pub(crate) struct Precleaner {
    /// `None`: valid runs in the way of a write are skipped.
    planner: Option<Planner>,
    /// The mean length of users' writes, each weighted by its blocks.
    request_blocks: AtomicU64,
    /// Blocks that the segments cleared last have room for, less what was written since.
    prepared: AtomicI64,
    /// Segments cleared since the last checkpoint.
    cleared: Mutex<Vec<SegmentNo>>,
}

impl Precleaner {
    pub(crate) fn new(allocation: &Allocation) -> Precleaner {
        Precleaner {
            planner: allocation.planner(1.0),
            // Long until it is known better: moving runs out of the way is for long writes.
            request_blocks: AtomicU64::new(BLOCKS_PER_SEGMENT.into()),
            prepared: AtomicI64::new(0),
            cleared: Mutex::new(Vec::new()),
        }
    }

    /// The planner of writes into holes; `None` if there is nothing to choose.
    pub(crate) fn planner(&self) -> Option<&Planner> {
        self.planner.as_ref()
    }

    /// Keeps the mean length of requests, each weighted by its blocks, and what is left of the segments cleared for them.
    pub(crate) fn note_request(&self, blocks: u64, into_holes: impl FnOnce() -> bool) {
        const WEIGHT: u64 = 4096;
        if self.planner.is_none() {
            return;
        }
        let blocks = blocks.min(WEIGHT);
        let mean = self.request_blocks.load(Ordering::Relaxed);
        let next = (mean * (WEIGHT - blocks) + blocks * blocks).div_ceil(WEIGHT);
        self.request_blocks.store(next, Ordering::Relaxed);
        if into_holes() {
            self.prepared.fetch_sub(blocks as i64, Ordering::Relaxed);
        }
    }

    /// The mean length of a request, at most a segment.
    fn mean_request(&self) -> u32 {
        self.request_blocks.load(Ordering::Relaxed).clamp(1, u64::from(BLOCKS_PER_SEGMENT)) as u32
    }

    /// Whether what was cleared is used up.
    pub(crate) fn is_due(&self, segments: &SegmentManager) -> bool {
        self.planner.is_some() && segments.need_ssr() && self.prepared.load(Ordering::Relaxed) <= 0
    }

    /// So many blocks may be written until the next step is due.
    fn set_prepared(&self, blocks: i64) {
        self.prepared.store(blocks, Ordering::Relaxed);
    }

    /// Segments were cleared: they are nobody's until a checkpoint is durable.
    fn clear_until_checkpoint(&self, segments: &mut Vec<SegmentNo>) {
        self.cleared.lock().append(segments);
    }

    /// Takes the segments that were cleared: the logs may have them when the checkpoint that is being frozen is durable.
    pub(crate) fn take_cleared(&self) -> Vec<SegmentNo> {
        core::mem::take(&mut *self.cleared.lock())
    }
}

impl Volume {
    /// Moves valid runs of dirty segments out of the way of later writes, where the volume's [`Allocation`](crate::Allocation)
    /// finds that worth it, with operations running. The places can be used after the next checkpoint; write one soon, since
    /// the segments are nobody's until then. Returns how many blocks were moved.
    ///
    /// # Errors
    /// As [`clean_step`](Self::clean_step).
    pub fn preclean_step(&self) -> Result<u64, VolumeError> {
        let Some(planner) = self.precleaner.planner() else { return Ok(0) };
        let op = self.begin()?;
        // Written by then, this step is due again: also if it finds nothing now.
        let mut prepared = i64::from(BLOCKS_PER_SEGMENT) * STEP as i64;
        let mut moved = 0;
        let planner = planner.clone().with_cold_hole(self.segments.manager()?.mean_hole(LogType::ColdData));
        let request = self.precleaner.mean_request();
        let mut cleared = Vec::new();
        while cleared.len() < STEP && self.segments.manager()?.free_sections() > self.step_floor() {
            let Some((segment, runs)) = self.segments.manager()?.preclean(LogType::WarmData, &planner, request) else {
                break;
            };
            cleared.push(segment);
            let offsets: Vec<u32> = runs
                .iter()
                .filter_map(|run| self.geometry.locate(run.addr).map(|(_, at)| at..at + run.len))
                .flatten()
                .collect();
            let result = self.summary_of(segment).and_then(|summary| {
                let owners: Vec<Nid> = offsets.iter().map(|at| summary.entries[*at as usize].nid.into()).collect();
                self.prefetch(&owners);
                self.relocate_data(&op, segment, &offsets, &summary, Count::Precleaned, Destination::ColdLog)
            });
            match result {
                Ok(done) => moved += done.moved,
                Err(error) if error.is_no_space() => break,
                Err(error) => {
                    self.precleaner.clear_until_checkpoint(&mut cleared);
                    return Err(error);
                }
            }
        }
        if !cleared.is_empty() {
            let room =
                |segment: &_| self.segments.info(*segment).map_or(0, |info| i64::from(BLOCKS_PER_SEGMENT - info.valid));
            prepared = cleared.iter().map(room).sum();
        }
        self.written.add(Count::PrecleanedSegments, cleared.len() as u64);
        self.precleaner.clear_until_checkpoint(&mut cleared);
        self.precleaner.set_prepared(prepared);
        self.pressure.tell(&self.store, &self.segments);
        Ok(moved)
    }
}
