//! Sections by utilisation and age: what cost-benefit and age-threshold selection choose from.
//!
//! Both scores grow with age at a given utilisation, so the best section of a utilisation is its oldest one. The
//! sections are therefore sorted into [`CLASSES`] classes of utilisation, and a choice compares the oldest of each
//! class, a constant number of candidates whatever the number of sections, and few of them: a bound for each chunk of
//! classes rules out most. Updates are logarithmic.
//!
//! A section that is held (marked by a cleaner, or a log stands in it) is no candidate. While nothing else changes in
//! it, it stays where it is sorted in, on a short list of sections that do not count: marking a victim and releasing it
//! are cheap.

use std::collections::BTreeSet;

use crate::age_threshold::AgeThreshold;
use crate::ranked::Ranked;

/// Classes of utilisation. With sections of one segment each class is one count of valid blocks, so a choice is exact;
/// with larger sections the candidates of a class differ by less than 1/512 of a section.
const CLASSES: u32 = 512;

/// Lanes of the comparison: wide enough for any vector unit.
const LANES: usize = 8;
/// Classes with a bound: if that is not greater than the best so far, none of them is compared.
const CHUNK: usize = 32;
const CHUNKS: usize = CLASSES as usize / CHUNK;

/// Sections that are sorted in and do not count, at most: each look at the sorted ones looks at all of these.
const MOST_HIDDEN: usize = 16;

/// The sections by class and by age.
#[derive(Debug)]
pub(crate) struct Ages {
    section_blocks: u32,
    classes: Vec<BTreeSet<(u64, u32)>>,
    /// The age of the oldest of each class, infinite if the class is empty: what a choice reads, in one piece.
    oldest: Box<[f64; CLASSES as usize]>,
    /// The least of each chunk of those.
    chunks: [f64; CHUNKS],
    /// (1 - u) / (1 + u) for the utilisation u of each class.
    benefit: Box<[f64; CLASSES as usize]>,
    /// 1 - u.
    free: Box<[f64; CLASSES as usize]>,
    /// Class and time of each section that is sorted in.
    places: Vec<Option<(u16, u64)>>,
    /// Of those, the ones that are held.
    hidden: Vec<(u64, u32)>,
    /// By age alone; built when age-threshold selection is first used.
    ranks: Option<Ranked>,
}

/// The utilisation of a class.
fn utilisation(class: usize) -> f64 {
    class as f64 / f64::from(CLASSES)
}

impl Ages {
    pub(crate) fn new(section_blocks: u32) -> Ages {
        Ages {
            section_blocks,
            classes: vec![BTreeSet::new(); CLASSES as usize],
            oldest: Box::new([f64::INFINITY; CLASSES as usize]),
            chunks: [f64::INFINITY; CHUNKS],
            benefit: Box::new(core::array::from_fn(|class| (1.0 - utilisation(class)) / (1.0 + utilisation(class)))),
            free: Box::new(core::array::from_fn(|class| 1.0 - utilisation(class))),
            places: Vec::new(),
            hidden: Vec::with_capacity(MOST_HIDDEN),
            ranks: None,
        }
    }

    fn class(&self, valid: u32) -> u16 {
        (u64::from(valid) * u64::from(CLASSES) / u64::from(self.section_blocks)).min(u64::from(CLASSES) - 1) as u16
    }

    /// The oldest section of a class that counts.
    fn first(&self, class: usize) -> Option<(u64, u32)> {
        self.classes[class].iter().find(|entry| !self.hidden.contains(entry)).copied()
    }

    fn refresh(&mut self, class: u16) {
        let class = usize::from(class);
        let new = self.first(class).map_or(f64::INFINITY, |(mtime, _)| mtime as f64);
        let old = core::mem::replace(&mut self.oldest[class], new);
        let chunk = class / CHUNK;
        if new <= self.chunks[chunk] {
            self.chunks[chunk] = new;
        } else if old == self.chunks[chunk] {
            let times = &self.oldest[chunk * CHUNK..][..CHUNK];
            self.chunks[chunk] = times.iter().copied().fold(f64::INFINITY, f64::min);
        }
    }

