//! The two halves of a checkpoint.
//!
//! ```text
//!   prepare_checkpoint, beside operations
//!   begin_checkpoint          the owner writes SIT, SSA, pack, flushes         end_checkpoint
//!   freeze changed entries -------------------------------------------------> blocks freed before `begin` may be
//!   old bitmap, old journal stay in force                                      written, prefree segments are free
//! ```
//!
//! `begin_checkpoint` changes nothing that a failure would have to undo: the version bitmap and the journal of the last
//! durable checkpoint stay in force until `end_checkpoint`, and a second `begin_checkpoint` writes again all that the
//! first one wrote. Operations may run between the two halves: blocks that they free are not given out by that
//! `end_checkpoint`.

use std::collections::BTreeSet;

use f2fs_format::sit::RawSitEntry;
use f2fs_format::summary::SummaryBlock;
use f2fs_format::{BLOCKS_PER_SEGMENT, LogType, SegmentNo};
use f2fs_sync::atomic::Ordering;
use f2fs_sync::{protocol_never, protocol_value};

use crate::head::LogState;
use crate::map::BlockMap;
use crate::run::Run;
use crate::segment::Phase;
use crate::sit::{Frozen, Pending, Prepared, SitBlockWrite, build_block, flip, place};
use crate::{SegmentError, SegmentManager};

/// The tables and journals that a checkpoint must write.
#[derive(Clone, Debug)]
pub struct SegmentFlush {
    /// SIT entries for the journal in the cold-data summary: all of it, also the entries that stood there before.
    pub sit_journal: Vec<(SegmentNo, RawSitEntry)>,
    /// Blocks of the SIT.
    pub sit_blocks: Vec<SitBlockWrite>,
    /// The SIT version bitmap for the checkpoint block.
    pub sit_bitmap: Vec<u8>,
    /// The logs.
    pub logs: [LogState; 6],
    /// Summaries for the SSA, of the segments that logs left since the last checkpoint.
    pub summaries: Vec<(SegmentNo, Box<SummaryBlock>)>,
    /// `free_segment_count`: segments without a valid block that no log stands in; the prefree ones are among them.
    pub free_segments: u32,
    /// `valid_block_count` of the main area.
    pub valid_blocks: u64,
}

impl SegmentManager {
    /// How many entries changed since the last [`prepare_checkpoint`](Self::prepare_checkpoint) or
    /// [`begin_checkpoint`](Self::begin_checkpoint).
    #[must_use]
    pub fn changed_entries(&self) -> usize {
        self.dirty.count()
    }

    /// Looks at the entries that changed, for the next checkpoint, while operations go on:
    /// [`begin_checkpoint`](Self::begin_checkpoint) then looks at those alone that changed again since. An owner that
    /// keeps operations out for that call keeps them out for a shorter time.
    pub fn prepare_checkpoint(&self) {
        let mut sit = self.sit.lock();
        let changed = self.dirty.take();
        let segments = self.geometry.main_segments;
        let mut blocks = BTreeSet::new();
        for &segment in &changed {
            // First: a change that comes after this marks the segment again.
            let frozen = self.freeze(segment);
            sit.prepared.frozen.insert(segment, frozen);
            blocks.insert(place(segment).0);
        }
        for index in blocks {
            let block = build_block(index, segments, |segment| self.states.entry(segment));
            sit.prepared.blocks.insert(index, block);
        }
    }

