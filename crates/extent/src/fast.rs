//! The fast path: locks that nobody stands in the way of, taken and released in the words of their blocks.
//!
//! The rules are those of [`table`](crate::table): words first, then the mark of the line, then the hull; what cannot
//! be had whole is put back before anything else.

use f2fs_sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use f2fs_sync::{protocol_never, protocol_value};

use crate::claim::Claim;
use crate::directory::{Directory, Line, Mark, line_of};
use crate::geometry::{BLOCKS_PER_WORD, WORDS_PER_LINE};
use crate::order::first_guess;
use crate::range::BlockRange;
use crate::table::ExtentTable;
use crate::word::{self, Mode, QUEUED};
use crate::words::Words;

/// The modes, for [`ExtentTable::take_one`].
pub(crate) const SHARED: bool = false;
pub(crate) const EXCLUSIVE: bool = true;

/// Where a range inside one word is: the word, and the bytes of the range.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InWord<'a> {
    word: &'a AtomicU64,
    bytes: u64,
}

/// Takes blocks of one word in one compare-and-swap (again if other blocks of the word change meanwhile).
#[inline]
fn take_word(word: &AtomicU64, bytes: u64, mode: Mode) -> bool {
    let mut seen = first_guess(word);
    loop {
        let Some(taken) = mode.take(seen, bytes) else { return false };
        match word.compare_exchange_weak(seen, taken, SeqCst, Relaxed) {
            Ok(_) => return true,
            Err(now) => seen = now,
        }
    }
}

impl ExtentTable {
    /// The word, if its line is there.
    #[inline]
    pub(crate) fn word(&self, number: u64) -> Option<&AtomicU64> {
        self.spot(number).map(|(word, _)| word)
    }

    /// The word, if its line is there, and the mark of its line; the first line has none.
    #[inline]
    pub(crate) fn spot(&self, number: u64) -> Option<(&AtomicU64, Option<Mark<'_>>)> {
        let line = number / WORDS_PER_LINE as u64;
        let at = (number % WORDS_PER_LINE as u64) as usize;
        if line == 0 {
            return Some((&self.first.0[at], None));
        }
        let (line, mark) = self.directory.get()?.line(line)?;
        Some((&line.0[at], Some(mark)))
    }

    /// Makes the words of a range of mapped blocks.
    pub(crate) fn install(&self, range: BlockRange) {
        for line in line_of(range.first()).max(1)..=line_of(range.last()) {
            let directory = match self.directory.get() {
                Some(directory) => directory,
                None => {
                    let new = Box::new(Directory::new());
                    self.directory.get_or_init(|| new)
                }
            };
            if directory.line(line).is_none() {
                directory.install(line);
            }
        }
    }

