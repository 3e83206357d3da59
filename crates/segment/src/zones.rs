//! Sections that are zones: logs leave them, and they are given up for good.

use std::collections::BTreeSet;

use f2fs_format::{BLOCKS_PER_SEGMENT, BlockAddr, LogType, SegmentNo};

use crate::segment::Phase;
use crate::{Class, Run, SegmentError, SegmentManager};

impl SegmentManager {
    /// The sections where a log or a lane stands, each as often as some do.
    #[must_use]
    pub fn sections_of_logs(&self) -> Vec<u32> {
        let has = |log: &LogType| self.geometry.has_log(*log);
        let logs = LogType::ALL.into_iter().filter(has).map(|log| self.head(log).segment);
        logs.chain(self.lanes.segments()).map(|segment| segment.0 / self.geometry.segs_per_sec).collect()
    }

    /// Whether nothing is valid in a section, now and in the last durable checkpoint, and no log stands in it.
    #[must_use]
    pub fn is_section_free(&self, section: u32) -> bool {
        self.free.has_section(section)
    }

    /// Moves logs to the start of free sections, and closes lanes, if `off` says so of the block that they would write
    /// next. What they leave unwritten is used again when all of its section is free. Tells how many moved.
    ///
    /// # Errors
    /// [`SegmentError::NoSpace`] if no section is free.
    pub fn leave_zones(&self, off: impl Fn(BlockAddr) -> bool) -> Result<u32, SegmentError> {
        let mut moved = 0;
        for lane in self.lanes.all() {
            let mut lane = lane.lock();
            if let Some(head) = lane.take_if(|head| off(self.geometry.block_at(head.segment, head.next))) {
                self.leave(head.segment, head.summary);
                self.rest_lanes();
                moved += 1;
            }
        }
        for log in LogType::ALL.into_iter().filter(|log| self.geometry.has_log(*log)) {
            let mut head = self.head(log);
            if !off(self.geometry.block_at(head.segment, head.next)) {
                continue;
            }
            let free = self.free.take_section(log, head.segment, self.floor(Class::Checkpoint));
            let Some(segment) = free else {
                return Err(SegmentError::NoSpace {
                    log,
                    free: self.free_segments(),
                    prefree: self.prefree_segments(),
                    floor: 0,
                });
            };
            let next = self.claim_free(log, segment)?;
            self.change(log, &mut head, next);
            moved += 1;
        }
        Ok(moved)
    }

    /// The sections that will be free as a whole when the checkpoint that was begun ends, and are not so far. Until
    /// then no log comes there: the owner resets zones when the checkpoint is durable, before
    /// [`end_checkpoint`](Self::end_checkpoint).
    #[must_use]
    pub fn sections_freed_by_checkpoint(&self) -> Vec<u32> {
        let per_section = self.geometry.segs_per_sec;
        let segments = |run: &Run| {
            let first = self.geometry.locate(run.addr).map_or(0, |(segment, _)| segment.0);
            first..first + run.len / BLOCKS_PER_SEGMENT
        };
        let freed: BTreeSet<u32> = self.freed_by_checkpoint().iter().flat_map(segments).collect();
        let sections: BTreeSet<u32> = freed.iter().map(|segment| segment / per_section).collect();
        let will_be = |segment: u32| {
            freed.contains(&segment) || self.states.find(SegmentNo(segment)).state().phase == Phase::Free
        };
        let whole = |section: &u32| {
            let first = section * per_section;
            (first..first + self.zoning.segments()).all(will_be)
        };
        sections.into_iter().filter(whole).collect()
    }

    /// Gives a section, which is free or will be when the checkpoint ends, to nobody any more: its zone cannot be
    /// written. To the format its segments stay free. A section that the volume does not have is no one's anyway.
    pub fn retire_section(&self, section: u32) {
        if section >= self.geometry.sections {
            return;
        }
        let first = section * self.geometry.segs_per_sec;
        self.free.retire(section, first..first + self.zoning.segments());
    }
}
