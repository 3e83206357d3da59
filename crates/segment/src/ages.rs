//! Sections by utilisation and age: what cost-benefit and age-threshold selection choose from.
//!
//! Both scores grow with age at a given utilisation, so the best section of a utilisation is its oldest one. The sections
//! are therefore sorted into [`CLASSES`] classes of utilisation, and a choice compares the oldest of each class: a constant
//! number of candidates, whatever the number of sections. Updates are logarithmic.

use std::collections::BTreeSet;

use crate::treap::Treap;
use crate::victim::AgeThreshold;

/// Classes of utilisation. With sections of one segment each class is one count of valid blocks, so a choice is exact; with
/// larger sections the candidates of a class differ by less than 1/512 of a section.
const CLASSES: u32 = 512;

/// The sections by class and by age.
#[derive(Debug)]
pub(crate) struct Ages {
    section_blocks: u32,
    classes: Vec<BTreeSet<(u64, u32)>>,
    /// The oldest of each class, `None` if the class is empty: what a choice reads, in one piece.
    oldest: Vec<Option<(u64, u32)>>,
    valid: Vec<u32>,
    all: Treap,
}

impl Ages {
    pub(crate) fn new(sections: u32, section_blocks: u32) -> Ages {
        Ages {
            section_blocks,
            classes: vec![BTreeSet::new(); CLASSES as usize],
            oldest: vec![None; CLASSES as usize],
            valid: vec![0; sections as usize],
            all: Treap::new(sections),
        }
    }

    fn class(&self, valid: u32) -> usize {
        (u64::from(valid) * u64::from(CLASSES) / u64::from(self.section_blocks)).min(u64::from(CLASSES) - 1) as usize
    }

    /// Sorts a section in, with `valid` valid blocks of a mean time of `mtime`; `None` takes it out.
    pub(crate) fn update(&mut self, section: u32, state: Option<(u32, u64)>) {
        if let Some(mtime) = self.all.get(section) {
            let class = self.class(self.valid[section as usize]);
            self.classes[class].remove(&(mtime, section));
            self.oldest[class] = self.classes[class].first().copied();
        }
        match state {
            None => self.all.remove(section),
            Some((valid, mtime)) => {
                self.valid[section as usize] = valid;
                self.all.insert(section, mtime);
                let class = self.class(valid);
                self.classes[class].insert((mtime, section));
                self.oldest[class] = self.classes[class].first().copied();
            }
        }
    }

    fn best(&self, eligible: impl Fn((u64, u32)) -> bool, score: impl Fn(u64, f64) -> f64) -> Option<u32> {
        let mut best: Option<(f64, u64, u32)> = None;
        for &(mtime, section) in self.oldest.iter().flatten() {
            if !eligible((mtime, section)) {
                continue;
            }
            let utilisation = f64::from(self.valid[section as usize]) / f64::from(self.section_blocks);
            let score = score(mtime, utilisation);
            if best.is_none_or(|(best, oldest, _)| score > best || (score == best && mtime < oldest)) {
                best = Some((score, mtime, section));
            }
        }
        best.map(|(_, _, section)| section)
    }

    /// The section with the greatest (1 - u) * age / (1 + u), age counted from `now` (`get_cb_cost`, without its rounding
    /// to hundredths).
    pub(crate) fn cost_benefit(&self, now: u64) -> Option<u32> {
        self.best(|_| true, |mtime, u| (1.0 - u) / (1.0 + u) * now.saturating_sub(mtime).saturating_add(1) as f64)
    }

    /// Among the oldest sections the one with the greatest weighted sum of age and free space (`atgc_lookup_victim`).
    ///
    /// Candidates are those at least `threshold` seconds older than the youngest section, or all if there is none; of
    /// them the oldest `ratio` per cent, but at least `min_candidates`.
    pub(crate) fn age_threshold(&self, rule: &AgeThreshold) -> Option<u32> {
        let (youngest, _) = self.all.select(self.all.len().checked_sub(1)?)?;
        let (oldest, _) = self.all.select(0)?;
        let old = youngest.checked_sub(rule.threshold).map_or(0, |limit| self.all.count_to(limit));
        let pool = if old == 0 { self.all.len() } else { old };
        let share = u64::from(pool) * u64::from(rule.ratio.min(100)) / 100;
        let count = (share as u32).max(rule.min_candidates).clamp(1, pool);
        let last = self.all.select(count - 1)?;
        let span = (youngest - oldest).saturating_add(1) as f64;
        let weight = f64::from(rule.age_weight.min(100)) / 100.0;
        self.best(
            |key| key <= last,
            |mtime, u| weight * ((youngest - mtime).saturating_add(1) as f64 / span) + (1.0 - weight) * (1.0 - u),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    type Sections = BTreeMap<u32, (u32, u64)>;

    /// The kernel's walk over all candidates, in floating point.
    fn naive(sections: &Sections, candidates: &[u32], score: impl Fn(u64, f64) -> f64) -> Option<f64> {
        candidates
            .iter()
            .map(|section| sections[section])
            .map(|(valid, mtime)| score(mtime, f64::from(valid) / 512.0))
            .fold(None, |best: Option<f64>, score| Some(best.map_or(score, |best| best.max(score))))
    }

    proptest! {
        #[test]
        fn choices_are_the_best(
            ops in prop::collection::vec((0u32..40, prop::option::weighted(0.8, (1u32..512, 0u64..1000))), 1..120),
            threshold in 0u64..1200, ratio in 0u32..101, min_candidates in 0u32..12, age_weight in 0u32..101, later in 0u64..50,
        ) {
            let (mut ages, mut model) = (Ages::new(40, 512), Sections::new());
            for (section, state) in ops {
                ages.update(section, state);
                match state {
                    Some(state) => drop(model.insert(section, state)),
                    None => drop(model.remove(&section)),
                }
            }
            let all: Vec<u32> = model.keys().copied().collect();
            let now = 1000 + later;
            let score = |mtime: u64, u: f64| (1.0 - u) / (1.0 + u) * (now - mtime + 1) as f64;
            let chosen = ages.cost_benefit(now).map(|section| score(model[&section].1, f64::from(model[&section].0) / 512.0));
            prop_assert_eq!(chosen, naive(&model, &all, score));

            let rule = AgeThreshold { threshold, ratio, min_candidates, age_weight };
            let mut by_age = all.clone();
            by_age.sort_by_key(|section| (model[section].1, *section));
            if by_age.is_empty() {
                prop_assert_eq!(ages.age_threshold(&rule), None);
                return Ok(());
            }
            let (youngest, oldest) = (model[by_age.last().unwrap()].1, model[&by_age[0]].1);
            let mut pool: Vec<u32> = by_age.iter().copied().filter(|section| youngest - model[section].1 >= threshold).collect();
            if pool.is_empty() {
                pool = by_age;
            }
            let count = (pool.len() * ratio as usize / 100).max(min_candidates as usize).clamp(1, pool.len());
            pool.truncate(count);
            let weight = f64::from(age_weight) / 100.0;
            let score = |mtime: u64, u: f64| {
                weight * ((youngest - mtime + 1) as f64 / (youngest - oldest + 1) as f64) + (1.0 - weight) * (1.0 - u)
            };
            let section = ages.age_threshold(&rule).unwrap();
            prop_assert!(pool.contains(&section));
            let chosen = score(model[&section].1, f64::from(model[&section].0) / 512.0);
            prop_assert_eq!(Some(chosen), naive(&model, &pool, score));
        }
    }
}
