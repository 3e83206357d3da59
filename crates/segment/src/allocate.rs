//! Blocks are taken and freed.
//!
//! A call locks its log, then makes sure of every segment that it will need, and only then takes the first block: so it
//! is all or nothing. A log never rests on a full segment (a node's footer names the block that its log hands out
//! next), so a call needs the segment behind its last block, too.

use f2fs_format::summary::{Summary, SummaryBlock};
use f2fs_format::{BLOCKS_PER_SEGMENT, BlockAddr, LogType, SegmentNo};
use f2fs_sync::atomic::Ordering;
use f2fs_sync::{protocol_never, protocol_step, protocol_value};

use crate::head::{AllocType, Head, entry_type};
use crate::plan::Choice;
use crate::run::{Run, Sink};
use crate::segment::{Phase, Segment};
use crate::{Class, NodeLog, SegmentError, SegmentManager};

impl SegmentManager {
    /// Takes one block for each summary, in their order, from one log, for user data ([`Class::User`]) or for nodes
    /// ([`Class::Checkpoint`]), and appends where they are to `runs`: as few runs as possible. All or nothing.
    ///
    /// `now` is the time for the segments' `mtime`, in seconds.
    ///
    /// # Errors
    /// [`SegmentError::NoSpace`]; [`SegmentError::Source`] if the summary of a segment with holes could not be read;
    /// [`SegmentError::InUse`] and [`SegmentError::Phase`] if the tables contradict each other.
    pub fn allocate(
        &self,
        log: LogType,
        summaries: &[Summary],
        now: u64,
        runs: &mut Vec<Run>,
    ) -> Result<(), SegmentError> {
        let class = if log.is_node() { Class::Checkpoint } else { Class::User };
        self.allocate_as(class, log, summaries, now, runs)
    }

    /// [`allocate`](Self::allocate), and says who asks.
    ///
    /// # Errors
    /// As there.
    pub fn allocate_as(
        &self,
        class: Class,
        log: LogType,
        summaries: &[Summary],
        now: u64,
        runs: &mut Vec<Run>,
    ) -> Result<(), SegmentError> {
        self.take_from_log(class, log, summaries, now, &mut Sink::new(runs))
    }

    /// Takes blocks from lane 0 of a log, and closes the other lanes if there are too few.
    pub(crate) fn take_from_log(
        &self,
        class: Class,
        log: LogType,
        summaries: &[Summary],
        now: u64,
        sink: &mut Sink<'_>,
    ) -> Result<(), SegmentError> {
        let mut take = || {
            let mut head = self.head(log);
            self.take_from(&mut head, class, log, summaries, now, sink)
        };
        // The head's lock is released in between: lanes are locked before it.
        let close = || {
            let _held = protocol_value!("segment_lanes_closed_under_a_head", None, Some(self.head(log)));
            self.close_lanes()
        };
        match take() {
            Err(SegmentError::NoSpace { .. }) if close() => take(),
            result => result,
        }
    }

    /// Takes one block for a node that is written again, by a checkpoint say ([`Class::Checkpoint`]): it may have the
    /// last segment. Gives its address, and the address that the log will hand out next, which belongs into the node's
    /// footer (`next_blkaddr`).
    ///
    /// # Errors
    /// As [`allocate`](Self::allocate).
    pub fn allocate_node(
        &self,
        log: NodeLog,
        summary: Summary,
        now: u64,
    ) -> Result<(BlockAddr, BlockAddr), SegmentError> {
        self.allocate_node_as(Class::Checkpoint, log, summary, now)
    }

