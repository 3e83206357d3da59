//! The bits of blocks that short operations have touched: one byte a block, eight blocks a word.
//!
//! # Rules
//!
//! A change inside one word is one atomic operation on it, without a lock. A change of several words takes the chunk's
//! lock and makes the version odd before it, even after it; readers of any number of words take no lock, and look at
//! the version before and after: if it was odd or has changed they take the lock, which outlasts the change, and read
//! again.
//!
//! ```text
//!   change of several words            reader
//!   ───────────────────────            ──────
//!   lock; version + 1                  version, even
//!   words                              words
//!   version + 1; unlock                version, the same?  ── no ──► lock, words, unlock
//! ```
//!
//! A reader that sees one of the new words has synchronized with the change (the word's write releases, its read
//! acquires), so it sees the odd version too.

use f2fs_sync::atomic::{AtomicU64, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed};
use f2fs_sync::{Mutex, MutexGuard, protocol_never, protocol_step, protocol_value};

use super::flags::Bits;
use super::runs::Run;
use crate::geometry::{BLOCKS_PER_WORD, CHUNK_BLOCKS};
use crate::order::first_guess;
use crate::range::BlockRange;
use crate::words::{Words, bytes_in};

/// The bits of [`CHUNK_BLOCKS`] blocks.
#[derive(Debug)]
pub(super) struct Chunk {
    version: AtomicU64,
    lock: Mutex<()>,
    words: Box<[AtomicU64]>,
}

/// How a word changes: `set` comes, `clear` goes, bytes outside the mask stay.
#[derive(Debug, Clone, Copy)]
pub(super) struct Change {
    pub(super) set: Bits,
    pub(super) clear: Bits,
}

impl Change {
    const fn of_word(self, word: u64, bytes: u64) -> u64 {
        (word & !(self.clear.in_every_byte() & bytes)) | (self.set.in_every_byte() & bytes)
    }
}

/// How many of the eight bytes are not zero.
pub(super) const fn bytes_set(word: u64) -> u32 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    ((((word & LOW) + LOW) | word) & !LOW).count_ones()
}

/// A chunk whose lock is held.
pub(super) struct Locked<'a> {
    chunk: &'a Chunk,
    changing: bool,
    _guard: MutexGuard<'a, ()>,
}

impl Chunk {
    pub(super) fn new() -> Chunk {
        let words = (0..CHUNK_BLOCKS / BLOCKS_PER_WORD).map(|_| AtomicU64::new(0)).collect();
        Chunk { version: AtomicU64::new(0), lock: Mutex::new(()), words }
    }

    /// Gives the run's blocks its bits, before the chunk is shared. Blocks are counted from the chunk's first.
    pub(super) fn fill(&self, run: Run) {
        let change = Change { set: run.bits, clear: Bits::NONE };
        for (number, bytes) in Words::of(run.range) {
            let word = &self.words[number as usize];
            word.store(change.of_word(word.load(Relaxed), bytes), Relaxed);
        }
    }

    /// How often a change of several words has begun or ended.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(super) fn version(&self) -> u64 {
        self.version.load(Relaxed)
    }

    pub(super) fn lock(&self) -> Locked<'_> {
        Locked { chunk: self, changing: false, _guard: self.lock.lock() }
    }

    /// Changes blocks of one word; how many were changed.
    #[inline]
    pub(super) fn change_word(&self, number: u64, bytes: u64, change: Change) -> u32 {
        let word = &self.words[number as usize];
        protocol_never!("convert_in_two_steps", word.fetch_and(!(change.clear.in_every_byte() & bytes), AcqRel));
        let old = match (change.set.is_empty(), change.clear.is_empty()) {
            (false, true) => word.fetch_or(change.set.in_every_byte() & bytes, AcqRel),
            (true, false) => word.fetch_and(!(change.clear.in_every_byte() & bytes), AcqRel),
            _ => {
                let mut old = first_guess(word);
                while let Err(now) = word.compare_exchange_weak(old, change.of_word(old, bytes), AcqRel, Relaxed) {
                    old = now;
                }
                old
            }
        };
        bytes_set(old ^ change.of_word(old, bytes))
    }

    /// The result of `look` on the words of a range, each with the bytes that the range has in it. They are as they
    /// were at one moment, except for changes inside one word that ran meanwhile. `look` may be called twice.
    #[inline]
    pub(super) fn read<T>(&self, range: BlockRange, look: impl Fn(WordsRead<'_>) -> T) -> T {
        let words = || WordsRead { chunk: self, words: Words::of(range) };
        let before = self.version.load(Acquire);
        if before.is_multiple_of(2) {
            let result = look(words());
            if protocol_value!("bits_read_unversioned", self.version.load(Relaxed) == before, true) {
                return result;
            }
        }
        let _lock = self.lock.lock();
        look(words())
    }
}

/// The words of a range as a reader finds them: each with the bytes that the range has in it.
pub(super) struct WordsRead<'a> {
    chunk: &'a Chunk,
    words: Words,
}

