//! Moved blocks among others of their age (`AT_SSR`, `get_atssr_segment` in `fs/f2fs/segment.c`).
//!
//! Age-threshold cleaning takes old sections. In the cold log, blocks of different ages would be freed at different
//! times and fragment the log. So they go into the holes of a dirty segment of the same log whose blocks are about as
//! old, the fullest of those: fragments of an age are merged. The blocks keep their age, for the segment's sake.
//!
//! ```text
//!                    claim_aged: fullest dirty segment near the victim's age      its last hole is filled, or
//!    closed  ------------------------------------------------------------> open   space is short (`close_lanes`)
//!      ^                                                                     |
//!      +---------------------------------------------------------------------+
//! ```
//!
//! # Locking
//!
//! The open segment is one more lane (see `lanes`): behind a lock of its own, taken before the index; a dirty segment
//! to a checkpoint, which writes its summary. It is released before the rest goes to the cold log. A thread that claims
//! a segment looks at it once more under its lock: it may have lost its last block since the index was brought up to
//! date.

use f2fs_format::summary::Summary;
use f2fs_format::{BLOCKS_PER_SEGMENT, LogType, SegmentNo};
use f2fs_sync::protocol_value;

use crate::head::{AllocType, Head};
use crate::run::{Run, Sink};
use crate::segment::Phase;
use crate::{Class, SegmentError, SegmentManager};

impl SegmentManager {
    /// Takes one block for each summary for data that a cleaner moves out of segment `from`, among data of the same log
    /// and of about the same age, as far as there are segments with holes; the rest from the cold-data log. Appends
    /// their places to `runs`, in the order of the summaries, and returns how many are among blocks of their age. All
    /// or nothing. `now` is for the cold-data log: elsewhere blocks keep their age.
    ///
    /// # Errors
    /// As [`allocate_as`](Self::allocate_as) for the cold-data log; [`SegmentError::OutsideTable`] for `from`, and
    /// [`SegmentError::WrongLog`] if it is a segment of nodes.
    pub fn allocate_aged(
        &self,
        from: SegmentNo,
        summaries: &[Summary],
        now: u64,
        runs: &mut Vec<Run>,
    ) -> Result<usize, SegmentError> {
        self.check(from)?;
        let (log, age) = {
            let state = self.lock(from);
            (state.log, state.mtime)
        };
        if log.is_node() {
            return Err(SegmentError::WrongLog { log, expected: "data" });
        }
        let first = runs.len();
        let result = self.fill_aged(log, age, summaries, runs).and_then(|taken| match &summaries[taken..] {
            [] => Ok(taken),
            rest => self.allocate_as(Class::Cleaner, LogType::ColdData, rest, now, runs).map(|()| taken),
        });
        if result.is_err() {
            for run in runs.drain(first..) {
                self.invalidate_run(run, age)?;
            }
        }
        result
    }

    /// Takes blocks as long as there are segments; tells how many.
    fn fill_aged(
        &self,
        log: LogType,
        age: u64,
        summaries: &[Summary],
        runs: &mut Vec<Run>,
    ) -> Result<usize, SegmentError> {
        let mut slot = self.lanes.aged().lock();
        let mut sink = Sink::new(runs);
        let mut taken = 0;
        while taken < summaries.len() {
            if slot.is_none() {
                *slot = self.claim_aged(log, age)?;
            }
            let Some(head) = slot.as_mut() else { break };
            taken += self.fill(head, &summaries[taken..], age, &mut sink)?;
            if head.next == BLOCKS_PER_SEGMENT
                && let Some(full) = slot.take()
            {
                self.leave(full.segment, full.summary);
            }
        }
        Ok(taken)
    }

    fn claim_aged(&self, log: LogType, age: u64) -> Result<Option<Head>, SegmentError> {
        if !self.may_fill {
            return Ok(None);
        }
        let Some((segment, next)) = self.claim_near(log, age) else { return Ok(None) };
        let summary = self.summary_to_go_on(segment, log)?;
        // A rewritten block lies in the way of a user's request, never of the cleaner's.
        Ok(Some(Head { segment, next, alloc: AllocType::Ssr, settled: false, summary }))
    }

    fn claim_near(&self, log: LogType, age: u64) -> Option<(SegmentNo, u32)> {
        let mut index = self.fresh_index();
        if !index.has_neighbours() {
            index.sort_neighbours(|segment| self.lock(segment));
        }
        while let Some(segment) = index.fullest_near(log, age) {
            let mut state = self.lock(segment);
            let next = state.taken_map.next(0, false);
            let fits = state.phase == Phase::Dirty && !state.victim && state.log == log;
            if let Some(next) = next.filter(|_| protocol_value!("segment_aged_claims_unseen", fits, true)) {
                state.phase = Phase::Current;
                index.update(segment, &mut state);
                return Some((segment, next));
            }
            index.update(segment, &mut state);
        }
        None
    }
}
