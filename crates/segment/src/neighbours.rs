//! Dirty data segments by age: where moved blocks find others of their age (`AT_SSR`).

use std::collections::BTreeSet;

use f2fs_format::{BLOCKS_PER_SEGMENT, LogType};

use crate::segment::{Phase, Segment};

/// The data logs come first among the logs.
const DATA_LOGS: usize = 3;

/// A segment that is sorted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    log: u8,
    mtime: u64,
    taken: u16,
}

/// The dirty segments of the data logs with room, sorted by the mean time of their blocks. They go by the numbers of
/// their states.
#[derive(Debug)]
pub(crate) struct Neighbours {
    by_age: [BTreeSet<(u64, u32)>; DATA_LOGS],
    places: Vec<Option<Place>>,
}

/// How far a search goes on either side: the kernel's fifth of the candidates and at least ten (`candidate_ratio`,
/// `max_candidate_count`), but no more than a hundred, so that its time does not grow with the volume.
fn reach(segments: usize) -> usize {
    (segments / 5).clamp(10, 100)
}

impl Neighbours {
    pub(crate) fn new() -> Neighbours {
        Neighbours { by_age: [const { BTreeSet::new() }; DATA_LOGS], places: Vec::new() }
    }

    /// Sorts a segment in, by its state as it is now.
    pub(crate) fn update(&mut self, state: &Segment) {
        let fits = state.phase == Phase::Dirty
            && !state.victim
            && !state.log.is_node()
            && u32::from(state.taken) < BLOCKS_PER_SEGMENT;
        let new = fits.then(|| Place { log: state.log.number(), mtime: state.mtime, taken: state.taken });
        if state.number as usize >= self.places.len() {
            self.places.resize(state.number as usize + 1, None);
        }
        let old = core::mem::replace(&mut self.places[state.number as usize], new);
        let key = |place: Option<Place>| place.map(|place| (place.log, place.mtime));
        if key(old) == key(new) {
            return;
        }
        if let Some(old) = old {
            self.by_age[usize::from(old.log)].remove(&(old.mtime, state.number));
        }
        if let Some(new) = new {
            self.by_age[usize::from(new.log)].insert((new.mtime, state.number));
        }
    }

    /// Of the segments of a log that are nearest to an age, older and younger ones, the fullest; among those the
    /// nearest (`atssr_lookup_victim`).
    pub(crate) fn fullest_near(&self, log: LogType, age: u64) -> Option<u32> {
        let set = self.by_age.get(log.index())?;
        let reach = reach(set.len());
        let older = set.range(..=(age, u32::MAX)).rev().take(reach);
        let younger = set.range((age, u32::MAX)..).take(reach);
        let score = |&&(mtime, state): &&(u64, u32)| {
            let taken = self.places[state as usize].map_or(0, |place| place.taken);
            (taken, core::cmp::Reverse(mtime.abs_diff(age)))
        };
        older.chain(younger).max_by_key(score).map(|(_, state)| *state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use f2fs_format::SegmentNo;
    use f2fs_format::sit::RawSitEntry;
    use proptest::prelude::*;

    fn state(number: u32, log: LogType, valid: u32, mtime: u64) -> Segment {
        let mut entry = RawSitEntry::ZERO;
        entry.set_blocks(log, valid);
        (0..valid as usize).for_each(|at| entry.valid_map[at / 8] |= 0x80 >> (at % 8));
        entry.mtime.set(mtime);
        let mut state = Segment::from_entry(SegmentNo(number), &entry).unwrap();
        state.number = number;
        state
    }

    #[test]
    fn logs_full_segments_and_victims_are_kept_apart() {
        let mut near = Neighbours::new();
        let mut marked = state(3, LogType::WarmData, 500, 50);
        marked.victim = true;
        for state in [
            state(0, LogType::HotData, 400, 50),
            state(1, LogType::WarmData, 512, 50),
            state(2, LogType::WarmNode, 400, 50),
            marked,
            state(4, LogType::WarmData, 100, 900),
        ] {
            near.update(&state);
        }
        assert_eq!(near.fullest_near(LogType::WarmData, 50), Some(4));
        assert_eq!(near.fullest_near(LogType::HotData, 50), Some(0));
        assert_eq!(near.fullest_near(LogType::ColdData, 50), None);
        assert_eq!(near.fullest_near(LogType::WarmNode, 50), None);
        // Of equal ones the nearest, and of a crowd only those at hand.
        near.update(&state(5, LogType::WarmData, 100, 60));
        assert_eq!(near.fullest_near(LogType::WarmData, 50), Some(5));
        near.update(&state(5, LogType::WarmData, 0, 60));
        assert_eq!(near.fullest_near(LogType::WarmData, 50), Some(4));
    }

    /// Of a hundred, the twenty nearest on each side are looked at.
    #[test]
    fn the_fullest_of_all_is_too_far_away() {
        let mut near = Neighbours::new();
        for age in 0..100 {
            let valid = match age {
                20 | 85 => 510,
                60 => 400,
                _ => 300,
            };
            near.update(&state(age, LogType::WarmData, valid, age.into()));
        }
        assert_eq!(near.fullest_near(LogType::WarmData, 50), Some(60));
        assert_eq!(near.fullest_near(LogType::WarmData, 39), Some(20), "the last that is near enough");
        assert_eq!(near.fullest_near(LogType::WarmData, 40), Some(60));
        assert_eq!(near.fullest_near(LogType::WarmData, 66), Some(85));
    }

    proptest! {
        #[test]
        fn the_choice_is_the_best_at_hand(
            ops in prop::collection::vec((0u32..60, 0u32..=512, 0u64..40), 1..200), age in 0u64..40,
        ) {
            let mut near = Neighbours::new();
            let mut model = std::collections::BTreeMap::new();
            for (number, valid, mtime) in ops {
                near.update(&state(number, LogType::WarmData, valid, mtime));
                if (1..512).contains(&valid) {
                    model.insert(number, (mtime, valid));
                } else {
                    model.remove(&number);
                }
            }
            let mut all: Vec<(u64, u32, u32)> = model.iter().map(|(number, (mtime, valid))| (*mtime, *number, *valid)).collect();
            all.sort_unstable();
            let split = all.partition_point(|(mtime, ..)| *mtime <= age);
            let count = (all.len() / 5).max(10);
            let at_hand = &all[split.saturating_sub(count)..(split + count).min(all.len())];
            let best = at_hand.iter().map(|(mtime, _, valid)| (*valid, std::cmp::Reverse(mtime.abs_diff(age)))).max();
            let found = near.fullest_near(LogType::WarmData, age).map(|segment| model[&segment]);
            prop_assert_eq!(found.map(|(mtime, valid)| (valid, std::cmp::Reverse(mtime.abs_diff(age)))), best);
        }
    }
}
