//! Which places of an array are taken, for searches that would otherwise look into each.

use f2fs_sync::atomic::{AtomicU64, Ordering::SeqCst};

/// A bit for each place; bits are set and never cleared.
#[derive(Debug)]
pub(crate) struct Present {
    words: Box<[AtomicU64]>,
}

impl Present {
    /// No place of `places` is taken.
    pub(crate) fn new(places: usize) -> Present {
        Present { words: (0..places.div_ceil(64)).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Says that the place is taken; before what is put there can be found.
    pub(crate) fn set(&self, place: usize) {
        self.words[place / 64].fetch_or(1 << (place % 64), SeqCst);
    }

    /// The first place that is taken from `place` on.
    pub(crate) fn next(&self, place: usize) -> Option<usize> {
        let mut mask = u64::MAX << (place % 64);
        for (number, word) in self.words.iter().enumerate().skip(place / 64) {
            let taken = word.load(SeqCst) & mask;
            if taken != 0 {
                return Some(number * 64 + taken.trailing_zeros() as usize);
            }
            mask = u64::MAX;
        }
        None
    }

    /// The last place that is taken before `place`.
    pub(crate) fn previous(&self, place: usize) -> Option<usize> {
        let last = place.min(self.words.len() * 64).checked_sub(1)?;
        let mut mask = u64::MAX >> (63 - last % 64);
        for number in (0..=last / 64).rev() {
            let taken = self.words[number].load(SeqCst) & mask;
            if taken != 0 {
                return Some(number * 64 + 63 - taken.leading_zeros() as usize);
            }
            mask = u64::MAX;
        }
        None
    }

    /// How many are taken.
    pub(crate) fn count(&self) -> usize {
        self.words.iter().map(|word| word.load(SeqCst).count_ones() as usize).sum()
    }

    /// Bytes on the heap.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.words)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn places_are_found_in_both_directions() {
        let present = Present::new(300);
        assert_eq!((present.next(0), present.previous(usize::MAX)), (None, None));
        let taken = [0, 5, 63, 64, 127, 200, 299];
        taken.into_iter().for_each(|place| present.set(place));
        assert_eq!(present.count(), taken.len());
        for place in 0..310 {
            assert_eq!(present.next(place), taken.into_iter().find(|&at| at >= place), "from {place}");
            assert_eq!(present.previous(place), taken.into_iter().rev().find(|&at| at < place), "before {place}");
        }
    }
}