impl Iterator for WordsRead<'_> {
    type Item = (u64, u64);

    #[inline]
    fn next(&mut self) -> Option<(u64, u64)> {
        let (number, bytes) = self.words.next()?;
        Some((self.chunk.words[number as usize].load(Acquire), bytes))
    }
}

impl Locked<'_> {
    /// Tells readers that the chunk is changing, until the lock is released.
    pub(super) fn begin(&mut self) {
        protocol_step!("bits_change_version", {
            self.changing = true;
            // The words' writes release, so this comes before them for whoever acquires one.
            self.chunk.version.fetch_add(1, AcqRel);
        });
    }

    /// Changes a range; how many blocks were changed.
    pub(super) fn change(&self, range: BlockRange, change: Change) -> u128 {
        let changed = Words::of(range).map(|(number, bytes)| u128::from(self.chunk.change_word(number, bytes, change)));
        changed.sum()
    }

    /// The bits of a block.
    pub(super) fn bits(&self, block: u64) -> Bits {
        let word = self.chunk.words[(block / BLOCKS_PER_WORD) as usize].load(Acquire);
        Bits::from_raw((word >> (8 * (block % BLOCKS_PER_WORD))) as u8)
    }

    /// The last block of `first ..= end` up to which all blocks have these bits, if the first has.
    pub(super) fn forward(&self, first: u64, end: u64, bits: Bits) -> Option<u64> {
        let range = BlockRange::new(first, end)?;
        for (number, bytes) in Words::of(range) {
            let differ = (self.chunk.words[number as usize].load(Acquire) ^ bits.in_every_byte()) & bytes;
            if differ != 0 {
                let block = number * BLOCKS_PER_WORD + u64::from(differ.trailing_zeros() / 8);
                return block.checked_sub(1).filter(|last| *last >= first);
            }
        }
        Some(end)
    }

    /// The first block of `start ..= last` from which on all blocks have these bits, if the last has.
    pub(super) fn backward(&self, start: u64, last: u64, bits: Bits) -> Option<u64> {
        let range = BlockRange::new(start, last)?;
        for number in (start / BLOCKS_PER_WORD..=last / BLOCKS_PER_WORD).rev() {
            let differ =
                (self.chunk.words[number as usize].load(Acquire) ^ bits.in_every_byte()) & bytes_in(number, range);
            if differ != 0 {
                let block = number * BLOCKS_PER_WORD + u64::from((63 - differ.leading_zeros()) / 8);
                return Some(block + 1).filter(|first| *first <= last);
            }
        }
        Some(start)
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        if self.changing {
            self.chunk.version.fetch_add(1, AcqRel);
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted() {
        assert_eq!(bytes_set(0), 0);
        assert_eq!(bytes_set(u64::MAX), 8);
        assert_eq!(bytes_set(0x8000_0001_0000_ff10), 4);
    }

    #[test]
    fn a_chunk_has_a_byte_for_each_block() {
        assert_eq!(Chunk::new().words.len() as u64 * BLOCKS_PER_WORD, CHUNK_BLOCKS);
    }

    #[test]
    fn the_version_is_odd_while_several_words_change() {
        let chunk = Chunk::new();
        drop(chunk.lock());
        assert_eq!(chunk.version(), 0, "nothing changed");
        let mut locked = chunk.lock();
        locked.begin();
        assert_eq!(chunk.version(), 1);
        drop(locked);
        assert_eq!(chunk.version(), 2);
    }

    #[test]
    fn runs_are_found_in_both_directions() {
        let chunk = Chunk::new();
        let dirty = Change { set: Bits::DIRTY, clear: Bits::NONE };
        chunk.lock().change(BlockRange::new(5, 40).unwrap(), dirty);
        let locked = chunk.lock();
        assert_eq!(locked.forward(5, 100, Bits::DIRTY), Some(40));
        assert_eq!(locked.forward(5, 30, Bits::DIRTY), Some(30));
        assert_eq!(locked.forward(41, 100, Bits::DIRTY), None);
        assert_eq!(locked.forward(4, 100, Bits::NONE), Some(4));
        assert_eq!(locked.backward(0, 40, Bits::DIRTY), Some(5));
        assert_eq!(locked.backward(16, 40, Bits::DIRTY), Some(16));
        assert_eq!(locked.backward(3, 40, Bits::DIRTY), Some(5));
        assert_eq!(locked.backward(5, 40, Bits::DIRTY), Some(5));
        assert_eq!(locked.backward(0, 5, Bits::DIRTY), Some(5), "a run of one block");
        assert_eq!(locked.backward(3, 40, Bits::NONE), None);
        assert_eq!(locked.backward(0, 41, Bits::DIRTY), None);
        assert_eq!(locked.backward(0, 47, Bits::NONE), Some(41));
        assert_eq!(locked.forward(41, CHUNK_BLOCKS - 1, Bits::NONE), Some(CHUNK_BLOCKS - 1));
    }
}