    /// [`allocate_node`](Self::allocate_node), and says who asks: a store whose users make nodes takes new ones as
    /// [`Class::User`], so that there is room for the nodes that deleting writes.
    ///
    /// # Errors
    /// As there.
    pub fn allocate_node_as(
        &self,
        class: Class,
        log: NodeLog,
        summary: Summary,
        now: u64,
    ) -> Result<(BlockAddr, BlockAddr), SegmentError> {
        let log = log.log();
        let take = || {
            let mut head = self.head(log);
            let addr = self.geometry.block_at(head.segment, head.next);
            self.take_from(&mut head, class, log, &[summary], now, &mut Sink::new(&mut Vec::new()))?;
            Ok((addr, self.geometry.block_at(head.segment, head.next)))
        };
        match take() {
            Err(SegmentError::NoSpace { .. }) if self.close_lanes() => take(),
            result => result,
        }
    }

    pub(crate) fn take_from(
        &self,
        head: &mut Head,
        class: Class,
        log: LogType,
        summaries: &[Summary],
        now: u64,
        sink: &mut Sink<'_>,
    ) -> Result<(), SegmentError> {
        if head.alloc == AllocType::Lfs && summaries.len() < self.end(head).saturating_sub(head.next) as usize {
            // Most often all fits into the log's own segment, with a block left behind.
            return self.fill(head, summaries, now, sink).map(|_| ());
        }
        let mut spare = self.secure(head, class, log, summaries.len() as u64)?.into_iter();
        let mut rest = summaries;
        let result = loop {
            match self.fill(head, rest, now, sink) {
                Ok(taken) => rest = &rest[taken..],
                // Only the segment that the log already stood in can object: nothing is taken yet.
                Err(error) => break Err(error),
            }
            if head.next < self.end(head) {
                break Ok(());
            }
            let Some(next) = spare.next() else {
                break Err(SegmentError::LogOffset { log, segment: head.segment, offset: head.next as u16 });
            };
            self.change(log, head, next);
        };
        spare.for_each(|unused| self.give_back(unused));
        result
    }

    /// Claims the segments that `count` blocks need beyond the log's own, so that one free block is left behind them.
    fn secure(&self, head: &Head, class: Class, log: LogType, count: u64) -> Result<Vec<Head>, SegmentError> {
        let mut room = u64::from(match head.alloc {
            AllocType::Lfs => self.end(head).saturating_sub(head.next),
            AllocType::Ssr => head.room_in_holes(&self.lock(head.segment).taken_map),
        });
        let mut claimed: Vec<Head> = Vec::new();
        while room <= count {
            let last = claimed.last().unwrap_or(head);
            match self.claim(class, log, last.segment, last.alloc) {
                Ok((next, more)) => {
                    room += u64::from(more);
                    claimed.push(next);
                }
                Err(error) => {
                    claimed.into_iter().for_each(|unused| self.give_back(unused));
                    return Err(self.with_counts(error));
                }
            }
        }
        Ok(claimed)
    }

    /// The error with the counts as they are when all has been given back.
    fn with_counts(&self, error: SegmentError) -> SegmentError {
        match error {
            SegmentError::NoSpace { log, floor, .. } => {
                SegmentError::NoSpace { log, free: self.free_segments(), prefree: self.prefree_segments(), floor }
            }
            other => other,
        }
    }

    /// Claims a segment for a log, by the kernel's rule (`need_new_seg`): go on within the section; else, when free
    /// sections are few, a segment with holes; else a free segment; and rather a segment with holes than none.
    pub(crate) fn claim(
        &self,
        class: Class,
        log: LogType,
        current: SegmentNo,
        alloc: AllocType,
    ) -> Result<(Head, u32), SegmentError> {
        let goes_on = alloc == AllocType::Lfs && self.free.continues(current);
        let early = !goes_on && self.need_ssr();
        if early && let Some(claimed) = self.claim_dirty(log)? {
            return Ok(claimed);
        }
        let floor = self.floor(class);
        if let Some(segment) = self.free.take(log, current, floor) {
            return Ok((self.claim_free(log, segment)?, self.zoning.segment(segment)));
        }
        if !early && let Some(claimed) = self.claim_dirty(log)? {
            return Ok(claimed);
        }
        Err(SegmentError::NoSpace { log, free: self.free_segments(), prefree: self.prefree_segments(), floor })
    }

