//! Blocks taken from a lane, and lanes opened and closed ([`Lanes`](crate::lanes::Lanes)).

use f2fs_format::summary::Summary;
use f2fs_format::{BlockAddr, LogType};
use f2fs_sync::atomic::Ordering;

use crate::head::{AllocType, Head};
use crate::run::{Run, Sink};
use crate::{Class, NodeLog, SegmentError, SegmentManager};

impl SegmentManager {
    /// As [`allocate_as`](Self::allocate_as), from one of the log's lanes. Writers that pass different numbers (of
    /// their threads, say) do not wait for each other as long as there are lanes ([`SegmentConfig::lanes`]) and free
    /// segments; a number is taken modulo the number of lanes.
    ///
    /// [`SegmentConfig::lanes`]: crate::SegmentConfig::lanes
    ///
    /// # Errors
    /// As there.
    pub fn allocate_on(
        &self,
        lane: usize,
        class: Class,
        log: LogType,
        summaries: &[Summary],
        now: u64,
        runs: &mut Vec<Run>,
    ) -> Result<(), SegmentError> {
        match self.try_lane(lane, class, log, summaries, now, &mut Sink::new(runs)) {
            Some(result) => result,
            None => self.allocate_as(class, log, summaries, now, runs),
        }
    }

    /// As [`allocate_node`](Self::allocate_node), from one of the log's lanes. The second address is what the lane
    /// hands out next; it means something to roll-forward in the warm-node log alone, which has no lanes.
    ///
    /// # Errors
    /// As there.
    pub fn allocate_node_on(
        &self,
        lane: usize,
        node_log: NodeLog,
        summary: Summary,
        now: u64,
    ) -> Result<(BlockAddr, BlockAddr), SegmentError> {
        let log = node_log.log();
        if let Some(lane) = self.lanes.get(log, lane) {
            let mut slot = lane.lock();
            if let Some(head) = self.open_lane(&mut slot, Class::Checkpoint, log)? {
                let addr = self.geometry.block_at(head.segment, head.next);
                match self.take_from(head, Class::Checkpoint, log, &[summary], now, &mut Sink::new(&mut Vec::new())) {
                    Err(SegmentError::NoSpace { .. }) => {}
                    result => return result.map(|()| (addr, self.geometry.block_at(head.segment, head.next))),
                }
            }
        }
        self.allocate_node(node_log, summary, now)
    }

    /// `None`: the lane has no segment and gets none, or not enough of them; lane 0 must serve.
    fn try_lane(
        &self,
        lane: usize,
        class: Class,
        log: LogType,
        summaries: &[Summary],
        now: u64,
        sink: &mut Sink<'_>,
    ) -> Option<Result<(), SegmentError>> {
        let mut slot = self.lanes.get(log, lane)?.lock();
        let head = match self.open_lane(&mut slot, class, log) {
            Ok(head) => head?,
            Err(error) => return Some(Err(error)),
        };
        match self.take_from(head, class, log, summaries, now, sink) {
            Err(SegmentError::NoSpace { .. }) => None,
            result => Some(result),
        }
    }

    /// The head of a lane; a closed lane is given a free segment if there are enough.
    pub(crate) fn open_lane<'a>(
        &self,
        slot: &'a mut Option<Head>,
        class: Class,
        log: LogType,
    ) -> Result<Option<&'a mut Head>, SegmentError> {
        if slot.is_none() && !self.need_ssr() && self.lanes.resting.load(Ordering::Relaxed) == 0 {
            let near = self.head(log).segment;
            if let Some(segment) = self.free.take_section(log, near, self.floor(class)) {
                let head = self.claim_free(log, segment)?;
                self.enter(log, segment);
                *slot = Some(head);
            }
        }
        Ok(slot.as_mut())
    }

    /// A lane was closed within a zone: none opens until a checkpoint that begins from here on is durable.
    pub(crate) fn rest_lanes(&self) {
        if self.zoning.in_order {
            self.lanes.resting.store(self.begun.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
    }

    /// Closes all lanes; tells whether one was open. The room left in their segments can be had as holes.
    pub(crate) fn close_lanes(&self) -> bool {
        let mut closed = false;
        for lane in self.lanes.all() {
            if let Some(head) = lane.lock().take() {
                let begun = self.zoning.in_order && !self.zoning.begins_zone(head.segment);
                if head.next == 0 && head.alloc == AllocType::Lfs && !begun && self.lock(head.segment).taken == 0 {
                    // Opened for a request that then found too little elsewhere: the segment is as free as it was.
                    // (Blocks that a recovery holds are held before there are lanes; the look at `taken` is for sure.)
                    self.give_back(head);
                } else {
                    self.leave(head.segment, head.summary);
                    self.rest_lanes();
                }
                closed = true;
            }
        }
        closed
    }
}
