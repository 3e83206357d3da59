//! Victims: the section that a cleaner empties next.
//!
//! A chosen section is *marked*: no log takes a segment of it and no other cleaner chooses it, until the cleaner
//! [releases](SegmentManager::release_victim) it, or, segment by segment, until it is free again. Choosing and taking a
//! segment with holes both hold the index lock, so each sees what the other did. A log may go on to a free segment of
//! its own section without that lock; but then it stands in that section all the while, and such a section is not
//! chosen.

use f2fs_format::SegmentNo;
use f2fs_sync::{protocol_step, protocol_value};

use crate::segment::Phase;
use crate::{AgeThreshold, SegmentError, SegmentManager};

/// How a victim is chosen.
///
/// Blocks written for each block of the user's, by `examples/write_amplification -- 320 3` (320 segments, no SSR for
/// the user's writes; a count, the same on every machine). The last column puts moved blocks into the holes of segments
/// of their age ([`allocate_aged`](SegmentManager::allocate_aged)), so that no free segment is used up for them: fewer
/// blocks are moved, but each is a small write.
///
/// | updates, utilisation | greedy | cost-benefit | age threshold | the same, `AT_SSR` |
/// |---|--:|--:|--:|--:|
/// | uniform, 70 % | 2.04 | 2.04 | 2.05 | 1.43 |
/// | uniform, 80 % | 3.14 | 3.13 | 3.15 | 1.61 |
/// | uniform, 90 % | 7.53 | 7.55 | 7.60 | 1.85 |
/// | zipf 0.99, 70 % | 2.21 | 1.89 | 2.78 | 1.92 |
/// | zipf 0.99, 80 % | 3.09 | 2.57 | 4.11 | 1.97 |
/// | zipf 0.99, 90 % | 6.18 | 5.06 | 9.43 | 1.99 |
/// | hot and cold, 70 % | 2.09 | 1.67 | 2.91 | 1.94 |
/// | hot and cold, 80 % | 3.45 | 2.14 | 4.22 | 1.98 |
/// | hot and cold, 90 % | 7.70 | 4.77 | 7.47 | 1.99 |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum VictimPolicy {
    /// The fewest valid blocks: the cheapest now. F2FS' choice in the foreground.
    Greedy,
    /// The greatest benefit for its cost: (1 - u) * age / (1 + u). F2FS' choice in the background.
    CostBenefit,
    /// Among the oldest, the best mean of age and free space (ATGC).
    AgeThreshold(AgeThreshold),
}

/// A section that is marked for cleaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Victim {
    /// Its number.
    pub section: u32,
    /// Its first segment.
    pub first: SegmentNo,
    /// Its segments.
    pub segments: u32,
    /// Valid blocks in it when it was chosen.
    pub valid: u32,
    /// Mean time of its last changes, seconds.
    pub mtime: u64,
}

impl Victim {
    /// The segments of the section.
    pub fn segments(&self) -> impl Iterator<Item = SegmentNo> + use<> {
        (self.first.0..self.first.0 + self.segments).map(SegmentNo)
    }
}

impl SegmentManager {
    /// Chooses a section and marks it. `now` is the time in seconds, as given to [`allocate`](Self::allocate). `None`:
    /// no section has both valid blocks and others, apart from those where logs stand and those already marked.
    ///
    /// Costs a constant number of steps ([`Greedy`](VictimPolicy::Greedy)) or a logarithmic one, and one for each
    /// segment that changed since the last choice.
    #[must_use]
    pub fn choose_victim(&self, policy: VictimPolicy, now: u64) -> Option<Victim> {
        let mut index = self.fresh_index();
        let per_section = self.geometry.segs_per_sec;
        loop {
            let slot = match policy {
                VictimPolicy::Greedy => index.sections.emptiest(),
                VictimPolicy::CostBenefit => index.sections.ages().cost_benefit(now),
                VictimPolicy::AgeThreshold(rule) => index.sections.ages().age_threshold(&rule),
            }?;
            let (_, mtime) = index.sections.cost(slot)?;
            let section = index.sections.section(slot);
            let mut victim =
                Victim { section, first: SegmentNo(section * per_section), segments: per_section, valid: 0, mtime };
            let mut marked = Vec::with_capacity(per_section as usize);
            for segment in victim.segments() {
                let mut state = self.lock(segment);
                let stands = protocol_value!("segment_victim_ignores_logs", state.phase == Phase::Current, false);
                if !stands && !state.victim {
                    state.victim = true;
                    marked.push(segment);
                }
                victim.valid += u32::from(state.valid);
                index.update(segment, &mut state);
            }
            // Blocks may have been freed since the index looked: a section without any is not worth a cleaner.
            if marked.len() == per_section as usize && victim.valid != 0 {
                return Some(victim);
            }
            for segment in marked {
                let mut state = self.lock(segment);
                protocol_step!("segment_victim_keeps_marks", state.victim = false);
                index.update(segment, &mut state);
            }
        }
    }

    /// Takes the mark off a section: it was cleaned as far as it could be.
    ///
    /// # Errors
    /// [`SegmentError::OutsideTable`] for a victim that is not of this volume.
    pub fn release_victim(&self, victim: &Victim) -> Result<(), SegmentError> {
        victim.segments().try_for_each(|segment| self.release_segment(segment))
    }
}
