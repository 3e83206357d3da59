//! The index of sections: the counts of each, and which ones can be cleaned.

use std::collections::BTreeMap;

use f2fs_format::SegmentNo;

use crate::ages::Ages;
use crate::buckets::Buckets;
use crate::segment::{Phase, Segment};

/// A segment as it was last seen.
#[derive(Clone, Copy, Debug)]
struct Seen {
    mtime: u64,
    /// The slot of its section; [`NO_SLOT`] if the segment was never seen.
    slot: u32,
    valid: u16,
    /// A log stands in it, or a cleaner has marked it.
    held: bool,
}

const NO_SLOT: u32 = u32::MAX;
const UNSEEN: Seen = Seen { mtime: 0, slot: NO_SLOT, valid: 0, held: false };

impl Seen {
    fn weight(&self) -> u128 {
        u128::from(self.mtime) * u128::from(self.valid)
    }
}

/// Sums over the segments of a section.
#[derive(Clone, Copy, Debug)]
struct Sums {
    /// Of the times of valid blocks, each block with the mean time of its segment.
    mtime: u128,
    /// The section.
    section: u32,
    valid: u32,
    held: u32,
}

/// All sections. Those that can be cleaned are sorted by the cost of cleaning. A section can be cleaned if it holds
/// valid blocks and blocks that are not, no log stands in it and no cleaner has marked it.
///
/// A section has a *slot* from when one of its segments is first seen; within, it goes by that.
#[derive(Debug)]
pub(crate) struct Sections {
    segs_per_sec: u32,
    /// Blocks of a section that can be written.
    section_blocks: u32,
    /// By the numbers of the segments' states.
    seen: Vec<Seen>,
    /// By slot.
    sums: Vec<Sums>,
    /// Slots of sections of several segments.
    slots: BTreeMap<u32, u32>,
    by_valid: Buckets,
    /// Built when a policy that looks at ages is first used.
    ages: Option<Box<Ages>>,
}

impl Sections {
    pub(crate) fn new(segs_per_sec: u32, section_blocks: u32) -> Sections {
        Sections {
            segs_per_sec,
            section_blocks,
            seen: Vec::new(),
            sums: Vec::new(),
            slots: BTreeMap::new(),
            by_valid: Buckets::new(section_blocks.saturating_add(1)),
            ages: None,
        }
    }

    /// Takes note of a segment's state.
    pub(crate) fn update(&mut self, segment: SegmentNo, state: &Segment) {
        let number = state.number as usize;
        if number >= self.seen.len() {
            self.seen.resize(number + 1, UNSEEN);
        }
        let slot = match self.seen[number].slot {
            NO_SLOT => self.slot_of(segment.0 / self.segs_per_sec),
            slot => slot,
        };
        let held = state.phase == Phase::Current || state.victim;
        let new = Seen { mtime: state.mtime, slot, valid: state.valid, held };
        let old = core::mem::replace(&mut self.seen[number], new);
        let sums = &mut self.sums[slot as usize];
        sums.mtime = sums.mtime - old.weight() + new.weight();
        sums.valid = sums.valid - u32::from(old.valid) + u32::from(new.valid);
        sums.held = sums.held - u32::from(old.held) + u32::from(new.held);
        let (cost, held) = (self.cost_if_free(slot), self.is_held(slot));
        match cost.filter(|_| !held) {
            Some((valid, _)) => self.by_valid.place(slot, valid),
            None => self.by_valid.remove(slot),
        }
        if let Some(ages) = &mut self.ages {
            ages.update(slot, cost, held);
        }
    }

    /// The slot of a section of which a segment is seen for the first time.
    fn slot_of(&mut self, section: u32) -> u32 {
        let next = self.sums.len() as u32;
        let slot = if self.segs_per_sec == 1 { next } else { *self.slots.entry(section).or_insert(next) };
        if slot == next {
            self.sums.push(Sums { mtime: 0, section, valid: 0, held: 0 });
        }
        slot
    }

    /// The section with a slot.
    pub(crate) fn section(&self, slot: u32) -> u32 {
        self.sums[slot as usize].section
    }

    fn is_held(&self, slot: u32) -> bool {
        self.sums[slot as usize].held != 0
    }

    /// Valid blocks and mean time of a section that can be cleaned once nobody holds it.
    fn cost_if_free(&self, slot: u32) -> Option<(u32, u64)> {
        let sums = &self.sums[slot as usize];
        let cleanable = sums.valid != 0 && sums.valid < self.section_blocks;
        cleanable.then(|| (sums.valid, (sums.mtime / u128::from(sums.valid)) as u64))
    }

