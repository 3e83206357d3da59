//! Free segments and free sections.
//!
//! The map holds exactly the segments in phase [`Phase::Free`](crate::Phase); the thread that removes one owns it, and
//! sets its phase afterwards. A *free section* is one whose segments are all free: only such are given to a log that
//! cannot go on within its own section, so that data and nodes never share a section and a zone is written from its
//! start.
//!
//! # Locking
//!
//! - The mutex of the map protects all of [`FreeMap`]: which segments and sections are free, in which zone each log
//!   writes, which sections nobody gets any more.
//! - A segment is looked for, the floor is compared, and the segment is taken out under one hold of the lock. So no
//!   segment goes to two logs, and of two logs one alone gets the last section above the floor.
//! - The lock is one of the last of the order. Callers hold a log's head or a lane when they take a segment, and the
//!   SIT state when a checkpoint gives segments back. Nobody holds a segment's lock, nothing is locked under the map,
//!   and no device is asked.
//! - A segment's phase is [`Phase::Free`](crate::Phase) before it is put into the map, and it is changed after the
//!   segment was taken out. In between the segment is free and in nobody's reach but the taker's.
//! - The counts are copies that are stored with the lock held and read without it. A reader may see those of a moment
//!   ago, and the two of different moments: they say whether it is worth trying, and `take` looks at the map.

use std::collections::BTreeSet;

use f2fs_format::{Geometry, LogType, SegmentNo};
use f2fs_sync::atomic::{AtomicU32, Ordering};
use f2fs_sync::{CachePadded, Mutex, protocol_never, protocol_value};

use crate::bitset::BitSet;
use crate::zoning::Zoning;

/// The free segments, behind a lock that is taken once for a segment, not for a block.
#[derive(Debug)]
pub(crate) struct FreeSpace {
    map: Mutex<FreeMap>,
    /// Copies of the map's counts, for readers without the lock.
    counts: CachePadded<Counts>,
    segs_per_sec: u32,
    secs_per_zone: u32,
    zoning: Zoning,
}

/// How many there are, on a line that is written once for a segment and read by every operation.
#[derive(Debug)]
struct Counts {
    segments: AtomicU32,
    sections: AtomicU32,
}

#[derive(Debug)]
struct FreeMap {
    segments: BitSet,
    sections: BitSet,
    /// Free segments of each section; nothing where each segment is a section.
    in_section: Vec<u32>,
    /// The zone that each log writes in.
    zones: [u32; 6],
    /// Sections that nobody gets any more.
    retired: BTreeSet<u32>,
    /// Free segments of those.
    lost: u32,
}

impl FreeMap {
    /// Takes a segment out; tells whether it was in.
    fn remove(&mut self, segment: u32, segs_per_sec: u32) -> bool {
        let was_free = self.segments.remove(segment);
        if was_free {
            let section = segment / segs_per_sec;
            if let Some(count) = self.in_section.get_mut(section as usize) {
                *count -= 1;
            }
            self.sections.remove(section);
        }
        was_free
    }
}

impl FreeSpace {
    /// All segments are free but these.
    pub(crate) fn new(geometry: &Geometry, zoning: Zoning, used: impl Iterator<Item = SegmentNo>) -> FreeSpace {
        let counted = if geometry.segs_per_sec == 1 { 0 } else { geometry.sections };
        let mut map = FreeMap {
            segments: BitSet::full(geometry.main_segments),
            sections: BitSet::full(geometry.sections),
            in_section: (0..counted).map(|_| zoning.segments()).collect(),
            zones: [u32::MAX; 6],
            retired: BTreeSet::new(),
            lost: 0,
        };
        if zoning.segments() < geometry.segs_per_sec {
            for behind in (0..geometry.main_segments).filter(|segment| zoning.segment(SegmentNo(*segment)) == 0) {
                map.segments.remove(behind);
            }
        }
        used.for_each(|segment| {
            map.remove(segment.0, geometry.segs_per_sec);
        });
        FreeSpace {
            counts: CachePadded::new(Counts {
                segments: AtomicU32::new(map.segments.len()),
                sections: AtomicU32::new(map.sections.len()),
            }),
            map: Mutex::new(map),
            segs_per_sec: geometry.segs_per_sec,
            secs_per_zone: geometry.secs_per_zone,
            zoning,
        }
    }

    /// Free segments.
    pub(crate) fn segments(&self) -> u32 {
        self.counts.segments.load(Ordering::Relaxed)
    }

    /// Free sections.
    pub(crate) fn sections(&self) -> u32 {
        self.counts.sections.load(Ordering::Relaxed)
    }

