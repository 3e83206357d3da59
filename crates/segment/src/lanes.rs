//! More open segments than the six that a checkpoint records.
//!
//! A log has one head that the checkpoint knows, lane 0, and any number of others in memory. So writers that use
//! different lanes do not meet in one lock. To a checkpoint, the segment of another lane is a dirty segment like any
//! other: its entry goes to the SIT and its summary to the SSA. The lane goes on writing into it afterwards; it writes
//! to blocks that are free in both maps. So after a crash the segment is a dirty one with holes, as the checkpoint
//! says. Lanes begin segments only while there is no need for SSR, and are given up when space is short, so that holes
//! are not kept from others.
//!
//! The warm-node log has lane 0 alone for the nodes that syncs write: roll-forward follows a single chain. Nodes that
//! no sync writes have a lane of their own ([`crate::aside`]).
//!
//! Blocks are taken from lanes in `on_lane.rs`.

use f2fs_format::summary::SummaryBlock;
use f2fs_format::{LogType, SegmentNo};
use f2fs_sync::atomic::{AtomicU64, Ordering};
use f2fs_sync::{CachePadded, Mutex};

use crate::NodeLog;
use crate::head::Head;

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
    /// Lanes were closed within zones, which the device counts as active until a checkpoint finishes them: one that is
    /// begun later than so many, of those that were begun. 0: no lane was.
    pub(crate) resting: AtomicU64,
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
    pub(crate) fn get(&self, log: LogType, lane: usize) -> Option<&Mutex<Option<Head>>> {
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
