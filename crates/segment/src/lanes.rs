//! More open segments than the six that a checkpoint records.
//!
//! A log has one head that the checkpoint knows, lane 0, and any number of others in memory, so that writers who use
//! different lanes do not meet in one lock. To a checkpoint, the segment of another lane is a dirty segment like any other:
//! its entry goes to the SIT and its summary to the SSA. The lane goes on writing into it afterwards; it writes to blocks
//! that are free in both maps. So after a crash the segment is a dirty one with holes, as the checkpoint says. Lanes begin segments only
//! while there is no need for SSR, and are given up when space is short, so that holes are not kept from others.
//!
//! The warm-node log has lane 0 alone for the nodes that syncs write: roll-forward follows a single chain. Nodes that no sync writes have a lane
//! of their own ([`crate::aside`]).

use f2fs_format::summary::{Summary, SummaryBlock};
use f2fs_format::{BlockAddr, LogType, SegmentNo};
use f2fs_sync::atomic::{AtomicU64, Ordering};
use f2fs_sync::{CachePadded, Mutex};

use crate::allocate::{Run, Sink};
use crate::head::{AllocType, Head};
use crate::{Class, NodeLog, SegmentError, SegmentManager};

/// Lanes of a log at most: as many as [`PerCore`](f2fs_sync::PerCore) has slots.
const MOST: usize = 128;

/// The lanes of all logs beside lane 0, each behind its lock. A lane without a segment is closed.
#[derive(Debug)]
pub(crate) struct Lanes {
    by_log: [Box<[Lane]>; 6],
    /// Where moved blocks meet others of their age.
    aged: Lane,
    /// Nodes that are written before their checkpoint, by their log.
    aside: [Lane; 3],
    /// Lanes were closed within zones, which the device counts as active until a checkpoint finishes them: one that is begun later than so many,
    /// of those that were begun. 0: no lane was.
    resting: AtomicU64,
}

pub(crate) type Lane = CachePadded<Mutex<Option<Head>>>;

impl Lanes {
    /// So many lanes for each log but warm node, lane 0 among them; [`MOST`] at most.
    pub(crate) fn new(lanes: usize) -> Lanes {
        let lanes = lanes.min(MOST);
        let closed = || CachePadded::new(Mutex::new(None));
        let by_log = LogType::ALL.map(|log| {
            let more = if log == LogType::WarmNode { 0 } else { lanes.saturating_sub(1) };
            (0..more).map(|_| closed()).collect()
        });
        Lanes { by_log, aged: closed(), aside: NodeLog::ALL.map(|_| closed()), resting: AtomicU64::new(0) }
    }

    /// The lane behind a number, `None` for lane 0.
    fn get(&self, log: LogType, lane: usize) -> Option<&Mutex<Option<Head>>> {
        let more = &self.by_log[log.index()];
        let index = (lane % (more.len() + 1)).checked_sub(1)?;
        Some(&more[index])
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Lane> {
        self.by_log.iter().flatten().chain([&self.aged]).chain(&self.aside)
    }

    /// The lane of nodes that are written before their checkpoint.
    pub(crate) fn aside(&self, log: NodeLog) -> &Mutex<Option<Head>> {
        &self.aside[log as usize]
    }

    /// The lane of moved blocks.
    pub(crate) fn aged(&self) -> &Mutex<Option<Head>> {
        &self.aged
    }

    /// The checkpoint is durable that was begun as the one of this number: zones that lanes left before are finished.
    pub(crate) fn may_open(&self, begun: u64) {
        let since = self.resting.load(Ordering::Relaxed);
        if since <= begun {
            // Unless another lane was closed meanwhile.
            let _ = self.resting.compare_exchange(since, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// The segments where lanes stand.
    pub(crate) fn segments(&self) -> impl Iterator<Item = SegmentNo> + '_ {
        self.all().filter_map(|lane| lane.lock().as_ref().map(|head| head.segment))
    }

    /// The summary of a segment that a lane stands in.
    pub(crate) fn summary(&self, segment: SegmentNo) -> Option<Box<SummaryBlock>> {
        self.all().find_map(|lane| {
            let lane = lane.lock();
            lane.as_ref().filter(|head| head.segment == segment).map(|head| head.summary.clone())
        })
    }

    /// Copies of the summaries of all lanes.
    pub(crate) fn summaries(&self) -> Vec<(SegmentNo, Box<SummaryBlock>)> {
        let copy = |lane: &Lane| lane.lock().as_ref().map(|head| (head.segment, head.summary.clone()));
        self.all().filter_map(copy).collect()
    }
}

impl SegmentManager {
    /// As [`allocate_as`](Self::allocate_as), from one of the log's lanes. Writers that pass different numbers (of their
    /// threads, say) do not wait for each other as long as there are lanes ([`SegmentConfig::lanes`]) and free segments; a
    /// number is taken modulo the number of lanes.
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

    /// As [`allocate_node`](Self::allocate_node), from one of the log's lanes. The second address is what the lane hands out
    /// next; it means something to roll-forward in the warm-node log alone, which has no lanes.
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
                    // Opened for a request that then found too little elsewhere: the segment is as free as it was. (Blocks that a
                    // recovery holds are held before there are lanes; the look at `taken` is for sure.)
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
