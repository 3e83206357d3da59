//! A set of small numbers. Its next member is found in three or four steps at any size.

/// Numbers below a bound, as a tree of 64-bit words: a bit of an inner word says that the word below it is not zero.
#[derive(Clone, Debug)]
pub(crate) struct BitSet {
    levels: Vec<Box<[u64]>>,
    len: u32,
}

impl BitSet {
    /// The empty set of numbers below `bound`.
    pub(crate) fn new(bound: u32) -> BitSet {
        let mut levels = Vec::new();
        let mut bits = bound as usize;
        loop {
            let words = bits.div_ceil(64).max(1);
            levels.push(vec![0u64; words].into_boxed_slice());
            if words == 1 {
                return BitSet { levels, len: 0 };
            }
            bits = words;
        }
    }

    /// All numbers below `bound`.
    pub(crate) fn full(bound: u32) -> BitSet {
        let mut set = BitSet::new(bound);
        let mut bits = bound as usize;
        for level in &mut set.levels {
            for (index, word) in level.iter_mut().enumerate() {
                let here = bits.saturating_sub(index * 64).min(64);
                *word = if here == 0 { 0 } else { u64::MAX >> (64 - here) };
            }
            bits = bits.div_ceil(64);
        }
        set.len = bound;
        set
    }

    /// Members.
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// Whether a number is a member; false beyond the bound.
    pub(crate) fn contains(&self, number: u32) -> bool {
        self.levels[0].get(number as usize / 64).is_some_and(|word| word & (1 << (number % 64)) != 0)
    }

    /// Adds a number below the bound; tells whether it was new.
    pub(crate) fn insert(&mut self, number: u32) -> bool {
        if self.contains(number) {
            return false;
        }
        let mut at = number as usize;
        for level in &mut self.levels {
            let word = &mut level[at / 64];
            let known = *word != 0;
            *word |= 1 << (at % 64);
            if known {
                break;
            }
            at /= 64;
        }
        self.len += 1;
        true
    }

    /// Removes a number; tells whether it was there.
    pub(crate) fn remove(&mut self, number: u32) -> bool {
        if !self.contains(number) {
            return false;
        }
        let mut at = number as usize;
        for level in &mut self.levels {
            let word = &mut level[at / 64];
            *word &= !(1 << (at % 64));
            if *word != 0 {
                break;
            }
            at /= 64;
        }
        self.len -= 1;
        true
    }

    /// The smallest member at or above `from`.
    pub(crate) fn next(&self, from: u32) -> Option<u32> {
        let mut at = from as usize;
        for (height, level) in self.levels.iter().enumerate() {
            let &word = level.get(at / 64)?;
            let found = word & (u64::MAX << (at % 64));
            if found != 0 {
                let mut down = at / 64 * 64 + found.trailing_zeros() as usize;
                for lower in self.levels[..height].iter().rev() {
                    down = down * 64 + lower[down].trailing_zeros() as usize;
                }
                return Some(down as u32);
            }
            at = at / 64 + 1;
        }
        None
    }

    /// The smallest member, going round: first at or above `from`, then from the beginning.
    pub(crate) fn next_around(&self, from: u32) -> Option<u32> {
        self.next(from).or_else(|| self.next(0))
    }
}

#[cfg(test)]
mod tests {
    use super::BitSet;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Words have bits in the levels above as long as one number is left in them, and no longer.
    #[test]
    fn what_is_left_is_found_from_far_away() {
        let mut set = BitSet::new(300_000);
        let numbers = [5, 70, 71, 4100, 4101, 4200, 299_998, 299_999];
        for number in numbers {
            assert!(set.insert(number) && !set.insert(number));
        }
        for (at, number) in numbers.into_iter().enumerate() {
            assert_eq!(set.next(0), Some(number));
            assert!(set.remove(number) && !set.remove(number) && !set.contains(number));
            let left = &numbers[at + 1..];
            for from in [0, 6, 64, 70, 4096, 4160, 5000, 262_144] {
                assert_eq!(set.next(from), left.iter().copied().find(|number| *number >= from), "{from} of {left:?}");
            }
            assert_eq!(set.len() as usize, left.len());
        }
        assert_eq!((set.next(0), set.next_around(9)), (None, None));
    }

    #[test]
    fn a_full_set_ends_at_its_bound() {
        for bound in [0, 1, 63, 64, 65, 70, 4096, 4097, 5000] {
            let set = BitSet::full(bound);
            assert_eq!((set.len(), set.next(0)), (bound, (bound > 0).then_some(0)));
            assert!((0..bound).all(|number| set.contains(number)));
            assert!((bound..bound + 130).all(|number| !set.contains(number) && set.next(number).is_none()), "{bound}");
        }
    }

    proptest! {
        #[test]
        fn agrees_with_a_tree(bound in 1u32..300_000, full in any::<bool>(), ops in prop::collection::vec((any::<u32>(), any::<bool>()), 1..200)) {
            let (mut set, mut model) = (BitSet::new(bound), BTreeSet::new());
            if full {
                (set, model) = (BitSet::full(bound), (0..bound).collect());
            }
            for (number, add) in ops {
                let number = number % bound;
                if add {
                    prop_assert_eq!(set.insert(number), model.insert(number));
                } else {
                    let near = model.range(number..).next().copied().unwrap_or(number);
                    prop_assert_eq!(set.remove(near), model.remove(&near));
                }
                prop_assert_eq!(set.len() as usize, model.len());
                prop_assert_eq!(set.next(number), model.range(number..).next().copied());
                prop_assert_eq!(set.next_around(number), model.range(number..).chain(&model).next().copied());
            }
            prop_assert_eq!(set.next(bound), None);
        }
    }
}