    /// Takes a range inside one word, if its line is there and nobody is in the way. One for each mode, so that the
    /// common case is a straight line.
    #[inline(never)]
    pub(crate) fn take_one<const EXCLUSIVE: bool>(&self, range: BlockRange) -> Option<InWord<'_>> {
        let mode = if EXCLUSIVE { Mode::Exclusive } else { Mode::Shared };
        let number = range.first() / BLOCKS_PER_WORD;
        if number != range.last() / BLOCKS_PER_WORD {
            return None;
        }
        let (word, mark) = self.spot(number)?;
        let bytes = word::mask(range.first() % BLOCKS_PER_WORD, range.last() % BLOCKS_PER_WORD);
        if !take_word(word, bytes, mode) {
            return None;
        }
        if let Some(mark) = mark {
            mark.set();
        }
        if self.hull.misses(range) {
            return Some(InWord { word, bytes });
        }
        self.back_out(range, mode);
        None
    }

    /// Puts back what was taken beside a covering request.
    #[cold]
    #[inline(never)]
    fn back_out(&self, range: BlockRange, mode: Mode) {
        self.release_words(&[Claim { range, mode }]);
    }

    /// Releases a range inside one word.
    #[inline(always)]
    pub(crate) fn release_one(&self, InWord { word, bytes }: InWord<'_>, range: BlockRange, mode: Mode) {
        let order = protocol_value!("release_publishes", SeqCst, Relaxed);
        let before = word.fetch_sub(mode.weight(bytes), order);
        debug_assert!(word::in_order(before, bytes), "{before:#x}");
        if before & bytes & QUEUED != 0 || !self.hull.misses(range) {
            self.released_one(range, mode);
        }
    }

    #[cold]
    #[inline(never)]
    fn released_one(&self, range: BlockRange, mode: Mode) {
        self.released(&[Claim { range, mode }]);
    }

    /// Takes the words of all the claims (none of them covering), or none.
    pub(crate) fn take(&self, claims: &[Claim]) -> bool {
        for (index, claim) in claims.iter().enumerate() {
            for (number, bytes) in Words::of(claim.range) {
                let spot = self.spot(number).or_else(|| {
                    protocol_never!(
                        "install_keeps_a_line_of_its_own",
                        return Some((&Box::leak(Box::new(Line::new())).0[0], None))
                    );
                    self.install(claim.range);
                    self.spot(number)
                });
                if let Some((word, mark)) = spot
                    && take_word(word, bytes, claim.mode)
                {
                    mark.inspect(|mark| mark.set());
                    continue;
                }
                protocol_never!("take_keeps_what_it_has", return false);
                // The words of this claim before `number`, and the claims before it, go back.
                let taken = (number * BLOCKS_PER_WORD).checked_sub(1);
                if let Some(part) = taken.and_then(|last| BlockRange::new(claim.range.first(), last)) {
                    self.release_words(&[Claim { range: part, ..*claim }]);
                }
                self.release_words(&claims[..index]);
                return false;
            }
        }
        if claims.iter().all(|claim| self.hull.misses(claim.range)) {
            return true;
        }
        self.release_words(claims);
        false
    }

    /// Releases claims that are in words, and wakes the requests that wait for them.
    pub(crate) fn release_words(&self, claims: &[Claim]) {
        let mut noticed = false;
        for claim in claims {
            for (number, bytes) in Words::of(claim.range) {
                if let Some(word) = self.word(number) {
                    let order = protocol_value!("release_of_words_publishes", SeqCst, Relaxed);
                    let before = word.fetch_sub(claim.mode.weight(bytes), order);
                    debug_assert!(word::in_order(before, bytes), "{before:#x}");
                    noticed |= before & bytes & QUEUED != 0;
                }
            }
            noticed |= !self.hull.misses(claim.range);
        }
        if noticed {
            self.released(claims);
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    fn word(table: &ExtentTable, block: u64) -> u64 {
        table.word(block / BLOCKS_PER_WORD).expect("its line is there").load(Relaxed)
    }

    #[test]
    fn blocks_of_one_word_are_taken_in_one_step() {
        let table = ExtentTable::new();
        for base in [0, 8, 64, 8192 + 640] {
            let range = |first, last| BlockRange::new(base + first, base + last).expect("a range of blocks");
            table.install(range(0, 7));
            let (one, others) = (range(0, 0), range(1, 7));
            let writer = table.take_one::<EXCLUSIVE>(one).expect("nobody has it");
            let readers = [(); 2].map(|()| table.take_one::<SHARED>(others).expect("readers share"));
            assert_eq!(word(&table, base), 0x0202_0202_0202_027f);
            for taken in [range(0, 0), range(0, 1)] {
                assert!(table.take_one::<SHARED>(taken).is_none() && table.take_one::<EXCLUSIVE>(taken).is_none());
            }
            assert!(table.take_one::<EXCLUSIVE>(range(7, 7)).is_none());
            assert!(table.take_one::<SHARED>(range(7, 8)).is_none(), "two words");
            assert_eq!(word(&table, base), 0x0202_0202_0202_027f);
            readers.into_iter().for_each(|reader| table.release_one(reader, others, Mode::Shared));
            table.release_one(writer, one, Mode::Exclusive);
            assert_eq!(word(&table, base), 0);
        }
        assert!(table.take_one::<SHARED>(BlockRange::one(1 << 20)).is_none(), "it has no word yet");
        assert!(table.queue.get().is_none());
    }

    #[test]
    fn beside_a_covering_lock_nothing_stays_taken() {
        let table = ExtentTable::new();
        let (one, more) = (BlockRange::one(5), BlockRange::new(5, 20).expect("a range of blocks"));
        let covering = table.shared(..);
        assert!(table.take_one::<SHARED>(one).is_none());
        assert!(!table.take(&[Claim { range: more, mode: Mode::Shared }]));
        assert!([5, 13, 20].into_iter().all(|block| word(&table, block) == 0));
        drop(covering);
        assert!(table.take_one::<SHARED>(one).is_some());
        assert!(table.take(&[Claim { range: more, mode: Mode::Shared }]));
    }

    #[test]
    fn what_cannot_be_had_whole_is_put_back() {
        let table = ExtentTable::new();
        let claim = |first, last, mode| Claim { range: BlockRange::new(first, last).expect("a range of blocks"), mode };
        let _held = table.exclusive(100..=100);
        let words = || (0..20).map(|number| word(&table, 8 * number)).collect::<Vec<_>>();
        table.install(BlockRange::new(0, 200).expect("a range of blocks"));
        let before = words();
        let first = [claim(3, 20, Mode::Shared), claim(64, 71, Mode::Exclusive)];
        for (from, to) in [(100, 100), (99, 101), (80, 110), (90, 100)] {
            let all = [first[0], first[1], claim(from, to, Mode::Shared)];
            assert!(!table.take(&all), "{from}..={to}");
            assert_eq!(words(), before, "{from}..={to}");
        }
        let far = BlockRange::new(30_000, 30_009).expect("a range of blocks");
        assert!(table.take(&[Claim { range: far, mode: Mode::Shared }]), "its words are made");
        assert!(table.take(&first));
        assert_ne!(words(), before);
        table.release_words(&first);
        assert_eq!(words(), before);
    }
}