    /// Freezes the state for a checkpoint and says what must be written. At most `journal_capacity` entries go into the
    /// journal (6 fit; 0 writes all into blocks). No other call may run meanwhile.
    ///
    /// # Errors
    /// None at present; reserved for contradictions found on the way.
    pub fn begin_checkpoint(&self, journal_capacity: usize) -> Result<SegmentFlush, SegmentError> {
        let mut sit = self.sit.lock();
        let mut prepared = std::mem::take(&mut sit.prepared);
        let failed: Vec<Frozen> = sit.pending.take().map_or_else(Vec::new, |failed| failed.frozen);
        let entry = |segment| self.states.entry(segment);
        for segment in self.dirty.take().into_iter().chain(failed.iter().map(|frozen| frozen.segment)) {
            if protocol_value!("segment_prepared_is_believed", false, prepared.frozen.contains_key(&segment)) {
                continue;
            }
            prepared.frozen.insert(segment, self.freeze(segment));
            let (block, at) = place(segment);
            if let Some(block) = prepared.blocks.get_mut(&block) {
                block.entries[at] = entry(segment);
            }
        }
        let Prepared { frozen, mut blocks } = prepared;
        let plan = sit.plan(frozen.keys().copied(), journal_capacity);
        let journal: Vec<_> = plan.journal.iter().map(|&segment| (segment, entry(segment))).collect();
        let mut bitmap = sit.bitmap.clone();
        let segments = self.geometry.main_segments;
        let sit_blocks = plan
            .blocks
            .iter()
            .map(|&index| SitBlockWrite {
                index,
                second: flip(&mut bitmap, index),
                block: blocks.remove(&index).unwrap_or_else(|| build_block(index, segments, entry)),
            })
            .collect();
        let logs = LogType::ALL.map(|log| self.log(log));
        let mut lanes = self.lanes.summaries();
        // A lane's segment without a valid block is free to the format.
        let empty_lanes = lanes.iter().filter(|(segment, _)| self.lock(*segment).valid == 0).count();
        let lost = self.free.lost();
        let free_segments = self.free.segments() + self.prefree_segments() + lost + empty_lanes as u32;
        let valid_blocks = self.valid_blocks();
        let frozen = frozen.into_values().collect();
        let (flush, mut summaries) = self.retired.begin_flush();
        summaries.append(&mut lanes);
        let journaled = plan.journal.into_iter().collect();
        let begun = self.begun.fetch_add(1, Ordering::Relaxed) + 1;
        sit.pending = Some(Pending { frozen, bitmap: bitmap.clone(), journaled, flush, begun });
        Ok(SegmentFlush {
            sit_journal: journal,
            sit_blocks,
            sit_bitmap: bitmap,
            logs,
            summaries,
            free_segments,
            valid_blocks,
        })
    }

    fn freeze(&self, segment: SegmentNo) -> Frozen {
        let mut state = self.lock(segment);
        state.dirty = false;
        let freed = state.taken_map.without(&state.valid_map);
        Frozen { segment, freed, prefree: state.phase == Phase::Prefree }
    }

    /// The segments that [`end_checkpoint`](Self::end_checkpoint) will make free, as runs of blocks: nobody writes
    /// there until then. The owner may discard them when the checkpoint is durable, and waits for the device before
    /// that call.
    #[must_use]
    pub fn freed_by_checkpoint(&self) -> Vec<Run> {
        let sit = self.sit.lock();
        let Some(pending) = &sit.pending else { return Vec::new() };
        let freed = |frozen: &&Frozen| frozen.prefree && self.lock(frozen.segment).phase == Phase::Prefree;
        let segments: Vec<SegmentNo> = pending.frozen.iter().filter(freed).map(|frozen| frozen.segment).collect();
        self.runs_of(&segments)
    }

    /// The checkpoint is durable: blocks that were free in it may be written, prefree segments are free. Returns the
    /// segments that became free, as runs of blocks. Does nothing without a
    /// [`begin_checkpoint`](Self::begin_checkpoint).
    pub fn end_checkpoint(&self) -> Vec<Run> {
        let mut sit = self.sit.lock();
        let Some(pending) = sit.pending.take() else { return Vec::new() };
        sit.bitmap = pending.bitmap;
        sit.journaled = pending.journaled;
        let mut freed = Vec::new();
        for frozen in pending.frozen {
            if self.thaw(&frozen) {
                freed.push(frozen.segment);
            }
        }
        self.durable.store(pending.begun, Ordering::Relaxed);
        self.lanes.may_open(pending.begun);
        self.retired.end_flush(pending.flush);
        self.prefree.fetch_sub(freed.len() as u32, Ordering::Relaxed);
        self.free.put(freed.iter().copied());
        self.runs_of(&freed)
    }

    /// Gives the blocks free that were free in the checkpoint; tells whether the whole segment is.
    fn thaw(&self, frozen: &Frozen) -> bool {
        let mut state = self.lock(frozen.segment);
        if frozen.freed != BlockMap::EMPTY {
            // Blocks taken since are not among them: they could not be, as they were still taken.
            state.taken_map = state.taken_map.without(&frozen.freed);
            protocol_never!("segment_thaw_frees_later_ones", state.taken_map = state.valid_map);
            state.taken = state.taken_map.count() as u16;
        }
        let becomes_free =
            protocol_value!("segment_thaw_releases_later_ones", frozen.prefree, true) && state.phase == Phase::Prefree;
        if becomes_free {
            state.phase = Phase::Free;
            state.victim = false;
        }
        if state.phase != Phase::Current {
            self.changed.note(frozen.segment, &mut state);
        }
        becomes_free
    }

    pub(crate) fn runs_of(&self, segments: &[SegmentNo]) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        for &segment in segments {
            let addr = self.geometry.block_at(segment, 0);
            match runs.last_mut() {
                Some(last) if last.addr.offset(last.len) == addr => last.len += BLOCKS_PER_SEGMENT,
                _ => runs.push(Run { addr, len: BLOCKS_PER_SEGMENT }),
            }
        }
        runs
    }
}