    fn publish(&self, map: &FreeMap) {
        self.counts.segments.store(map.segments.len(), Ordering::Relaxed);
        self.counts.sections.store(map.sections.len(), Ordering::Relaxed);
    }

    /// Whether all segments of a section are free.
    pub(crate) fn has_section(&self, section: u32) -> bool {
        self.map.lock().sections.contains(section)
    }

    /// Free segments from a number on, at most so many.
    pub(crate) fn some(&self, from: SegmentNo, most: usize) -> Vec<SegmentNo> {
        let map = self.map.lock();
        let mut at = from.0;
        let next = std::iter::from_fn(|| {
            let segment = map.segments.next(at)?;
            at = segment + 1;
            Some(SegmentNo(segment))
        });
        next.take(most).collect()
    }

    /// Makes segments free, but for those that cannot be written.
    pub(crate) fn put(&self, segments: impl Iterator<Item = SegmentNo>) {
        let mut map = self.map.lock();
        for segment in segments.filter(|segment| self.zoning.segment(*segment) > 0) {
            let section = segment.0 / self.segs_per_sec;
            if map.retired.contains(&section) {
                map.lost += 1;
            } else if map.segments.insert(segment.0) {
                if let Some(count) = map.in_section.get_mut(section as usize) {
                    *count += 1;
                    if *count != self.zoning.segments() {
                        continue;
                    }
                }
                map.sections.insert(section);
            }
        }
        self.publish(&map);
    }

    /// Free segments of sections that nobody gets any more.
    pub(crate) fn lost(&self) -> u32 {
        self.map.lock().lost
    }

    /// No log gets a segment of this section any more; they are `segments`.
    pub(crate) fn retire(&self, section: u32, segments: core::ops::Range<u32>) {
        let mut map = self.map.lock();
        if map.retired.insert(section) {
            for segment in segments {
                let was_free = map.remove(segment, self.segs_per_sec);
                map.lost += u32::from(was_free);
            }
            self.publish(&map);
        }
    }

    /// Takes this segment, if it is free: no log is to have it.
    pub(crate) fn remove(&self, segment: SegmentNo) {
        let mut map = self.map.lock();
        if map.remove(segment.0, self.segs_per_sec) {
            self.publish(&map);
        }
    }

    /// Notes where a log stands at the start.
    pub(crate) fn stands(&self, log: LogType, segment: SegmentNo) {
        self.map.lock().zones[log.index()] = self.zone(segment.0 / self.segs_per_sec);
    }

    fn zone(&self, section: u32) -> u32 {
        section / self.secs_per_zone
    }

    /// Whether the next segment behind `current`, in its section, is free: the kernel's `is_next_segment_free`.
    pub(crate) fn continues(&self, current: SegmentNo) -> bool {
        let next = current.0 + 1;
        !next.is_multiple_of(self.segs_per_sec) && self.map.lock().segments.contains(next)
    }

    /// Takes a segment for a log that stands in `current` (`get_new_segment`): a later one of the same section; else
    /// the first one of a free section, if at least `floor` free sections are left then, in a zone of its own if there
    /// is one.
    pub(crate) fn take(&self, log: LogType, current: SegmentNo, floor: u32) -> Option<SegmentNo> {
        let floor = protocol_value!("segment_floor_unlocked", floor, {
            if self.sections() <= floor {
                return None;
            }
            0
        });
        let mut map = self.map.lock();
        let section = current.0 / self.segs_per_sec;
        let behind = (section + 1) * self.segs_per_sec;
        let found = match map.segments.next(current.0 + 1) {
            // A zone is written segment by segment.
            Some(next) if next < behind && (next == current.0 + 1 || !self.zoning.in_order) => next,
            _ if map.sections.len() <= floor => return None,
            _ => self.new_section(&map, log, section)? * self.segs_per_sec,
        };
        protocol_never!("segment_free_take_split", {
            drop(map);
            map = self.map.lock();
        });
        Some(self.take_out(&mut map, log, found))
    }

    /// Takes the first segment of a free section for a log that has another segment open in `near`.
    pub(crate) fn take_section(&self, log: LogType, near: SegmentNo, floor: u32) -> Option<SegmentNo> {
        let mut map = self.map.lock();
        if map.sections.len() <= floor {
            return None;
        }
        let found = self.new_section(&map, log, near.0 / self.segs_per_sec)? * self.segs_per_sec;
        Some(self.take_out(&mut map, log, found))
    }

    fn take_out(&self, map: &mut FreeMap, log: LogType, found: u32) -> SegmentNo {
        map.remove(found, self.segs_per_sec);
        map.zones[log.index()] = self.zone(found / self.segs_per_sec);
        self.publish(map);
        SegmentNo(found)
    }

