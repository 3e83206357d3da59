//! Finds the dirty segments that have the most room, and the sections that are the best to clean: the index behind SSR
//! and cleaning.
//!
//! Writers do not keep it up to date: the first change of a segment since the index last looked puts the segment into a
//! list (one of [`LISTS`]), and a choice reads the lists first. So a choice costs the number of segments that changed
//! since the last one, plus a constant; a change costs nothing shared in most cases.
//!
//! # Locking
//!
//! - [`Index`] lies behind a mutex of the manager. Segments are locked under it, one at a time.
//! - Each list of [`Changed`] has a mutex, held to put one segment on it or to take the whole list. A segment is put
//!   there with its own lock held; nothing is locked under a list.

use f2fs_format::{BLOCKS_PER_SEGMENT, LogType, SegmentNo};
use f2fs_sync::{CachePadded, Mutex, MutexGuard};

use crate::buckets::Buckets;
use crate::neighbours::Neighbours;
use crate::sections::Sections;
use crate::segment::{Phase, Segment};

/// Lists of changed segments; a segment's list is its number modulo this.
pub(crate) const LISTS: usize = if cfg!(loom) { 2 } else { 16 };
/// Buckets of one log: the blocks that are taken, 0 ..= 512.
const PER_LOG: u32 = BLOCKS_PER_SEGMENT + 1;
const NO_SEGMENT: SegmentNo = SegmentNo(u32::MAX);

/// The lists of segments that changed.
#[derive(Debug)]
pub(crate) struct Changed([CachePadded<Mutex<Vec<u32>>>; LISTS]);

impl Changed {
    pub(crate) fn new() -> Changed {
        Changed(core::array::from_fn(|_| CachePadded::new(Mutex::new(Vec::new()))))
    }

    /// Puts a segment on its list, unless it waits there. Called with the segment's lock held.
    pub(crate) fn note(&self, segment: SegmentNo, state: &mut Segment) {
        if !state.queued {
            state.queued = true;
            self.0[segment.index() % LISTS].lock().push(segment.0);
        }
    }

    /// Empties the lists.
    pub(crate) fn drain(&self, mut visit: impl FnMut(SegmentNo)) {
        for list in &self.0 {
            let waiting = core::mem::take(&mut *list.lock());
            waiting.into_iter().for_each(|segment| visit(SegmentNo(segment)));
        }
    }
}

/// The dirty segments by log and by the blocks that are taken in them, and the sections.
///
/// Within, a segment goes by the number of its state: so the index takes memory for segments in use, not for all.
#[derive(Debug)]
pub(crate) struct Index {
    by_room: Buckets,
    pub(crate) sections: Sections,
    /// The segment with each state; [`NO_SEGMENT`] where the index has not seen it yet.
    segments: Vec<SegmentNo>,
    /// Built when moved blocks are first put among others of their age.
    neighbours: Option<Box<Neighbours>>,
}

impl Index {
    /// `section`: blocks of a section that can be written.
    pub(crate) fn new(segs_per_sec: u32, section: u32) -> Index {
        Index {
            by_room: Buckets::new(6 * PER_LOG),
            sections: Sections::new(segs_per_sec, section),
            segments: Vec::new(),
            neighbours: None,
        }
    }

    /// Sorts a segment in, by its state as it is now. Called with the segment's lock held.
    pub(crate) fn update(&mut self, segment: SegmentNo, state: &mut Segment) {
        state.queued = false;
        if state.number as usize >= self.segments.len() {
            self.segments.resize(state.number as usize + 1, NO_SEGMENT);
        }
        self.segments[state.number as usize] = segment;
        if state.phase == Phase::Dirty && !state.victim && u32::from(state.taken) < BLOCKS_PER_SEGMENT {
            self.by_room.place(state.number, u32::from(state.log.number()) * PER_LOG + u32::from(state.taken));
        } else {
            self.by_room.remove(state.number);
        }
        self.sections.update(segment, state);
        if let Some(neighbours) = &mut self.neighbours {
            neighbours.update(state);
        }
    }

    /// Whether dirty segments are sorted by age.
    pub(crate) fn has_neighbours(&self) -> bool {
        self.neighbours.is_some()
    }

    /// Sorts all segments that the index has seen by age, each locked for as long as it is looked at, and keeps them
    /// sorted from now on.
    pub(crate) fn sort_neighbours<'a>(&mut self, lock: impl Fn(SegmentNo) -> MutexGuard<'a, Segment>) {
        let mut neighbours = Neighbours::new();
        let seen = self.segments.iter().filter(|segment| **segment != NO_SEGMENT);
        seen.for_each(|segment| neighbours.update(&lock(*segment)));
        self.neighbours = Some(Box::new(neighbours));
    }

    /// Of a log's dirty segments of about this age, the fullest.
    pub(crate) fn fullest_near(&self, log: LogType, age: u64) -> Option<SegmentNo> {
        Some(self.segments[self.neighbours.as_ref()?.fullest_near(log, age)? as usize])
    }

    /// The segments of a log that have room, those with the most first.
    pub(crate) fn by_room(&self, log: LogType) -> impl Iterator<Item = SegmentNo> + '_ {
        let from = u32::from(log.number()) * PER_LOG;
        self.by_room.ascending(from, from + BLOCKS_PER_SEGMENT).map(|state| self.segments[state as usize])
    }

    /// The segment of a log with the most room.
    pub(crate) fn roomiest(&self, log: LogType) -> Option<SegmentNo> {
        let from = u32::from(log.number()) * PER_LOG;
        self.by_room.first(from, from + BLOCKS_PER_SEGMENT).map(|state| self.segments[state as usize])
    }
}

/// The logs whose segments a log may take, in the kernel's order (`get_ssr_segment`): its own, then the others of its
/// kind, from the cold end for warm and cold logs, from the hot end for the hot one.
pub(crate) fn preferences(log: LogType) -> [LogType; 3] {
    match log {
        LogType::HotData => [LogType::HotData, LogType::WarmData, LogType::ColdData],
        LogType::WarmData => [LogType::WarmData, LogType::ColdData, LogType::HotData],
        LogType::ColdData => [LogType::ColdData, LogType::WarmData, LogType::HotData],
        LogType::HotNode => [LogType::HotNode, LogType::WarmNode, LogType::ColdNode],
        LogType::WarmNode => [LogType::WarmNode, LogType::ColdNode, LogType::HotNode],
        LogType::ColdNode => [LogType::ColdNode, LogType::WarmNode, LogType::HotNode],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However often it changes: the lists grow with the segments, not with what is done to them.
    #[test]
    fn a_segment_waits_once_for_being_looked_at() {
        let changed = Changed::new();
        let mut states: Vec<Segment> = (0..3).map(|number| Segment::idle(LogType::WarmData, 0, number)).collect();
        let segments = [SegmentNo(5), SegmentNo(21), SegmentNo(4000)];
        let drained = || {
            let mut all = Vec::new();
            changed.drain(|segment| all.push(segment));
            all.sort();
            all
        };
        for _ in 0..3 {
            segments.iter().zip(&mut states).for_each(|(segment, state)| changed.note(*segment, state));
        }
        assert_eq!(drained(), segments);
        assert_eq!(drained(), []);
        // When the index has seen it, the next change counts.
        let mut index = Index::new(1, BLOCKS_PER_SEGMENT);
        index.update(segments[1], &mut states[1]);
        segments.iter().zip(&mut states).for_each(|(segment, state)| changed.note(*segment, state));
        assert_eq!(drained(), [segments[1]]);
    }
}
