//! What the index knows of each section, and which sections can be cleaned.

use f2fs_format::{BLOCKS_PER_SEGMENT, SegmentNo};

use crate::ages::Ages;
use crate::buckets::Buckets;
use crate::segment::{Phase, Segment};

/// What was last seen of a segment.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    mtime: u64,
    valid: u16,
    /// A log stands in it, or a cleaner has marked it.
    held: bool,
}

/// Sums over the segments of a section.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    mtime: u128,
    valid: u32,
    held: u32,
}

/// All sections, and those that can be cleaned sorted by what cleaning them costs. A section can be cleaned if it holds
/// valid blocks and blocks that are not, no log stands in it and no cleaner has marked it.
#[derive(Debug)]
pub(crate) struct Sections {
    segs_per_sec: u32,
    seen: Vec<Seen>,
    sums: Vec<Sums>,
    by_valid: Buckets,
    /// Built when a policy that looks at ages is first used.
    ages: Option<Box<Ages>>,
}

impl Sections {
    pub(crate) fn new(segments: u32, segs_per_sec: u32) -> Sections {
        let sections = segments / segs_per_sec;
        Sections {
            segs_per_sec,
            seen: vec![Seen::default(); segments as usize],
            sums: vec![Sums::default(); sections as usize],
            by_valid: Buckets::new(sections, segs_per_sec.saturating_mul(BLOCKS_PER_SEGMENT) + 1),
            ages: None,
        }
    }

    fn section_blocks(&self) -> u32 {
        self.segs_per_sec.saturating_mul(BLOCKS_PER_SEGMENT)
    }

    /// Takes note of a segment's state.
    pub(crate) fn update(&mut self, segment: SegmentNo, state: &Segment) {
        let held = state.phase == Phase::Current || state.victim;
        let new = Seen { mtime: state.mtime, valid: state.valid, held };
        let old = core::mem::replace(&mut self.seen[segment.index()], new);
        let section = segment.0 / self.segs_per_sec;
        let sums = &mut self.sums[section as usize];
        sums.mtime = sums.mtime - u128::from(old.mtime) + u128::from(new.mtime);
        sums.valid = sums.valid - u32::from(old.valid) + u32::from(new.valid);
        sums.held = sums.held - u32::from(old.held) + u32::from(new.held);
        match self.cost(section) {
            Some((valid, _)) => self.by_valid.place(section, valid),
            None => self.by_valid.remove(section),
        }
        let (cost, held) = (self.cost_if_free(section), self.is_held(section));
        if let Some(ages) = &mut self.ages {
            ages.update(section, cost, held);
        }
    }

    fn is_held(&self, section: u32) -> bool {
        self.sums[section as usize].held != 0
    }

    /// Valid blocks and mean time of a section that can be cleaned once nobody holds it.
    fn cost_if_free(&self, section: u32) -> Option<(u32, u64)> {
        let sums = &self.sums[section as usize];
        let cleanable = sums.valid != 0 && sums.valid < self.section_blocks();
        cleanable.then(|| (sums.valid, (sums.mtime / u128::from(self.segs_per_sec)) as u64))
    }

    /// Valid blocks and mean time of a section that can be cleaned.
    pub(crate) fn cost(&self, section: u32) -> Option<(u32, u64)> {
        self.cost_if_free(section).filter(|_| !self.is_held(section))
    }

    /// The section with the fewest valid blocks.
    pub(crate) fn emptiest(&self) -> Option<u32> {
        self.by_valid.first(0, self.section_blocks())
    }

    /// The sections by age.
    pub(crate) fn ages(&mut self) -> &mut Ages {
        if self.ages.is_none() {
            let sections = self.sums.len() as u32;
            let mut ages = Ages::new(sections, self.section_blocks());
            (0..sections).for_each(|section| ages.update(section, self.cost(section), false));
            self.ages = Some(Box::new(ages));
        }
        self.ages.get_or_insert_with(|| Box::new(Ages::new(0, 1)))
    }
}