    /// Makes a segment current that was taken from the free map. A checkpoint goes on to see it as it was until
    /// the log stands in it.
    pub(crate) fn claim_free(&self, log: LogType, segment: SegmentNo) -> Result<Head, SegmentError> {
        let mut state = self.lock(segment);
        if state.phase != Phase::Free || state.valid != 0 || state.taken != 0 {
            // The segment is lost for allocation: better than handing out a block that is in use.
            return Err(SegmentError::Phase {
                segment,
                expected: "free",
                found: state.phase.name(),
                valid: state.valid.into(),
            });
        }
        state.phase = Phase::Current;
        // Whoever chose its section when parts of it were in use marked the free ones, too.
        state.victim = false;
        self.changed.note(segment, &mut state);
        let mut summary = SummaryBlock::new_box();
        summary.entry_type = entry_type(log);
        Ok(Head { segment, next: 0, alloc: AllocType::Lfs, settled: true, summary })
    }

    /// The offset behind the last block that a log may write in its segment.
    fn end(&self, head: &Head) -> u32 {
        match head.alloc {
            AllocType::Lfs => self.zoning.segment(head.segment),
            AllocType::Ssr => BLOCKS_PER_SEGMENT,
        }
    }

    /// Takes as many blocks from the log's segment as it has and the caller wants; tells how many.
    pub(crate) fn fill(
        &self,
        head: &mut Head,
        summaries: &[Summary],
        now: u64,
        sink: &mut Sink<'_>,
    ) -> Result<usize, SegmentError> {
        let (segment, limit) = (head.segment, self.end(head));
        let mut state = self.lock(segment);
        let choices = sink.choices(head, &state.taken_map, summaries.len());
        let mut gaps = choices.into_iter();
        let mut taken = 0;
        while taken < summaries.len() && head.next < limit {
            let start = head.next;
            let end = state.taken_map.next(start, true).unwrap_or(BLOCKS_PER_SEGMENT).min(limit);
            if end == start || (head.alloc == AllocType::Lfs && end < limit) {
                let addr = self.geometry.block_at(segment, end);
                return Err(SegmentError::InUse { addr, segment, offset: end });
            }
            let len = (end - start).min((summaries.len() - taken).min(BLOCKS_PER_SEGMENT as usize) as u32);
            state.take(start, len, now);
            let here = taken..taken + len as usize;
            head.summary.entries[start as usize..(start + len) as usize].copy_from_slice(&summaries[here]);
            // No request goes from one zone into the next.
            let apart = start == 0 && self.zoning.begins_zone(segment);
            sink.push(Run { addr: self.geometry.block_at(segment, start), len }, apart);
            taken += len as usize;
            head.next = match head.alloc {
                AllocType::Lfs => start + len,
                AllocType::Ssr => state.taken_map.next(start + len, false).unwrap_or(BLOCKS_PER_SEGMENT),
            };
            // The run between this hole and the next one, if both are written now. A block in it that is free already
            // may be handed out when the checkpoint ends that is being written, while the rewrite is on its way.
            let is_valid = || state.valid_map.next(end, false).is_none_or(|free| free >= head.next);
            if taken < summaries.len()
                && head.next < BLOCKS_PER_SEGMENT
                && gaps.next() == Some(Choice::SelfPartial)
                && protocol_value!("segment_freed_run_rewritten", is_valid(), true)
            {
                sink.rewrite(Run { addr: self.geometry.block_at(segment, end), len: head.next - end });
            }
        }
        if taken != 0 {
            state.last_take = self.begun.load(Ordering::Relaxed);
            self.mark_dirty(segment, &mut state);
            self.valid.add(taken as i64);
        }
        Ok(taken)
    }

    /// Moves a log to a segment that was claimed for it.
    pub(crate) fn change(&self, log: LogType, head: &mut Head, next: Head) {
        let old = core::mem::replace(head, next);
        self.leave(old.segment, old.summary);
        self.enter(log, head.segment);
    }