    /// The search of `get_new_segment`. With small sections, hot data and nodes are kept at the front of the device, as
    /// `__get_next_segno` does.
    fn new_section(&self, map: &FreeMap, log: LogType, current: u32) -> Option<u32> {
        let front = self.segs_per_sec == 1 && (log == LogType::HotData || log.is_node());
        let found = map.sections.next_around(if front { 0 } else { current })?;
        let zone = self.zone(found);
        if self.secs_per_zone == 1 || zone == self.zone(current) || !map.zones.contains(&zone) {
            return Some(found);
        }
        // Another log writes in that zone: look once behind it.
        let behind = (zone + 1).saturating_mul(self.secs_per_zone);
        map.sections.next_around(behind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::geometry;

    fn all(space: &FreeSpace) -> (u32, u32) {
        (space.segments(), space.sections())
    }

    #[test]
    fn a_log_goes_on_in_its_section() {
        let geometry = geometry(24, 4, 1);
        let space = FreeSpace::new(&geometry, Zoning::new(&geometry, None), [SegmentNo(0)].into_iter());
        assert_eq!(all(&space), (23, 5));
        assert!(space.continues(SegmentNo(0)));
        assert_eq!(space.take(LogType::WarmData, SegmentNo(0), 9), Some(SegmentNo(1)));
        assert_eq!(space.take(LogType::WarmData, SegmentNo(1), 9), Some(SegmentNo(2)));
        assert_eq!(space.take(LogType::WarmData, SegmentNo(2), 9), Some(SegmentNo(3)));
        assert!(!space.continues(SegmentNo(3)));
        assert_eq!(space.take(LogType::WarmData, SegmentNo(3), 5), None);
        assert_eq!(space.take(LogType::WarmData, SegmentNo(3), 4), Some(SegmentNo(4)));
        assert_eq!(all(&space), (19, 4));
        // A hole in a section that is not free stays there, for the log that owns the section.
        space.put([SegmentNo(1)].into_iter());
        assert_eq!(all(&space), (20, 4));
        assert_eq!(space.take(LogType::HotNode, SegmentNo(7), 0), Some(SegmentNo(8)));
        space.put([0, 2, 3].map(SegmentNo).into_iter());
        assert_eq!(all(&space), (22, 4));
    }

    #[test]
    fn a_section_is_free_when_all_is_that_can_be_written() {
        let mut geometry = geometry(24, 4, 1);
        geometry.features = f2fs_format::feature::Features::BLKZONED;
        let zoning = Zoning::new(&geometry, Some(2 * 512 + 1));
        let space = FreeSpace::new(&geometry, zoning, [SegmentNo(0)].into_iter());
        assert_eq!(all(&space), (17, 5));
        assert_eq!(space.take(LogType::WarmData, SegmentNo(0), 9), Some(SegmentNo(1)));
        assert_eq!(space.take(LogType::WarmData, SegmentNo(1), 9), Some(SegmentNo(2)));
        assert!(!space.continues(SegmentNo(2)));
        assert_eq!(space.take(LogType::WarmData, SegmentNo(2), 4), Some(SegmentNo(4)));
        space.put([0, 1].map(SegmentNo).into_iter());
        assert!(!space.has_section(0));
        // Behind a gap nothing is written.
        assert_eq!(space.take(LogType::HotData, SegmentNo(0), 0), Some(SegmentNo(1)));
        space.put([SegmentNo(1)].into_iter());
        space.remove(SegmentNo(5));
        assert_eq!(space.take(LogType::HotData, SegmentNo(4), 0), Some(SegmentNo(8)));
        space.put([SegmentNo(2)].into_iter());
        assert!(space.has_section(0));
    }

    #[test]
    fn logs_keep_to_different_zones() {
        let geometry = geometry(24, 1, 4);
        let space = FreeSpace::new(&geometry, Zoning::new(&geometry, None), [SegmentNo(0)].into_iter());
        space.stands(LogType::HotData, SegmentNo(0));
        space.stands(LogType::WarmData, SegmentNo(23));
        assert_eq!(space.take(LogType::HotNode, SegmentNo(23), 0), Some(SegmentNo(4)));
        assert_eq!(space.take(LogType::HotData, SegmentNo(0), 0), Some(SegmentNo(1)));
    }

    /// With small sections. Large ones are begun where the log stands, whatever the log.
    #[test]
    fn hot_data_and_nodes_are_kept_at_the_front() {
        for (per_section, expected) in [(1, [11, 0, 1, 2, 3, 12]), (4, [12, 16, 20, 24, 28, 32])] {
            let geometry = geometry(48, per_section, 1);
            let used = (8..12).filter(|segment| per_section == 4 || *segment == 10).map(SegmentNo);
            let space = FreeSpace::new(&geometry, Zoning::new(&geometry, None), used);
            let mut current = if per_section == 1 { 10 } else { 11 };
            let taken = [
                LogType::WarmData,
                LogType::HotData,
                LogType::HotNode,
                LogType::WarmNode,
                LogType::ColdNode,
                LogType::ColdData,
            ]
            .map(|log| {
                let taken = space.take(log, SegmentNo(current), 0).unwrap().0;
                // Where a log would go on is not what decides.
                current = if per_section == 1 { 10 } else { taken + 3 };
                taken
            });
            assert_eq!(taken, expected, "{per_section} segments a section");
        }
    }

    #[test]
    fn a_lane_begins_a_section_behind_that_of_its_log() {
        let geometry = geometry(48, 4, 1);
        let space = FreeSpace::new(&geometry, Zoning::new(&geometry, None), [SegmentNo(9)].into_iter());
        assert_eq!(all(&space), (47, 11));
        assert_eq!(space.take_section(LogType::WarmData, SegmentNo(9), 11), None);
        assert_eq!(space.take_section(LogType::WarmData, SegmentNo(9), 10), Some(SegmentNo(12)));
        assert_eq!(all(&space), (46, 10));
        assert!(!space.has_section(3) && space.has_section(4));
    }

    #[test]
    fn a_log_looks_once_behind_the_zone_of_another() {
        // Eight zones of three sections of two segments.
        let geometry = geometry(48, 2, 3);
        let used = (0..6).chain(12..14).map(SegmentNo);
        let space = || FreeSpace::new(&geometry, Zoning::new(&geometry, None), used.clone());
        // In nobody's zone, or in its own, it takes the first free section.
        assert_eq!(space().take(LogType::WarmData, SegmentNo(5), 0), Some(SegmentNo(6)));
        let own = space();
        own.stands(LogType::WarmData, SegmentNo(13));
        own.stands(LogType::HotData, SegmentNo(12));
        assert_eq!(own.take(LogType::WarmData, SegmentNo(13), 0), Some(SegmentNo(14)));
        // In another's, the next one behind that zone.
        let other = space();
        other.stands(LogType::ColdData, SegmentNo(11));
        assert_eq!(other.take(LogType::WarmData, SegmentNo(5), 0), Some(SegmentNo(12 + 2)));
        // Where it stands then is the zone of a log, too.
        let later = FreeSpace::new(&geometry, Zoning::new(&geometry, None), (0..14).map(SegmentNo));
        assert_eq!(later.take(LogType::WarmData, SegmentNo(13), 0), Some(SegmentNo(14)));
        assert_eq!(later.take(LogType::HotData, SegmentNo(5), 0), Some(SegmentNo(18)));
        // Where each section is a zone, a free one is in nobody's.
        let geometry = crate::testing::geometry(24, 1, 1);
        let space = FreeSpace::new(&geometry, Zoning::new(&geometry, None), core::iter::empty());
        space.stands(LogType::WarmNode, SegmentNo(0));
        assert_eq!(space.take(LogType::HotData, SegmentNo(9), 0), Some(SegmentNo(0)));
    }

    #[test]
    fn what_is_put_into_a_section_that_was_given_up_is_lost() {
        let geometry = geometry(24, 4, 1);
        let space = FreeSpace::new(&geometry, Zoning::new(&geometry, None), [SegmentNo(5)].into_iter());
        space.retire(1, 4..8);
        assert_eq!((all(&space), space.lost()), ((20, 5), 3));
        space.put([SegmentNo(5)].into_iter());
        assert_eq!((all(&space), space.lost()), ((20, 5), 4));
        assert!(!space.has_section(1));
        space.retire(1, 4..8);
        assert_eq!((all(&space), space.lost()), ((20, 5), 4));
    }

    /// A kernel before 6.4 wrote them.
    #[test]
    fn what_is_put_behind_the_capacity_is_not_free() {
        let geometry = geometry(24, 4, 1);
        let zoning = Zoning::new(&geometry, Some(2 * 512 + 1));
        let space = FreeSpace::new(&geometry, zoning, (0..4).map(SegmentNo));
        let before = all(&space);
        space.put([SegmentNo(3)].into_iter());
        assert_eq!(all(&space), before);
        assert_eq!(space.take(LogType::WarmData, SegmentNo(2), 0), Some(SegmentNo(4)));
    }
}
