//! The sections of a volume on zones that users never fill, and what they are for.
//!
//! ```text
//!   free to the last     a margin   open: a zone for each lane and log    emptied ahead of writes
//!   +------------------+----------+-------------------------------------+-------------------------+
//!   | 12               | 2        | 9 with one lane, 3 for each more    | 16 segments, 2 at least |
//!   +------------------+----------+-------------------------------------+-------------------------+
//! ```
//!
//! Where there are fewer, operations do not empty sections ahead of writes, as these could be out of reach of any
//! cleaning: once such a volume is nearly full, they wait for one that cleans alone.

use f2fs_format::{Geometry, LogType};

/// Sections that users' data leaves free. A crash may make each log leave its zone when the volume is opened next, and
/// cleaning needs room then.
pub(crate) const FLOOR: u32 = 2 * LOGS;

/// Free sections beyond the floor at which something is done.
pub(crate) const MARGIN: u32 = 2;

/// Free segments beyond those, with the ones that the next checkpoint frees, at which operations begin to empty sections
/// on a volume where nothing is written into holes. So they seldom have to wait for sections that are emptied alone. Of
/// large sections these are two: the earlier one is emptied, the more of it would have been freed by itself.
const AHEAD: u32 = 16;

const LOGS: u32 = LogType::ALL.len() as u32;
/// Data logs, of which each has as many lanes as are asked for.
const DATA_LOGS: u32 = 3;

/// The sections of a volume that are kept from users.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeptSections {
    pub(crate) count: u32,
    segments_of_one: u32,
}

impl KeptSections {
    /// Where so many segments are kept from users.
    pub(crate) fn new(geometry: &Geometry, overprovision_segments: u32) -> KeptSections {
        let segments_of_one = geometry.segs_per_sec;
        KeptSections { count: overprovision_segments.div_ceil(segments_of_one), segments_of_one }
    }

    /// Sections that users' data must leave in any case: those that are kept, and where these are few, the ones that logs
    /// stand in besides the floor. A log whose section is full needs another one before a checkpoint frees the first.
    pub(crate) fn least(self) -> u32 {
        self.count.max(FLOOR + LOGS + MARGIN)
    }

    /// Sections that operations keep free by emptying others, beyond the last ones with which they go on: 0 if there are
    /// too few for that beside those that so many lanes have open.
    pub(crate) fn ahead(self, lanes: usize) -> u32 {
        if self.count >= self.wanted(lanes) { self.most_ahead() } else { 0 }
    }

    /// As many have to be kept so that operations empty sections ahead of writes, beside so many lanes.
    pub(crate) fn wanted(self, lanes: usize) -> u32 {
        FLOOR + MARGIN + open(lanes) + self.most_ahead()
    }

    /// Lanes of each data log: at most `wanted`, and as many as leave room for sections that are emptied ahead. Where
    /// there is no such room even with one lane, as many as can be open. `limit` is the number of zones that the device
    /// lets be written to. No cleaning gets at the room of an open zone.
    pub(crate) fn lanes(self, wanted: usize, limit: Option<u32>) -> usize {
        let limit = limit.unwrap_or(u32::MAX);
        let with_ahead = self.count.saturating_sub(FLOOR + MARGIN + self.most_ahead()).min(limit);
        let most = if with_ahead >= open(1) {
            (with_ahead - 2 * (LOGS - DATA_LOGS)) / DATA_LOGS
        } else {
            (self.open_at_once(limit) - (LOGS - DATA_LOGS)) / DATA_LOGS
        };
        wanted.min(most as usize).max(1)
    }

    /// Whether nodes may be written ahead, to a zone for each of their logs, beside so many lanes.
    pub(crate) fn aside(self, lanes: usize, limit: Option<u32>) -> bool {
        open(lanes) <= self.open_at_once(limit.unwrap_or(u32::MAX))
    }

    /// Zones that logs may have open at a time: as many as the device lets be written to, and as many as there are beside
    /// users' blocks and the zones that stay free.
    fn open_at_once(self, limit: u32) -> u32 {
        self.count.saturating_sub(FLOOR).min(limit).max(LOGS)
    }

    fn most_ahead(self) -> u32 {
        AHEAD.div_ceil(self.segments_of_one).max(2)
    }
}

/// Sections that logs have open at most, with so many lanes of each data log: one for each lane, and for each other log
/// one and one aside.
fn open(lanes: usize) -> u32 {
    DATA_LOGS * lanes as u32 + 2 * (LOGS - DATA_LOGS)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    fn kept(count: u32, segments_of_one: u32) -> KeptSections {
        KeptSections { count, segments_of_one }
    }

    /// However many lanes are asked for, sections are emptied ahead if there is one lane with which they can be.
    #[test]
    fn lanes_leave_room_for_what_is_emptied_ahead() {
        for (count, segments) in (1..300).flat_map(|count| [1, 4, 32].map(|segments| (count, segments))) {
            let kept = kept(count, segments);
            for limit in [None, Some(6), Some(14), Some(128)] {
                for wanted in [1, 2, 8, 128] {
                    let lanes = kept.lanes(wanted, limit);
                    assert!((1..=wanted).contains(&lanes), "{lanes}");
                    let can = count >= kept.wanted(1);
                    assert_eq!(kept.ahead(lanes) != 0, can, "{count} sections of {segments}, {limit:?}, {lanes} lanes");
                    if limit.is_some_and(|limit| limit >= open(1)) && can {
                        assert!(kept.aside(lanes, limit), "{count} sections of {segments}, {limit:?}, {lanes} lanes");
                    }
                }
            }
        }
    }

    #[test]
    fn few_sections_have_lanes_and_nothing_ahead() {
        let few = kept(20, 1);
        assert_eq!((few.lanes(8, None), few.ahead(1), few.wanted(1)), (1, 0, 39));
        assert_eq!((kept(39, 1).lanes(8, None), kept(39, 1).ahead(1)), (1, 16));
        assert_eq!((kept(60, 1).lanes(8, None), kept(60, 1).lanes(8, Some(12))), (8, 2));
    }

    /// Nodes that are written ahead have zones of their own, if as many may be open.
    #[test]
    fn nodes_stand_aside_where_zones_may_be_open_for_them() {
        // One for each data log, and two for each log of nodes, beside the twelve that stay free.
        assert!(kept(21, 1).aside(1, None) && !kept(20, 1).aside(1, None));
        assert!(kept(24, 1).aside(2, None) && !kept(23, 1).aside(2, None));
        assert!(kept(40, 1).aside(1, Some(9)) && !kept(40, 1).aside(1, Some(8)));
        assert_eq!((kept(3, 1).least(), kept(20, 1).least(), kept(21, 1).least()), (20, 20, 21));
    }
}