    /// Sorts a section in, with `valid` valid blocks of a mean time of `mtime`; `None` takes it out. One that is held
    /// does not count.
    pub(crate) fn update(&mut self, section: u32, state: Option<(u32, u64)>, held: bool) {
        let new = state.map(|(valid, mtime)| (self.class(valid), mtime));
        if section as usize >= self.places.len() {
            self.places.resize(section as usize + 1, None);
        }
        let old = self.places[section as usize];
        if let Some((class, mtime)) = old {
            let entry = (mtime, section);
            let was_hidden = self.hidden.iter().position(|hidden| *hidden == entry);
            if old == new && (!held || was_hidden.is_some() || self.hidden.len() < MOST_HIDDEN) {
                match was_hidden {
                    Some(at) if !held => drop(self.hidden.swap_remove(at)),
                    None if held => self.hidden.push(entry),
                    _ => return,
                }
                self.refresh(class);
                return;
            }
            if let Some(at) = was_hidden {
                self.hidden.swap_remove(at);
            }
        }
        self.place(section, new.filter(|_| !held));
    }

    /// Moves a section to where it belongs.
    fn place(&mut self, section: u32, new: Option<(u16, u64)>) {
        let old = core::mem::replace(&mut self.places[section as usize], new);
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

    /// The oldest section of the class with the greatest score. `score` gets the weight of the class in `weights`,
    /// which falls from class to class, and the time of its oldest section. It must not fall with the weight nor rise
    /// with the time, and give minus infinity for an infinite time.
    fn best(&self, weights: &[f64; CLASSES as usize], score: impl Fn(f64, f64) -> f64) -> Option<u32> {
        let greater = |a: f64, b: f64| if a > b { a } else { b };
        // No score of a chunk is greater than that of its greatest weight with its least time.
        let bounds: [f64; CHUNKS] = core::array::from_fn(|chunk| score(weights[chunk * CHUNK], self.chunks[chunk]));
        let promising = (0..CHUNKS).fold(0, |best, chunk| if bounds[chunk] > bounds[best] { chunk } else { best });
        let mut best = (f64::NEG_INFINITY, 0);
        for chunk in core::iter::once(promising).chain(0..CHUNKS) {
            if bounds[chunk] <= best.0 {
                continue;
            }
            let (weights, times) = (&weights[chunk * CHUNK..][..CHUNK], &self.oldest[chunk * CHUNK..][..CHUNK]);
            let mut greatest = [f64::NEG_INFINITY; LANES];
            for (weights, times) in weights.chunks_exact(LANES).zip(times.chunks_exact(LANES)) {
                for ((greatest, weight), time) in greatest.iter_mut().zip(weights).zip(times) {
                    *greatest = greater(score(*weight, *time), *greatest);
                }
            }
            let [a, b, c, d, e, f, g, h] = greatest;
            let (left, right) = (greater(greater(a, e), greater(b, f)), greater(greater(c, g), greater(d, h)));
            let greatest = greater(left, right);
            if greatest > best.0 {
                best = (greatest, chunk * CHUNK);
            }
        }
        let (greatest, first) = best;
        let class = (first..first + CHUNK).find(|class| score(weights[*class], self.oldest[*class]) == greatest)?;
        self.first(class).map(|(_, section)| section)
    }

    /// The section with the greatest (1 - u) * age / (1 + u), age counted from `now` (`get_cb_cost`, without its
    /// rounding to hundredths).
    pub(crate) fn cost_benefit(&self, now: u64) -> Option<u32> {
        let now = now as f64 + 1.0;
        // A time that is still to come counts as no age.
        self.best(&self.benefit, |benefit, mtime| {
            if mtime == f64::INFINITY { f64::NEG_INFINITY } else { benefit * (now - mtime).max(0.0) }
        })
    }

    /// Sorts all sections by age, if they are not.
    fn sort_by_age(&mut self) {
        let sections =
            || (0..).zip(&self.places).filter_map(|(section, place)| place.map(|(_, mtime)| (mtime, section)));
        self.ranks.get_or_insert_with(|| Ranked::new(sections().collect()));
    }

    /// The section with so many older ones before it that count.
    fn ranked(&self, ranks: &Ranked, rank: u32) -> Option<(u64, u32)> {
        let mut hidden = 0;
        loop {
            let entry = ranks.select(rank + hidden)?;
            // Those before it that do not count are to be passed as well, and itself if it is one.
            let before = self.hidden.iter().filter(|other| **other <= entry).count() as u32;
            if before == hidden {
                return Some(entry);
            }
            hidden = before;
        }
    }

    /// Among the oldest sections the one with the greatest weighted sum of age and free space (`atgc_lookup_victim`).
    ///
    /// Candidates are those at least `threshold` seconds older than the youngest section, or all if there is none; of
    /// them the oldest `ratio` per cent, but at least `min_candidates`, and those as old as the last of these.
    pub(crate) fn age_threshold(&mut self, rule: &AgeThreshold) -> Option<u32> {
        self.sort_by_age();
        let ranks = self.ranks.as_ref()?;
        let all = ranks.len() - self.hidden.len() as u32;
        let shown = |entry: &(u64, u32)| !self.hidden.contains(entry);
        let (youngest, _) = ranks.last().filter(shown).or_else(|| self.ranked(ranks, all.checked_sub(1)?))?;
        let (oldest, _) = self.ranked(ranks, 0)?;
        let to = |limit: u64| {
            let hidden = self.hidden.iter().filter(|(mtime, _)| *mtime <= limit).count() as u32;
            ranks.count_to(limit) - hidden
        };
        let old = youngest.checked_sub(rule.threshold).map_or(0, to);
        let pool = if old == 0 { all } else { old };
        let share = u64::from(pool) * u64::from(rule.ratio.min(100)) / 100;
        let count = (share as u32).max(rule.min_candidates).clamp(1, pool);
        let (last, _) = self.ranked(ranks, count - 1)?;
        let (last, youngest) = (last as f64, youngest as f64 + 1.0);
        let weight = f64::from(rule.age_weight.min(100)) / 100.0;
        let per_second = weight / (youngest - oldest as f64);
        self.best(&self.free, |free, mtime| {
            let score = per_second * (youngest - mtime) + (1.0 - weight) * free;
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

    /// An age begins with 1, so that emptiness counts among sections that were written a moment ago.
    #[test]
    fn what_is_new_has_an_age() {
        let mut ages = Ages::new(512);
        ages.update(0, Some((400, 98)), false);
        ages.update(1, Some((1, 99)), false);
        assert_eq!(ages.cost_benefit(100), Some(1));
        // A time that is still to come is no age.
        ages.update(1, Some((1, 300)), false);
        assert_eq!(ages.cost_benefit(100), Some(0));
    }

    /// Neither by itself nor by making room for one that is not old enough.
    #[test]
    fn who_is_held_is_no_candidate_among_the_old() {
        let mut ages = Ages::new(512);
        for (section, valid, mtime) in [(0, 400, 10), (1, 300, 10), (2, 1, 20), (3, 200, 110)] {
            ages.update(section, Some((valid, mtime)), false);
        }
        ages.update(1, Some((300, 10)), true);
        let rule = AgeThreshold { threshold: 100, ratio: 100, min_candidates: 1, age_weight: 0 };
        assert_eq!(ages.age_threshold(&rule), Some(0));
    }

    proptest! {
        #[test]
        fn choices_are_the_best(
            ops in prop::collection::vec((0u32..40, prop::option::weighted(0.8, (1u32..512, 0u64..1000)), 0u8..4), 1..120),
            threshold in 0u64..1200, ratio in 0u32..101, min_candidates in 0u32..12, age_weight in 0u32..101, later in 0u64..50,
        ) {
            let (mut ages, mut model) = (Ages::new(512), Sections::new());
            let mut known = Sections::new();
            for (section, state, held) in ops {
                // One of four marks a section as it is, another one marks and changes it.
                let state = if held == 0 { known.get(&section).copied() } else { state };
                ages.update(section, state, held < 2);
                match state {
                    Some(state) => drop(known.insert(section, state)),
                    None => drop(known.remove(&section)),
                }
                match state.filter(|_| held >= 2) {
                    Some(state) => drop(model.insert(section, state)),
                    None => drop(model.remove(&section)),
                }
                if held == 3 {
                    // Ranks are kept from here on.
                    ages.age_threshold(&AgeThreshold::default());
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
