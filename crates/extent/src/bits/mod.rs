//! State bits of blocks: what Btrfs keeps in its extent io tree, less the lock.
//!
//! # Rules
//!
//! The bits of a block are in one of two places. A *chunk* (4096 blocks, a byte each) has those of blocks that a short
//! operation has touched; the *map of runs* has the others, so that a range to block `u64::MAX` costs one entry.
//!
//! ```text
//!   block in the map ──install (a short operation needs it)──► block in a chunk, for good
//! ```
//!
//! | Operation | takes | atomic |
//! |---|---|---|
//! | change inside one word (8 aligned blocks) | nothing: one read-modify-write | to everyone |
//! | change inside one chunk | the chunk's lock; readers see the version | to readers and other changes of several words |
//! | longer change | the map's lock, then the locks of all its chunks, ascending | the same |
//! | test, count, inside one chunk | nothing (the lock if a change of several words runs) | sees each longer change whole or not |
//! | longer test, count, search | the map's lock, then one chunk's lock at a time | the same |
//!
//! Order of locks: the map's, then chunks' in ascending order. A change inside one word that runs together with a
//! longer one is before or after it word by word. Whoever holds the range locked (see
//! [`ExtentTable`](crate::ExtentTable)) has no one beside him, and everything is exact.
//!
//! Readers of chunks write to no shared line; changes write the lines of their own blocks, and of several words the
//! chunk's version.

mod chunk;
mod directory;
mod flags;
mod runs;
mod search;

use std::fmt;
use std::ops::RangeBounds;

use f2fs_sync::atomic::{AtomicBool, Ordering::SeqCst};
use f2fs_sync::{Mutex, MutexGuard, OnceLock, protocol_never, protocol_value};

use self::chunk::{Change, Chunk, Locked, bytes_set};
use self::directory::{CHUNKED_BLOCKS, Chunks};
pub use self::flags::Bits;
pub use self::runs::Run;
use self::runs::Runs;
use crate::geometry::{BLOCKS_PER_WORD, CHUNK_BLOCKS};
use crate::range::BlockRange;
use crate::words::bytes_in;

/// The state bits of a file's blocks.
///
/// Every block up to `u64::MAX` has a set of [`Bits`], at first none. Ranges are given as Rust ranges of block numbers;
/// nothing happens to, and nothing is found in, an empty one.
///
/// ```
/// use f2fs_extent::{Bits, ExtentBits};
///
/// let bits = ExtentBits::new();
/// bits.set(10..20, Bits::DIRTY | Bits::DELALLOC);
/// assert!(bits.test_all(10..20, Bits::DIRTY));
/// // Writing starts: no moment at which a block is neither dirty nor under writeback.
/// bits.convert(12..16, Bits::WRITEBACK, Bits::DIRTY);
/// let run = bits.find_with(0, Bits::WRITEBACK).expect("blocks 12 to 15");
/// assert_eq!((run.range.first(), run.range.last()), (12, 15));
/// assert_eq!(run.bits, Bits::WRITEBACK | Bits::DELALLOC);
/// ```
pub struct ExtentBits {
    runs: Mutex<Runs>,
    /// Whether the map has runs: short readers of blocks without a chunk need not look if it has none.
    mapped: AtomicBool,
    chunks: OnceLock<Box<Chunks>>,
}

impl ExtentBits {
    /// A table in which no block has a bit. Does not allocate.
    #[must_use]
    pub fn new() -> ExtentBits {
        ExtentBits { runs: Mutex::new(Runs::default()), mapped: AtomicBool::new(false), chunks: OnceLock::new() }
    }

    /// Gives every block of the range these bits; how many blocks lacked one.
    pub fn set(&self, range: impl RangeBounds<u64>, bits: Bits) -> u128 {
        self.change(BlockRange::of(range), Change { set: bits, clear: Bits::NONE })
    }

    /// Takes these bits from every block of the range; how many blocks had one.
    pub fn clear(&self, range: impl RangeBounds<u64>, bits: Bits) -> u128 {
        self.change(BlockRange::of(range), Change { set: Bits::NONE, clear: bits })
    }

    /// Sets some bits and clears others in one step; how many blocks were changed. A bit in both is set.
    pub fn convert(&self, range: impl RangeBounds<u64>, set: Bits, clear: Bits) -> u128 {
        self.change(BlockRange::of(range), Change { set, clear })
    }

    /// The bits of a block.
    #[must_use]
    pub fn get(&self, block: u64) -> Bits {
        match self.short(BlockRange::one(block)) {
            Some(Short::Chunk(chunk, range)) => {
                let word = chunk.read(range, |mut words| words.next().map_or(0, |(word, _)| word));
                Bits::from_raw((word >> (8 * (block % BLOCKS_PER_WORD))) as u8)
            }
            Some(Short::Empty) => Bits::NONE,
            None => self.view().bits(block),
        }
    }

