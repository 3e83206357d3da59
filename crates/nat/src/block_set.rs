//! A set of NAT blocks that finds its next member in a few loads, however large the table is.
//!
//! ```text
//! level 2   1                                  a bit: some word of level 1 below it is not zero
//! level 1   1 . 1 .                            a bit: a word of level 0 is not zero
//! level 0   . 1 . .  . . . .  1 1 . .  . . . . a bit: the NAT block is a member
//! ```
//!
//! # Locking rules
//!
//! No locks. `insert` sets the bit on every level, from the bottom up; `remove` clears the bottom bit and, when that
//! empties the word, the bit above, and then looks at the word again: if a member came meanwhile it sets the bit again.
//! Both sides use read-modify-writes of the upper word, which have one order: either the remover comes after the
//! inserter and sees the member, or the inserter's bit is the later one. So a member is never lost from sight for good;
//! for the moment between clearing and looking again it may be. A caller that must be certain scans the blocks
//! themselves.

use f2fs_sync::atomic::{AtomicU64, Ordering};
use f2fs_sync::protocol_value;

use crate::size::WORD_BITS;

/// A concurrent set of NAT block numbers below a fixed bound.
#[derive(Debug)]
pub(crate) struct BlockSet {
    levels: Vec<Box<[AtomicU64]>>,
}

fn mask(index: usize) -> u64 {
    1 << (index % WORD_BITS)
}

impl BlockSet {
    /// The set of none, or of all, of the numbers below `len`.
    pub(crate) fn new(len: u32, full: bool) -> BlockSet {
        let mut levels = Vec::new();
        let mut bits = len as usize;
        loop {
            let words = bits.div_ceil(WORD_BITS).max(1);
            let word = |index: usize| {
                let used = bits.saturating_sub(index * WORD_BITS).min(WORD_BITS);
                if full && used > 0 { u64::MAX >> (64 - used) } else { 0 }
            };
            levels.push((0..words).map(|index| AtomicU64::new(word(index))).collect());
            if words == 1 {
                return BlockSet { levels };
            }
            bits = words;
        }
    }

    /// Whether the block is a member.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn contains(&self, block: u32) -> bool {
        let index = block as usize;
        self.levels[0][index / WORD_BITS].load(Ordering::Acquire) & mask(index) != 0
    }

    /// Makes the block a member. The thread that removes it sees everything that the caller wrote before.
    pub(crate) fn insert(&self, block: u32) {
        self.raise(0, block as usize);
    }

    fn raise(&self, from: usize, mut index: usize) {
        for level in &self.levels[from..] {
            level[index / WORD_BITS].fetch_or(mask(index), Ordering::AcqRel);
            index /= WORD_BITS;
        }
    }

    /// Removes the block; tells whether it was a member: of several removers one is told so.
    pub(crate) fn remove(&self, block: u32) -> bool {
        let index = block as usize;
        let old = self.levels[0][index / WORD_BITS].fetch_and(!mask(index), Ordering::AcqRel);
        let was = old & mask(index) != 0;
        if was && old & !mask(index) == 0 {
            self.settle(1, index / WORD_BITS);
        }
        was
    }

    /// The word `index` below `level` became zero.
    fn settle(&self, level: usize, index: usize) {
        let Some(words) = self.levels.get(level) else { return };
        let old = words[index / WORD_BITS].fetch_and(!mask(index), Ordering::AcqRel);
        let again = protocol_value!("nat_set_no_second_look", self.levels[level - 1][index].load(Ordering::Acquire), 0);
        if again != 0 {
            self.raise(level, index);
        } else if old & mask(index) != 0 && old & !mask(index) == 0 {
            self.settle(level + 1, index / WORD_BITS);
        }
    }

    /// The first member at or behind `from`.
    pub(crate) fn next(&self, from: u32) -> Option<u32> {
        let mut level = 0;
        let mut index = from as usize;
        loop {
            let words = &self.levels[level];
            let rest =
                words.get(index / WORD_BITS).map_or(0, |word| word.load(Ordering::Acquire) >> (index % WORD_BITS));
            if rest == 0 {
                index = index / WORD_BITS + 1;
                level += 1;
                if level == self.levels.len() {
                    return None;
                }
            } else {
                index += rest.trailing_zeros() as usize;
                if level == 0 {
                    return Some(index as u32);
                }
                level -= 1;
                index *= WORD_BITS;
            }
        }
    }

    /// The first member at or behind `from`, else the first one of all.
    pub(crate) fn next_around(&self, from: u32) -> Option<u32> {
        self.next(from).or_else(|| self.next(0))
    }

    /// The members at the time they are passed, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        let mut from = 0;
        std::iter::from_fn(move || {
            let found = self.next(from)?;
            from = found + 1;
            Some(found)
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Whether each bit says if something is below it: then a search takes a few loads.
    fn upper_levels_say_where(set: &BlockSet) -> bool {
        set.levels.windows(2).all(|levels| {
            levels[0].iter().enumerate().all(|(index, word)| {
                let says = levels[1][index / WORD_BITS].load(Ordering::Relaxed) & mask(index) != 0;
                says == (word.load(Ordering::Relaxed) != 0)
            })
        })
    }

    #[test]
    fn who_comes_while_a_word_is_found_empty_is_seen() {
        let set = BlockSet::new(300_000, false);
        for block in [5, 299_999] {
            set.insert(block);
            // Another thread removed the last member of the word before, and tells the levels above now.
            set.settle(1, block as usize / WORD_BITS);
            assert_eq!(set.next(0), Some(block));
            assert!(upper_levels_say_where(&set));
            set.remove(block);
        }
    }

    #[test]
    fn it_agrees_with_a_plain_set() {
        for len in [1, 63, 64, 65, 4096, 4097, 300_000] {
            let set = BlockSet::new(len, false);
            let mut plain = BTreeSet::new();
            let mut random = fastrand::Rng::with_seed(len.into());
            for _ in 0..2000 {
                let block = random.u32(..len);
                let what = random.u8(..16);
                if what < 4 {
                    assert_eq!(set.remove(block), plain.remove(&block));
                } else if what < 13 {
                    set.insert(block);
                    plain.insert(block);
                } else {
                    assert_eq!(set.next(block), plain.range(block..).next().copied());
                    assert_eq!(set.contains(block), plain.contains(&block));
                }
            }
            assert!(set.iter().eq(plain.iter().copied()));
            assert!(upper_levels_say_where(&set), "{len}");
            for block in plain {
                assert!(set.remove(block));
            }
            assert_eq!(set.next(0), None);
            assert!(upper_levels_say_where(&set), "{len}");
        }
    }

    #[test]
    fn a_full_set_ends_at_its_bound() {
        for len in [1, 64, 65, 5000] {
            let set = BlockSet::new(len, true);
            assert_eq!(set.iter().count(), len as usize);
            assert_eq!(set.next(len), None);
            assert_eq!(set.next_around(len), Some(0));
            for block in 0..len {
                assert!(set.remove(block));
            }
            assert_eq!(set.next_around(len / 2), None);
        }
    }
}
