//! Slack space recycling: a log takes a segment with holes.

use f2fs_format::summary::SummaryBlock;
use f2fs_format::{BLOCKS_PER_SEGMENT, LogType, SegmentNo};
use f2fs_sync::MutexGuard;
use f2fs_sync::atomic::Ordering;

use crate::head::{AllocType, Head, entry_type};
use crate::index::{Index, preferences};
use crate::segment::Phase;
use crate::{SegmentError, SegmentManager};

impl SegmentManager {
    /// The index, brought up to date.
    pub(crate) fn fresh_index(&self) -> MutexGuard<'_, Index> {
        let mut index = self.index.lock();
        self.changed.drain(|segment| index.update(segment, &mut self.lock(segment)));
        index
    }

    /// Claims the dirty segment with the most room for a log (`get_ssr_segment`), with the blocks that may be written
    /// in it: free now and in the last checkpoint. Its summary keeps the entries of the blocks that stay.
    ///
    /// Never for the warm-node log: roll-forward follows its blocks in the order in which they were written, and holes
    /// would lead it through nodes of another time.
    pub(crate) fn claim_dirty(&self, log: LogType) -> Result<Option<(Head, u32)>, SegmentError> {
        if !self.may_fill || log == LogType::WarmNode {
            return Ok(None);
        }
        let Some((segment, next, room, settled)) = self.claim_roomiest(log) else { return Ok(None) };
        let summary = self.summary_to_go_on(segment, log)?;
        Ok(Some((Head { segment, next, alloc: AllocType::Ssr, settled, summary }, room)))
    }

    /// The summary of a segment that was claimed for a log; if it cannot be read, the segment is given up.
    pub(crate) fn summary_to_go_on(&self, segment: SegmentNo, log: LogType) -> Result<Box<SummaryBlock>, SegmentError> {
        let mut summary = match (self.retired.take(segment), &self.source) {
            (Some(summary), _) => summary,
            (None, Some(source)) => source.0.read_summary(segment).map_err(|source| {
                self.settle(segment, &mut self.lock(segment));
                SegmentError::Source { segment, source }
            })?,
            // Nobody claims such a segment without a source.
            (None, None) => SummaryBlock::new_box(),
        };
        summary.entry_type = entry_type(log);
        Ok(summary)
    }

    fn claim_roomiest(&self, log: LogType) -> Option<(SegmentNo, u32, u32, bool)> {
        let durable = self.durable.load(Ordering::Relaxed);
        let mut index = self.fresh_index();
        for kind in preferences(log) {
            while let Some(segment) = index.roomiest(kind) {
                let mut state = self.lock(segment);
                // The index may be older than a change that is only noted.
                let next = state.taken_map.next(0, false);
                if let (Phase::Dirty, false, Some(next)) = (state.phase, state.victim, next)
                    && state.log == kind
                {
                    state.phase = Phase::Current;
                    index.update(segment, &mut state);
                    let settled = state.last_take < durable;
                    return Some((segment, next, BLOCKS_PER_SEGMENT - u32::from(state.taken), settled));
                }
                index.update(segment, &mut state);
            }
        }
        None
    }
}