    /// Whether some block of the range has one of these bits.
    #[must_use]
    pub fn test_any(&self, range: impl RangeBounds<u64>, bits: Bits) -> bool {
        let Some(range) = BlockRange::of(range) else { return false };
        let pattern = bits.in_every_byte();
        match self.short(range) {
            Some(Short::Chunk(chunk, range)) => {
                chunk.read(range, |mut words| words.any(|(word, bytes)| word & bytes & pattern != 0))
            }
            Some(Short::Empty) => false,
            None => !self.read_runs(range, |here, _| !here.has_any(bits)),
        }
    }

    /// Whether every block of the range has all of these bits.
    #[must_use]
    pub fn test_all(&self, range: impl RangeBounds<u64>, bits: Bits) -> bool {
        let Some(range) = BlockRange::of(range) else { return true };
        let pattern = bits.in_every_byte();
        match self.short(range) {
            Some(Short::Chunk(chunk, range)) => {
                chunk.read(range, |mut words| words.all(|(word, bytes)| !word & bytes & pattern == 0))
            }
            Some(Short::Empty) => bits.is_empty(),
            None => self.read_runs(range, |here, _| here.has_all(bits)),
        }
    }

    /// How many blocks of the range have all of these bits.
    #[must_use]
    pub fn count(&self, range: impl RangeBounds<u64>, bits: Bits) -> u128 {
        let Some(range) = BlockRange::of(range) else { return 0 };
        let pattern = bits.in_every_byte();
        match self.short(range) {
            Some(Short::Chunk(chunk, range)) => chunk.read(range, |words| {
                words.map(|(word, bytes)| u128::from(bytes.count_ones() / 8 - bytes_set(!word & bytes & pattern))).sum()
            }),
            Some(Short::Empty) if bits.is_empty() => range.blocks(),
            Some(Short::Empty) => 0,
            None => {
                let mut count = 0;
                self.read_runs(range, |here, blocks| {
                    count += if here.has_all(bits) { blocks } else { 0 };
                    true
                });
                count
            }
        }
    }

