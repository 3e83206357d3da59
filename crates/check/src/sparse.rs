//! Bitmaps and counters over large index ranges that take memory only where they are used.
//!
//! A hostile image may claim millions of segments and NIDs; memory follows what is really there.
//!
//! # Locking rules
//!
//! None are taken. A chunk appears once (`OnceLock`), its words are atomics. `Relaxed` suffices: each word stands for
//! itself, and the phases of a check are separated by the joins of the thread pool.

use f2fs_sync::OnceLock;
use f2fs_sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Words in a chunk.
const CHUNK: usize = 1024;

/// A bitmap that many threads set bits in.
#[derive(Debug)]
pub(super) struct SparseBits {
    chunks: Vec<OnceLock<Box<[AtomicU64]>>>,
}

impl SparseBits {
    /// A clear bitmap of `len` bits.
    pub(super) fn new(len: u64) -> SparseBits {
        let chunks = len.div_ceil(64 * CHUNK as u64) as usize;
        SparseBits { chunks: (0..chunks).map(|_| OnceLock::new()).collect() }
    }

    /// Sets a bit; tells whether it was set before. Bits beyond the end are never set.
    pub(super) fn set(&self, index: u32) -> bool {
        let (word, bit) = (index as usize / 64, 1 << (index % 64));
        let Some(chunk) = self.chunks.get(word / CHUNK) else { return false };
        let chunk = chunk.get_or_init(|| (0..CHUNK).map(|_| AtomicU64::new(0)).collect());
        chunk[word % CHUNK].fetch_or(bit, Relaxed) & bit != 0
    }

    /// Whether a bit is set.
    pub(super) fn get(&self, index: u32) -> bool {
        self.word(index as usize / 64) & 1 << (index % 64) != 0
    }

    /// Bits `64 index .. 64 (index + 1)`, the first one lowest.
    pub(super) fn word(&self, index: usize) -> u64 {
        let chunk = self.chunks.get(index / CHUNK).and_then(OnceLock::get);
        chunk.map_or(0, |chunk| chunk[index % CHUNK].load(Relaxed))
    }
}

/// An array of words that many threads change.
#[derive(Debug)]
pub(super) struct SparseWords {
    chunks: Vec<OnceLock<Box<[AtomicU32]>>>,
}

impl SparseWords {
    /// An array of `len` zeros.
    pub(super) fn new(len: u64) -> SparseWords {
        let chunks = len.div_ceil(CHUNK as u64) as usize;
        SparseWords { chunks: (0..chunks).map(|_| OnceLock::new()).collect() }
    }

    /// A word; 0 beyond the end.
    pub(super) fn get(&self, index: u32) -> u32 {
        let index = index as usize;
        let chunk = self.chunks.get(index / CHUNK).and_then(OnceLock::get);
        chunk.map_or(0, |chunk| chunk[index % CHUNK].load(Relaxed))
    }

    /// Changes a word by `change`, which may run several times; tells what it was before.
    pub(super) fn update(&self, index: u32, mut change: impl FnMut(u32) -> u32) -> u32 {
        let index = index as usize;
        let Some(chunk) = self.chunks.get(index / CHUNK) else { return 0 };
        let chunk = chunk.get_or_init(|| (0..CHUNK).map(|_| AtomicU32::new(0)).collect());
        let word = &chunk[index % CHUNK];
        let mut old = word.load(Relaxed);
        while let Err(now) = word.compare_exchange_weak(old, change(old), Relaxed, Relaxed) {
            old = now;
        }
        old
    }

    /// The indices of the chunks that exist, each a run of words from `start`.
    pub(super) fn used(&self) -> impl Iterator<Item = std::ops::Range<u32>> + '_ {
        let used = self.chunks.iter().enumerate().filter(|(_, chunk)| chunk.get().is_some());
        used.map(|(index, _)| (index * CHUNK) as u32..((index + 1) * CHUNK) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_touched_takes_memory() {
        let bits = SparseBits::new(1 << 32);
        assert!(!bits.set(u32::MAX) && bits.set(u32::MAX) && bits.get(u32::MAX));
        assert!(!bits.get(5) && !bits.set(64) && bits.word(1) == 1 && bits.word(0) == 0);
        assert_eq!(bits.chunks.iter().filter(|chunk| chunk.get().is_some()).count(), 2);

        let words = SparseWords::new(3000);
        assert_eq!(words.update(2000, |word| word + 7), 0);
        assert_eq!((words.get(2000), words.get(1), words.get(u32::MAX)), (7, 0, 0));
        assert_eq!(words.used().flatten().collect::<Vec<_>>(), (1024..2048).collect::<Vec<_>>());
        let short = SparseBits::new(10);
        assert!(!short.set(1 << 20) && !short.get(1 << 20), "beyond the end");
    }
}
