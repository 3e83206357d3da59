//! Sections by utilisation and age: what cost-benefit and age-threshold selection choose from.
//!
//! Both scores grow with age at a given utilisation, so the best section of a utilisation is its oldest one. The sections
//! are therefore sorted into [`CLASSES`] classes of utilisation, and a choice compares the oldest of each class: a constant
//! number of candidates, whatever the number of sections. Updates are logarithmic.

use std::collections::BTreeSet;

use crate::ranked::Ranked;
use crate::victim::AgeThreshold;

/// Classes of utilisation. With sections of one segment each class is one count of valid blocks, so a choice is exact; with
/// larger sections the candidates of a class differ by less than 1/512 of a section.
const CLASSES: u32 = 512;

/// Lanes of the comparison: wide enough for any vector unit.
const LANES: usize = 8;

/// The sections by class and by age.
#[derive(Debug)]
pub(crate) struct Ages {
    section_blocks: u32,
    classes: Vec<BTreeSet<(u64, u32)>>,
    /// The age of the oldest of each class, infinite if the class is empty: what a choice reads, in one piece.
    oldest: Box<[f64; CLASSES as usize]>,
    /// (1 - u) / (1 + u) for the utilisation u of each class.
    benefit: Box<[f64; CLASSES as usize]>,
    /// Class and time of each section that is sorted in.
    places: Vec<Option<(u16, u64)>>,
    /// By age alone; built when age-threshold selection is first used.
    ranks: Option<Ranked>,
}

/// The utilisation of a class.
fn utilisation(class: usize) -> f64 {
    class as f64 / f64::from(CLASSES)
}

impl Ages {
    pub(crate) fn new(sections: u32, section_blocks: u32) -> Ages {
        Ages {
            section_blocks,
            classes: vec![BTreeSet::new(); CLASSES as usize],
            oldest: Box::new([f64::INFINITY; CLASSES as usize]),
            benefit: Box::new(core::array::from_fn(|class| (1.0 - utilisation(class)) / (1.0 + utilisation(class)))),
            places: vec![None; sections as usize],
            ranks: None,
        }
    }

    fn class(&self, valid: u32) -> u16 {
        (u64::from(valid) * u64::from(CLASSES) / u64::from(self.section_blocks)).min(u64::from(CLASSES) - 1) as u16
    }

    fn refresh(&mut self, class: u16) {
        let first = self.classes[usize::from(class)].first();
        self.oldest[usize::from(class)] = first.map_or(f64::INFINITY, |(mtime, _)| *mtime as f64);
    }

    /// Sorts a section in, with `valid` valid blocks of a mean time of `mtime`; `None` takes it out.
    pub(crate) fn update(&mut self, section: u32, state: Option<(u32, u64)>) {
        let new = state.map(|(valid, mtime)| (self.class(valid), mtime));
        let old = core::mem::replace(&mut self.places[section as usize], new);
        if old == new {
            return;
        }
        if let Some((class, mtime)) = old {
            self.classes[usize::from(class)].remove(&(mtime, section));
            self.refresh(class);
        }
        if let Some((class, mtime)) = new {
            self.classes[usize::from(class)].insert((mtime, section));
            self.refresh(class);
        }
        let (old, new) = (old.map(|(_, mtime)| mtime), new.map(|(_, mtime)| mtime));
        if let Some(ranks) = self.ranks.as_mut().filter(|_| old != new) {
            if let Some(mtime) = old {
                ranks.remove(mtime, section);
            }
            if let Some(mtime) = new {
                ranks.insert(mtime, section);
            }
        }
    }

    /// The oldest section of the class with the greatest score. `score` gets a class and the time of its oldest section, and
    /// must give minus infinity for an infinite time.
    fn best(&self, score: impl Fn(usize, f64) -> f64) -> Option<u32> {
        let mut best = [(f64::NEG_INFINITY, 0); LANES];
        for (chunk, oldest) in self.oldest.chunks_exact(LANES).enumerate() {
            for (lane, (best, mtime)) in best.iter_mut().zip(oldest).enumerate() {
                let class = chunk * LANES + lane;
                let score = score(class, *mtime);
                *best = if score > best.0 { (score, class) } else { *best };
            }
        }
        let (_, class) = best.into_iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
        self.classes[class].first().map(|(_, section)| *section)
    }

    /// The section with the greatest (1 - u) * age / (1 + u), age counted from `now` (`get_cb_cost`, without its rounding
    /// to hundredths).
    pub(crate) fn cost_benefit(&self, now: u64) -> Option<u32> {
        let now = now as f64 + 1.0;
        self.best(|class, mtime| self.benefit[class] * (now - mtime))
    }

    /// The sections by age.
    fn ranks(&mut self) -> &Ranked {
        let sections =
            || (0..).zip(&self.places).filter_map(|(section, place)| place.map(|(_, mtime)| (mtime, section)));
        self.ranks.get_or_insert_with(|| Ranked::new(sections().collect()))
    }

    /// Among the oldest sections the one with the greatest weighted sum of age and free space (`atgc_lookup_victim`).
    ///
    /// Candidates are those at least `threshold` seconds older than the youngest section, or all if there is none; of
    /// them the oldest `ratio` per cent, but at least `min_candidates`, and those as old as the last of these.
    pub(crate) fn age_threshold(&mut self, rule: &AgeThreshold) -> Option<u32> {
        let ranks = self.ranks();
        let (youngest, _) = ranks.last()?;
        let (oldest, _) = ranks.first()?;
        let old = youngest.checked_sub(rule.threshold).map_or(0, |limit| ranks.count_to(limit));
        let pool = if old == 0 { ranks.len() } else { old };
        let share = u64::from(pool) * u64::from(rule.ratio.min(100)) / 100;
        let count = (share as u32).max(rule.min_candidates).clamp(1, pool);
        let (last, _) = ranks.select(count - 1)?;
        let (last, youngest) = (last as f64, youngest as f64 + 1.0);
        let weight = f64::from(rule.age_weight.min(100)) / 100.0;
        let per_second = weight / (youngest - oldest as f64);
        self.best(|class, mtime| {
            let score = per_second * (youngest - mtime) + (1.0 - weight) * (1.0 - utilisation(class));
            if mtime <= last { score } else { f64::NEG_INFINITY }
        })
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
            let score = |mtime: u64, u: f64| (1.0 - u) / (1.0 + u) * (now + 1 - mtime) as f64;
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
            let last = model[&pool[count - 1]].1;
            pool.retain(|section| model[section].1 <= last);
            let weight = f64::from(age_weight) / 100.0;
            let per_second = weight / (youngest - oldest + 1) as f64;
            let score = |mtime: u64, u: f64| per_second * (youngest - mtime + 1) as f64 + (1.0 - weight) * (1.0 - u);
            let section = ages.age_threshold(&rule).unwrap();
            prop_assert!(pool.contains(&section));
            let chosen = score(model[&section].1, f64::from(model[&section].0) / 512.0);
            prop_assert_eq!(Some(chosen), naive(&model, &pool, score));
        }
    }
}