    /// Bytes that the table occupies, its heap included; of the map of runs, an estimate.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let map = self.runs.lock().len() * 2 * size_of::<(u64, (u64, Bits))>();
        size_of::<ExtentBits>() + map + self.chunks.get().map_or(0, |chunks| chunks.bytes())
    }

    // ---- short operations: one chunk ----

    /// Where a short operation finds its blocks; `None` if it is not short, or its blocks cannot have chunks.
    #[inline]
    fn short(&self, range: BlockRange) -> Option<Short<'_>> {
        let number = chunk_of_short(range)?;
        let here = || self.chunks.get()?.get(number);
        if let Some(chunk) = here() {
            return Some(Short::Chunk(chunk, in_chunk(number, range)));
        }
        // With nothing in the map, and still no chunk afterwards, the blocks had no bits when the map was looked at.
        if !self.mapped.load(SeqCst) && protocol_value!("bits_read_empty_map_unchecked", here().is_none(), true) {
            return Some(Short::Empty);
        }
        Some(Short::Chunk(self.chunk(number)?, in_chunk(number, range)))
    }

    /// The chunk, installed if need be: it takes over what the map has of its blocks.
    #[cold]
    fn chunk(&self, number: u64) -> Option<&Chunk> {
        let chunks = match self.chunks.get() {
            Some(chunks) => chunks,
            None => {
                let new = Box::new(Chunks::new());
                self.chunks.get_or_init(|| new)
            }
        };
        chunks.prepare(number);
        let new = Box::new(Chunk::new());
        // If another thread installs it first, its own stays, and the map has none of its blocks any more.
        let mut runs = self.runs.lock();
        let range = blocks_of(number)?;
        for run in runs.within(range).filter(|run| !run.bits.is_empty()) {
            new.fill(Run { range: in_chunk(number, run.range), ..run });
        }
        let chunk = chunks.install(number, new);
        // Only now: a reader that finds the map empty looks for the chunk once more.
        runs.cut(range);
        self.mapped.store(!runs.is_empty(), SeqCst);
        chunk
    }

    // ---- every operation ----

    fn change(&self, range: Option<BlockRange>, change: Change) -> u128 {
        let Some(range) = range else { return 0 };
        let Some(number) = chunk_of_short(range) else { return self.change_long(range, change) };
        let chunk = match self.short(range) {
            Some(Short::Empty) if change.set.is_empty() => return 0,
            Some(Short::Chunk(chunk, _)) => Some(chunk),
            _ => self.chunk(number),
        };
        let Some(chunk) = chunk else { return 0 };
        let range = in_chunk(number, range);
        let word = range.first() / BLOCKS_PER_WORD;
        if word == range.last() / BLOCKS_PER_WORD {
            return u128::from(chunk.change_word(word, bytes_in(word, range), change));
        }
        let mut locked = chunk.lock();
        locked.begin();
        locked.change(range, change)
    }

    fn change_long(&self, range: BlockRange, change: Change) -> u128 {
        let mut changed = 0;
        protocol_never!("bits_long_change_in_two_steps", {
            for (blocks, place) in self.places(range) {
                if let Place::Chunk(chunk, number) = place {
                    changed += chunk.lock().change(in_chunk(number, blocks), change);
                }
            }
        });
        let mut runs = self.runs.lock();
        let mut locked: Vec<(BlockRange, Locked<'_>)> = Vec::new();
        for (blocks, place) in self.places(range) {
            if let Place::Chunk(chunk, number) = place {
                let mut lock = chunk.lock();
                lock.begin();
                locked.push((in_chunk(number, blocks), lock));
            }
        }
        for (blocks, place) in self.places(range) {
            if let Place::Map = place {
                changed += runs.change(blocks, change.set, change.clear);
            }
        }
        self.mapped.store(!runs.is_empty(), SeqCst);
        for (blocks, lock) in &locked {
            changed += lock.change(*blocks, change);
        }
        changed
    }

    /// Calls `look` with the bits of the range and how many blocks in a row have them, ascending, until it says
    /// `false`; whether it never did.
    fn read_runs(&self, range: BlockRange, mut look: impl FnMut(Bits, u128) -> bool) -> bool {
        let view = self.view();
        let mut next = Some(range.first());
        while let Some(first) = next.filter(|&first| first <= range.last()) {
            let bits = view.bits(first);
            let last = view.forward(first, bits).min(range.last());
            if !look(bits, u128::from(last - first) + 1) {
                return false;
            }
            next = last.checked_add(1);
        }
        true
    }

    /// The parts of a range that lie in chunks, and those between that lie in the map, ascending. The map's lock is
    /// held.
    fn places(&self, range: BlockRange) -> impl Iterator<Item = (BlockRange, Place<'_>)> {
        let mut next = Some(range.first());
        std::iter::from_fn(move || {
            let first = next.filter(|&first| first <= range.last())?;
            let chunk = self.chunks.get().and_then(|chunks| chunks.next(first / CHUNK_BLOCKS));
            let (last, place) = match chunk {
                Some((number, chunk)) if number * CHUNK_BLOCKS <= first => {
                    (number * CHUNK_BLOCKS + (CHUNK_BLOCKS - 1), Place::Chunk(chunk, number))
                }
                Some((number, _)) => (number * CHUNK_BLOCKS - 1, Place::Map),
                None => (u64::MAX, Place::Map),
            };
            let last = last.min(range.last());
            next = last.checked_add(1);
            Some((BlockRange::new(first, last)?, place))
        })
    }
}

/// Where a short operation finds its blocks.
enum Short<'a> {
    /// In a chunk, at these places.
    Chunk(&'a Chunk, BlockRange),
    /// Nowhere: they have no bits.
    Empty,
}

/// Where blocks lie.
enum Place<'a> {
    Chunk(&'a Chunk, u64),
    Map,
}

/// The chunk of a range that lies in one.
#[inline]
fn chunk_of_short(range: BlockRange) -> Option<u64> {
    let number = range.first() / CHUNK_BLOCKS;
    (number == range.last() / CHUNK_BLOCKS && range.last() < CHUNKED_BLOCKS).then_some(number)
}

/// The blocks of a chunk.
fn blocks_of(number: u64) -> Option<BlockRange> {
    let first = number * CHUNK_BLOCKS;
    BlockRange::new(first, first + (CHUNK_BLOCKS - 1))
}

/// A range inside a chunk, counted from the chunk's first block.
#[inline]
fn in_chunk(number: u64, range: BlockRange) -> BlockRange {
    let base = number * CHUNK_BLOCKS;
    BlockRange::new(range.first() - base, range.last() - base).unwrap_or(range)
}

impl Default for ExtentBits {
    fn default() -> ExtentBits {
        ExtentBits::new()
    }
}

impl fmt::Debug for ExtentBits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs: Vec<Run> = self.iter().take(64).collect();
        f.debug_struct("ExtentBits").field("runs", &runs).field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}

/// The whole table, as it is while the map's lock is held.
struct View<'a> {
    bits: &'a ExtentBits,
    runs: MutexGuard<'a, Runs>,
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
