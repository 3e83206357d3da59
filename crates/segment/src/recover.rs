//! Roll-forward: blocks that were written after the checkpoint that was opened.
//!
//! A chain of node blocks behind the checkpoint, and the data that they name, stand where the tables say that nothing
//! is. Before anything is written they are *held*, so that no log writes over them and a crash during the recovery
//! finds them again; the logs leave the segments where they are held. Those that a recovered file refers to are then
//! *adopted*: valid, with a summary. The next checkpoint releases held blocks that were not adopted.
//!
//! ```text
//!   Free -- hold --> Prefree -- adopt --> Dirty, Full        (of a segment)
//!   Current -- leave_held --> Prefree, Dirty, Full
//! ```
//!
//! One thread does this, before any other uses the manager.

use f2fs_format::summary::{Summary, SummaryBlock, TYPE_DATA};
use f2fs_format::{BlockAddr, LogType, SegmentNo};
use f2fs_sync::atomic::Ordering;
use f2fs_sync::protocol_value;

use crate::head::Head;
use crate::map::BlockMap;
use crate::segment::Phase;
use crate::{Class, SegmentError, SegmentManager};

impl SegmentManager {
    /// Keeps a block from being written before the next checkpoint is durable. One that is in use is so already.
    ///
    /// # Errors
    /// [`SegmentError::OutsideMain`].
    pub fn hold(&self, addr: BlockAddr) -> Result<(), SegmentError> {
        let (segment, offset) = self.locate(addr)?;
        if self.lock(segment).phase == Phase::Free {
            self.free.remove(segment);
            // To the checkpoint it is empty: its SSA block may be anything.
            self.retired.put(segment, SummaryBlock::new_box());
            let mut state = self.lock(segment);
            self.settle(segment, &mut state);
        }
        let mut state = self.lock(segment);
        if !state.taken_map.contains(offset) {
            state.taken_map.insert(offset, 1);
            state.taken += 1;
            self.mark_dirty(segment, &mut state);
            self.changed.note(segment, &mut state);
        }
        Ok(())
    }

    /// Moves each log out of a segment in which blocks are held. Call it after the last [`hold`](Self::hold).
    ///
    /// # Errors
    /// [`SegmentError::NoSpace`], [`SegmentError::Source`].
    pub fn leave_held(&self) -> Result<(), SegmentError> {
        let mut unfit = Vec::new();
        let result = LogType::ALL.into_iter().try_for_each(|log| self.leave_if_held(log, &mut unfit));
        unfit.into_iter().for_each(|head: Head| self.leave(head.segment, head.summary));
        result
    }

    /// Moves a log, if blocks are held where it stands, to where none are. A claimed segment that is no better goes to
    /// `unfit`: kept until all logs have moved, so that it is not claimed again.
    fn leave_if_held(&self, log: LogType, unfit: &mut Vec<Head>) -> Result<(), SegmentError> {
        let mut head = self.head(log);
        while self.holds_blocks(head.segment) {
            let (next, _) = self.claim(Class::Checkpoint, log, head.segment, head.alloc)?;
            if self.holds_blocks(next.segment) {
                unfit.push(next);
            } else {
                self.change(log, &mut head, next);
            }
        }
        Ok(())
    }

    fn holds_blocks(&self, segment: SegmentNo) -> bool {
        let state = self.lock(segment);
        state.taken_map.without(&state.valid_map) != BlockMap::EMPTY
    }

    /// Makes a data block valid that no log has handed out: a recovered file refers to it.
    ///
    /// # Errors
    /// [`SegmentError::InUse`] if it is valid; [`SegmentError::Phase`] if a log writes into its segment (it was not
    /// held); [`SegmentError::LogType`] if nodes stand in the segment; [`SegmentError::Source`];
    /// [`SegmentError::OutsideMain`].
    pub fn adopt(&self, addr: BlockAddr, summary: Summary, now: u64) -> Result<(), SegmentError> {
        let (segment, offset) = self.locate(addr)?;
        self.hold(addr)?;
        let (phase, valid, log) = {
            let state = self.lock(segment);
            if state.valid_map.contains(offset) {
                return Err(SegmentError::InUse { addr, segment, offset });
            }
            (state.phase, state.valid, state.log)
        };
        if phase == Phase::Current {
            return Err(SegmentError::Phase {
                segment,
                expected: "left by its log",
                found: phase.name(),
                valid: valid.into(),
            });
        }
        let aside = self.retired.take(segment);
        if log.is_node() && (valid != 0 || aside.is_none()) {
            return Err(SegmentError::LogType { log: LogType::WarmData, segment, found: log });
        }
        // Also when none of its blocks is valid any more: to the checkpoint that a crash leads back to they are.
        let mut block = match (aside, &self.source) {
            (Some(block), _) => block,
            (None, _) if protocol_value!("segment_adopts_with_an_empty_summary", false, valid == 0) => {
                SummaryBlock::new_box()
            }
            (None, Some(source)) => {
                source.0.read_summary(segment).map_err(|source| SegmentError::Source { segment, source })?
            }
            (None, None) => {
                return Err(SegmentError::Config { what: "sources of summaries", expected: 1, found: 0 });
            }
        };
        block.entry_type = TYPE_DATA;
        block.entries[offset as usize] = summary;
        self.retired.put(segment, block);

        let mut state = self.lock(segment);
        if state.phase == Phase::Prefree {
            self.prefree.fetch_sub(1, Ordering::Relaxed);
        }
        if valid == 0 {
            state.log = LogType::WarmData;
        }
        state.touch(now, valid, 1);
        state.valid_map.insert(offset, 1);
        state.valid += 1;
        state.last_take = self.begun.load(Ordering::Relaxed);
        state.phase = state.phase_without_log();
        self.mark_dirty(segment, &mut state);
        self.changed.note(segment, &mut state);
        self.valid.add(1);
        Ok(())
    }
}