    /// Valid blocks and mean time of a section that can be cleaned.
    pub(crate) fn cost(&self, slot: u32) -> Option<(u32, u64)> {
        self.cost_if_free(slot).filter(|_| !self.is_held(slot))
    }

    /// The slot of the section with the fewest valid blocks.
    pub(crate) fn emptiest(&self) -> Option<u32> {
        self.by_valid.first(0, self.section_blocks)
    }

    /// The sections by age, each by its slot.
    pub(crate) fn ages(&mut self) -> &mut Ages {
        if self.ages.is_none() {
            let mut ages = Ages::new(self.section_blocks);
            (0..self.sums.len() as u32).for_each(|slot| ages.update(slot, self.cost(slot), false));
            self.ages = Some(Box::new(ages));
        }
        self.ages.get_or_insert_with(|| Box::new(Ages::new(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use f2fs_format::LogType;

    fn state(number: u32, valid: u16, mtime: u64, phase: Phase) -> Segment {
        let mut state = Segment::idle(LogType::WarmData, mtime, number);
        (state.valid, state.phase) = (valid, phase);
        state
    }

    /// Sections of two segments, the numbers of whose states have nothing to do with the segments'.
    fn two_sections() -> Sections {
        let mut sections = Sections::new(2, 1024);
        sections.update(SegmentNo(7), &state(0, 300, 1000, Phase::Dirty));
        sections.update(SegmentNo(2), &state(1, 100, 50, Phase::Dirty));
        sections.update(SegmentNo(6), &state(2, 100, 3000, Phase::Dirty));
        sections
    }

    #[test]
    fn a_section_has_the_sums_of_its_segments_and_the_mean_of_its_blocks() {
        let mut sections = two_sections();
        let slot = |sections: &Sections, section| (0..2).find(|slot| sections.section(*slot) == section).unwrap();
        let [first, second] = [1, 3].map(|section| slot(&sections, section));
        assert_eq!(sections.cost(first), Some((100, 50)));
        assert_eq!(sections.cost(second), Some((400, (300 * 1000 + 100 * 3000) / 400)));
        assert_eq!(sections.emptiest(), Some(first));
        // A segment changes, as often as it does.
        for (valid, mtime) in [(512, 9), (200, 8), (500, 7)] {
            sections.update(SegmentNo(2), &state(1, valid, mtime, Phase::Dirty));
            assert_eq!(sections.cost(first), Some((valid.into(), mtime)));
        }
        assert_eq!(sections.emptiest(), Some(second));
        // What holds nothing, and what is full, is not to be cleaned.
        sections.update(SegmentNo(2), &state(1, 0, 7, Phase::Prefree));
        assert_eq!(sections.cost(first), None);
        sections.update(SegmentNo(2), &state(1, 512, 7, Phase::Full));
        sections.update(SegmentNo(3), &state(3, 511, 7, Phase::Dirty));
        assert_eq!(sections.cost(first), Some((1023, 7)));
        sections.update(SegmentNo(3), &state(3, 512, 7, Phase::Full));
        assert_eq!(sections.cost(first), None);
        assert_eq!(sections.emptiest(), Some(second));
    }

    #[test]
    fn a_section_is_held_as_long_as_one_of_its_segments_is() {
        let mut sections = two_sections();
        let (first, second) = (sections.emptiest().unwrap(), 0);
        assert_eq!((sections.section(first), sections.section(second)), (1, 3));
        sections.ages();
        let cleanable = |sections: &mut Sections| {
            let mut all = Vec::new();
            while let Some(slot) = sections.ages().cost_benefit(5000) {
                all.push(slot);
                sections.ages().update(slot, None, false);
            }
            // As they were.
            all.iter().for_each(|slot| {
                let cost = sections.cost(*slot);
                sections.ages().update(*slot, cost, false);
            });
            all.sort_unstable();
            all
        };
        assert_eq!(cleanable(&mut sections), [0, 1]);
        sections.update(SegmentNo(6), &state(2, 100, 3000, Phase::Current));
        let mut marked = state(0, 300, 1000, Phase::Dirty);
        marked.victim = true;
        sections.update(SegmentNo(7), &marked);
        assert_eq!((sections.cost(second), cleanable(&mut sections)), (None, vec![first]));
        sections.update(SegmentNo(6), &state(2, 100, 3000, Phase::Dirty));
        assert_eq!((sections.cost(second), cleanable(&mut sections)), (None, vec![first]));
        sections.update(SegmentNo(7), &state(0, 300, 1000, Phase::Dirty));
        assert_eq!((sections.cost(second), cleanable(&mut sections)), (Some((400, 1500)), vec![0, 1]));
    }
}