    /// A log stands in a segment that was claimed for it.
    pub(crate) fn enter(&self, log: LogType, segment: SegmentNo) {
        let mut state = self.lock(segment);
        state.log = log;
        self.mark_dirty(segment, &mut state);
    }

    /// A log lets go of a segment. Its summary is put aside first: a thread that sees the segment as dirty finds it.
    pub(crate) fn leave(&self, segment: SegmentNo, summary: Box<SummaryBlock>) {
        protocol_never!("segment_leave_summary_late", self.settle(segment, &mut self.lock(segment)));
        self.retired.put(segment, summary);
        protocol_step!("segment_leave_summary_late", self.settle(segment, &mut self.lock(segment)));
    }

    /// Gives a segment that no log holds (any more) the phase of its counts.
    pub(crate) fn settle(&self, segment: SegmentNo, state: &mut Segment) {
        state.phase = state.phase_without_log();
        if state.phase == Phase::Prefree {
            protocol_never!("segment_block_reused_early", {
                (state.phase, state.taken_map, state.taken) = (Phase::Free, state.valid_map, 0);
                self.mark_dirty(segment, state);
                self.free.put([segment].into_iter());
            });
        }
        if state.phase == Phase::Prefree {
            self.prefree.fetch_add(1, Ordering::Relaxed);
            // The next checkpoint looks at changed segments only, and must find this one.
            protocol_step!("segment_prefree_marked", self.mark_dirty(segment, state));
        }
        self.changed.note(segment, state);
    }

    /// Returns a segment that was claimed and not used.
    pub(crate) fn give_back(&self, unused: Head) {
        match unused.alloc {
            AllocType::Lfs => {
                {
                    let mut state = self.lock(unused.segment);
                    state.phase = Phase::Free;
                    self.changed.note(unused.segment, &mut state);
                }
                self.free.put([unused.segment].into_iter());
            }
            AllocType::Ssr => self.leave(unused.segment, unused.summary),
        }
    }

    /// Frees a block: it is invalid now, and may be written again once a checkpoint that knows this is durable.
    ///
    /// # Errors
    /// [`SegmentError::OutsideMain`], [`SegmentError::NotValid`].
    pub fn invalidate(&self, addr: BlockAddr, now: u64) -> Result<(), SegmentError> {
        self.invalidate_run(Run { addr, len: 1 }, now)
    }

    /// Frees consecutive blocks, each as [`invalidate`](Self::invalidate) does, with one lock for those of a segment.
    ///
    /// # Errors
    /// As there, for the first block that is not valid or not in the main area. Blocks of earlier segments are freed by
    /// then, blocks of the same segment are not.
    pub fn invalidate_run(&self, run: Run, now: u64) -> Result<(), SegmentError> {
        let Run { mut addr, len: mut left } = run;
        while left != 0 {
            let (segment, offset) = self.locate(addr)?;
            let len = left.min(BLOCKS_PER_SEGMENT - offset);
            self.free_in(segment, offset, len, now)?;
            (addr, left) = (addr.offset(len), left - len);
        }
        Ok(())
    }

    fn free_in(&self, segment: SegmentNo, offset: u32, len: u32, now: u64) -> Result<(), SegmentError> {
        let Some(lock) = self.states.get(segment) else {
            return Err(SegmentError::NotValid { addr: self.geometry.block_at(segment, offset), segment, offset });
        };
        let mut state = lock.lock();
        if let Some(hole) = state.valid_map.next(offset, false).filter(|hole| *hole < offset + len) {
            return Err(SegmentError::NotValid { addr: self.geometry.block_at(segment, hole), segment, offset: hole });
        }
        protocol_never!("segment_invalidate_split", {
            let valid = state.valid;
            drop(state);
            state = lock.lock();
            state.valid = valid;
        });
        state.free(offset, len, now);
        self.mark_dirty(segment, &mut state);
        if matches!(state.phase, Phase::Dirty | Phase::Full) {
            self.settle(segment, &mut state);
        }
        self.valid.add(-i64::from(len));
        Ok(())
    }
}
