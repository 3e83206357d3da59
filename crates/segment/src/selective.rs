//! Selective partial cleaning on a volume: rewriting runs within a request, and moving runs ahead of one.

use f2fs_format::summary::Summary;
use f2fs_format::{BLOCKS_PER_SEGMENT, LogType, SegmentNo};

use crate::head::AllocType;
use crate::index::preferences;
use crate::plan::{Choice, Gap, Layout, Planner};
use crate::run::{Run, Sink};
use crate::segment::Phase;
use crate::{Class, SegmentError, SegmentManager};

/// Segments that are looked at for runs to move, at most.
const LOOKED_AT: usize = 64;
/// Of these, how many with runs are planned for, at most: if their runs are not worth it, others' are hardly.
const PLANNED: usize = 4;

impl SegmentManager {
    /// As [`allocate_as`](Self::allocate_as), but where the log writes into holes, the planner says which of the valid
    /// runs between them are worth being rewritten in their place. They are appended to `rewrites`, in ascending order
    /// within a segment; each lies between two of the new runs. The caller reads them and writes the same bytes in one
    /// request with the new blocks on both sides.
    ///
    /// Runs are never moved here, whatever the planner allows. They are rewritten only in a segment that had not been
    /// written to since the last durable checkpoint began when the log took it; what such a checkpoint finds handed out
    /// must have been written when [`begin_checkpoint`](Self::begin_checkpoint) is called. All of their blocks are valid
    /// now: the place of one that is free already may be another's when a checkpoint ends.
    ///
    /// # Errors
    /// As there; then nothing is appended to `rewrites` either.
    #[allow(clippy::too_many_arguments)]
    pub fn allocate_selective(
        &self,
        class: Class,
        log: LogType,
        summaries: &[Summary],
        now: u64,
        planner: &Planner,
        runs: &mut Vec<Run>,
        rewrites: &mut Vec<Run>,
    ) -> Result<(), SegmentError> {
        let planner = planner.without_moves();
        self.take_from_log(class, log, summaries, now, &mut Sink::selective(runs, &planner, rewrites))
    }

    /// Marks a dirty segment that a log could take next, and returns the runs of it that a request of `request` blocks
    /// would rather have moved away: of the segments with the most room the first one that has such runs. The caller
    /// moves them to the cold log (as [`Class::Cleaner`]) and frees their old places; after the next durable checkpoint
    /// they are holes, and [`release_segment`](Self::release_segment) lets the logs have the segment. `None`: none of
    /// them is worth it, or the planner's [bound](Planner::at_most) does not allow it.
    #[must_use]
    pub fn preclean(&self, log: LogType, planner: &Planner, request: u32) -> Option<(SegmentNo, Vec<Run>)> {
        let mut index = self.fresh_index();
        let planned = planner.priced();
        // Those with the most room are often single holes, with nothing in the way.
        let candidates: Vec<SegmentNo> = index.by_room(log).take(LOOKED_AT).collect();
        let mut left = PLANNED;
        candidates.into_iter().find_map(|segment| {
            let mut state = self.lock(segment);
            if state.phase != Phase::Dirty || state.victim || left == 0 {
                return None;
            }
            let mut layout = Layout::new();
            layout.push_segment(&state.taken_map, 0);
            if layout.gaps().is_empty() {
                return None;
            }
            left -= 1;
            // Blocks that were freed already need no moving: they are a hole after the checkpoint anyway.
            let valid = state.valid_map;
            let mut moves: Vec<Run> = runs_to_move(&state.taken_map, &layout, &planned, request)
                .into_iter()
                .flat_map(|(start, len)| valid.runs(true).filter_map(move |run| overlap(run, (start, len))))
                .map(|(start, len)| Run { addr: self.geometry.block_at(segment, start), len })
                .collect();
            moves.truncate(planner.pay_for(&moves.iter().map(|run| run.len).collect::<Vec<_>>()));
            if moves.is_empty() {
                return None;
            }
            state.victim = true;
            index.update(segment, &mut state);
            Some((segment, moves))
        })
    }

    /// Takes the mark of [`preclean`](Self::preclean) off a segment.
    ///
    /// # Errors
    /// [`SegmentError::OutsideTable`].
    pub fn release_segment(&self, segment: SegmentNo) -> Result<(), SegmentError> {
        self.check(segment)?;
        // A segment that was never used is not marked.
        if let Some(state) = self.states.get(segment) {
            let mut state = state.lock();
            state.victim = false;
            self.changed.note(segment, &mut state);
        }
        Ok(())
    }

    /// The mean length of the holes that a log writes into, in blocks: for the cold-data log, the planner's `H_cold`.
    /// Of a log that writes in order, the rest of its segment; but if holes are next, those of the segment that it
    /// would take: what is left of one segment says little about the cost of many blocks.
    #[must_use]
    pub fn mean_hole(&self, log: LogType) -> f64 {
        let (segment, next, alloc) = {
            let head = self.head(log);
            (head.segment, head.next, head.alloc)
        };
        let mean = |segment: SegmentNo, from: u32| {
            let mut layout = Layout::new();
            layout.push_segment(&self.lock(segment).taken_map, from);
            layout.room() as f64 / layout.holes().len().max(1) as f64
        };
        if alloc == AllocType::Ssr {
            return mean(segment, next);
        }
        let ahead = if self.may_fill && self.need_ssr() {
            let index = self.fresh_index();
            preferences(log).into_iter().find_map(|kind| index.roomiest(kind))
        } else {
            None
        };
        match ahead {
            Some(segment) => mean(segment, 0).max(1.0),
            None => f64::from(BLOCKS_PER_SEGMENT - next),
        }
    }
}

/// The runs that are moved out of the way of a request, as start and length.
fn runs_to_move(taken: &crate::BlockMap, layout: &Layout, planner: &Planner, request: u32) -> Vec<(u32, u32)> {
    let choices = planner.plan(layout, request);
    let mut at = taken.next(0, false).unwrap_or(BLOCKS_PER_SEGMENT);
    let mut moves = Vec::new();
    for ((hole, gap), choice) in layout.holes().iter().zip(layout.gaps()).zip(choices) {
        at += hole;
        if let (Gap::Valid(len), Choice::Partial) = (*gap, choice) {
            moves.push((at, len));
        }
        at += gap.blocks();
    }
    moves
}

/// The common part of two ranges, as start and length.
fn overlap(a: (u32, u32), b: (u32, u32)) -> Option<(u32, u32)> {
    let start = a.0.max(b.0);
    let end = (a.0 + a.1).min(b.0 + b.1);
    (start < end).then(|| (start, end - start))
}
