//! The words of a range: the words, and the bytes within them.

use crate::geometry::BLOCKS_PER_WORD;
use crate::range::BlockRange;
use crate::word;

/// The words that a range of mapped blocks touches, ascending: the number of each, and the bytes that the range has
/// there.
#[derive(Clone)]
pub(crate) struct Words {
    range: BlockRange,
    next: u64,
}

impl Words {
    #[inline]
    pub(crate) fn of(range: BlockRange) -> Words {
        Words { range, next: range.first() / BLOCKS_PER_WORD }
    }
}

impl Iterator for Words {
    type Item = (u64, u64);

    #[inline]
    fn next(&mut self) -> Option<(u64, u64)> {
        let number = self.next;
        if number > self.range.last() / BLOCKS_PER_WORD {
            return None;
        }
        self.next += 1;
        Some((number, bytes_in(number, self.range)))
    }
}

/// The bytes of word `number` that belong to `range`, which touches it.
#[inline]
pub(crate) fn bytes_in(number: u64, range: BlockRange) -> u64 {
    let base = number * BLOCKS_PER_WORD;
    let first = range.first().max(base) - base;
    let last = range.last().min(base + BLOCKS_PER_WORD - 1) - base;
    word::mask(first, last)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_range() {
        let words: Vec<_> = Words::of(BlockRange::new(6, 17).unwrap()).collect();
        assert_eq!(words, [(0, word::mask(6, 7)), (1, word::mask(0, 7)), (2, word::mask(0, 1))]);
        assert_eq!(Words::of(BlockRange::one(9)).collect::<Vec<_>>(), [(1, word::mask(1, 1))]);
    }
}
