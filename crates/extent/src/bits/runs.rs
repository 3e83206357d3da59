//! Runs of blocks with equal bits, as a map of intervals: the form in which long ranges are kept.
//!
//! The map is canonical: runs are disjoint, none is without bits, and neighbours differ.

use std::collections::BTreeMap;

use super::flags::Bits;
use crate::range::BlockRange;

/// Blocks that have the same bits; their neighbours on both sides have others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// The blocks.
    pub range: BlockRange,
    /// The bits that each of them has.
    pub bits: Bits,
}

/// A map of runs.
#[derive(Debug, Default)]
pub(super) struct Runs {
    /// By its first block: the last block and the bits of each run.
    map: BTreeMap<u64, (u64, Bits)>,
}

impl Runs {
    pub(super) fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// The run of the block; a run without bits reaches from the last run before it to the next one after it.
    pub(super) fn at(&self, block: u64) -> Run {
        let before = self.map.range(..=block).next_back().map(|(_, &(last, bits))| (last, bits));
        let run =
            |first, last, bits| Run { range: BlockRange::new(first, last).unwrap_or(BlockRange::one(block)), bits };
        if let Some((&first, &(last, bits))) = self.map.range(..=block).next_back()
            && block <= last
        {
            return run(first, last, bits);
        }
        let first = before.map_or(0, |(last, _)| last + 1);
        let last = self.map.range(block..).next().map_or(u64::MAX, |(&next, _)| next - 1);
        run(first, last, Bits::NONE)
    }

    /// The runs, those without bits included, that touch `range`, cut to it.
    pub(super) fn within(&self, range: BlockRange) -> impl Iterator<Item = Run> + '_ {
        let mut next = Some(range.first());
        std::iter::from_fn(move || {
            let run = self.at(next?);
            let range = run.range.intersection(range)?;
            next = run.range.last().checked_add(1);
            Some(Run { range, ..run })
        })
    }

    /// Changes the bits of a range; how many blocks were changed.
    pub(super) fn change(&mut self, range: BlockRange, set: Bits, clear: Bits) -> u128 {
        let old: Vec<Run> = self.within(range).collect();
        self.cut(range);
        let mut changed = 0;
        for run in old {
            let bits = run.bits.changed(set, clear);
            if bits != run.bits {
                changed += run.range.blocks();
            }
            if !bits.is_empty() {
                self.map.insert(run.range.first(), (run.range.last(), bits));
            }
        }
        self.join(range);
        changed
    }

    /// Takes the range out: afterwards nothing is known of it.
    pub(super) fn cut(&mut self, range: BlockRange) {
        let from = self.at(range.first());
        if from.range.first() < range.first() && !from.bits.is_empty() {
            self.map.insert(from.range.first(), (range.first() - 1, from.bits));
            self.map.insert(range.first(), (from.range.last(), from.bits));
        }
        let to = self.at(range.last());
        if range.last() < to.range.last() && !to.bits.is_empty() {
            self.map.insert(range.last() + 1, (to.range.last(), to.bits));
        }
        // What begins inside goes, the one that was split off last as well.
        let inside: Vec<u64> = self.map.range(range.first()..=range.last()).map(|(&first, _)| first).collect();
        for first in inside {
            self.map.remove(&first);
        }
    }

    /// Joins neighbours with equal bits that touch the range or its borders.
    fn join(&mut self, range: BlockRange) {
        let start = self.map.range(..range.first()).next_back().map_or(range.first(), |(&first, _)| first);
        let end = range.last().saturating_add(1);
        let mut keys = self.map.range(start..=end).map(|(&first, _)| first).collect::<Vec<_>>().into_iter();
        let Some(mut current) = keys.next() else { return };
        for key in keys {
            let (Some(&(last, bits)), Some(&(next_last, next_bits))) = (self.map.get(&current), self.map.get(&key))
            else {
                continue;
            };
            if last.checked_add(1) == Some(key) && bits == next_bits {
                self.map.remove(&key);
                self.map.insert(current, (next_last, bits));
            } else {
                current = key;
            }
        }
    }

    /// How many runs have bits.
    pub(super) fn len(&self) -> usize {
        self.map.len()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    fn range(first: u64, last: u64) -> BlockRange {
        BlockRange::new(first, last).expect("a range of blocks")
    }

    #[test]
    fn runs_split_and_join() {
        let mut runs = Runs::default();
        assert_eq!(runs.change(range(10, 19), Bits::DIRTY, Bits::NONE), 10);
        assert_eq!(runs.change(range(15, 24), Bits::NEW, Bits::NONE), 10);
        assert_eq!(runs.len(), 3);
        assert_eq!(runs.at(16), Run { range: range(15, 19), bits: Bits::DIRTY | Bits::NEW });
        assert_eq!(runs.at(9), Run { range: range(0, 9), bits: Bits::NONE });
        assert_eq!(runs.at(25), Run { range: range(25, u64::MAX), bits: Bits::NONE });
        assert_eq!(runs.change(range(0, u64::MAX), Bits::NONE, Bits::NEW), 10);
        assert_eq!(runs.len(), 1);
        assert_eq!(runs.change(range(20, u64::MAX), Bits::DIRTY, Bits::NONE), u128::from(u64::MAX) - 19);
        assert_eq!(runs.at(u64::MAX), Run { range: range(10, u64::MAX), bits: Bits::DIRTY });
        runs.cut(range(100, 200));
        assert_eq!(runs.len(), 2);
        assert_eq!(runs.change(BlockRange::ALL, Bits::NONE, Bits::ALL), u128::from(u64::MAX) - 110);
        assert!(runs.is_empty());
    }

    #[test]
    fn a_change_joins_its_neighbour_behind() {
        let mut runs = Runs::default();
        for (first, last, bits) in [(10, 19, Bits::NEW), (30, 39, Bits::DIRTY), (20, 29, Bits::DIRTY)] {
            assert_eq!(runs.change(range(first, last), bits, Bits::NONE), 10);
        }
        assert_eq!(runs.len(), 2);
        for block in [20, 29, 30, 39] {
            assert_eq!(runs.at(block), Run { range: range(20, 39), bits: Bits::DIRTY });
        }
        // Two at once: each of the three runs that it changes becomes that of its neighbour.
        runs.change(range(25, 50), Bits::NEW, Bits::NONE);
        runs.change(range(0, 24), Bits::NEW | Bits::DIRTY, Bits::NONE);
        assert_eq!((runs.len(), runs.at(30).range), (2, range(0, 39)));
        assert_eq!(runs.at(40), Run { range: range(40, 50), bits: Bits::NEW });
    }

    #[test]
    fn within_covers_the_range_without_gaps() {
        let mut runs = Runs::default();
        runs.change(range(5, 7), Bits::DIRTY, Bits::NONE);
        runs.change(range(u64::MAX - 1, u64::MAX), Bits::NEW, Bits::NONE);
        for (first, last) in [(0, 4), (0, 5), (6, 6), (6, 10), (0, u64::MAX), (u64::MAX, u64::MAX)] {
            let mut next = u128::from(first);
            for run in runs.within(range(first, last)) {
                assert_eq!(u128::from(run.range.first()), next);
                next = u128::from(run.range.last()) + 1;
            }
            assert_eq!(next, u128::from(last) + 1);
        }
    }
}
