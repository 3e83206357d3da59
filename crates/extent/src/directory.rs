//! Where the words of a file lie.
//!
//! ```text
//! table ── first line (blocks 0 ..= 63), part of the table
//!      └── directory ── class k ── slot ── chunk of lines      lines 2^k ..= 2^(k+1)-1, k = 0 ..= 23
//! ```
//!
//! A class below 64 lines has one slot with one chunk of just its size, so a file of n blocks costs about n bytes; a larger
//! class has one slot for every 64 lines.
//!
//! **Rules.** Directory, slots and chunks are written once, and then never move or go until the table does: whoever has
//! found a word may keep it. They are found without a lock (three acquire loads). They are allocated before they are
//! published, outside of every lock; when two threads install the same one, the later drops its own and uses the other's.

use std::fmt;

use f2fs_sync::OnceLock;
use f2fs_sync::atomic::AtomicU64;

use crate::geometry::{BLOCKS_PER_LINE, BLOCKS_PER_WORD, CLASSES, LINES_PER_CHUNK, WORDS_PER_LINE};
use crate::range::BlockRange;
use crate::word;

/// One cache line of words.
#[repr(align(64))]
pub(crate) struct Line(pub(crate) [AtomicU64; WORDS_PER_LINE]);

impl Line {
    pub(crate) fn new() -> Line {
        Line(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

type Chunk = Box<[Line]>;
type Class = Box<[OnceLock<Chunk>]>;

/// The lines of a file after its first.
pub(crate) struct Directory {
    classes: [OnceLock<Class>; CLASSES],
}

/// The class of a line (1 or more), its slot there, and its place in the chunk.
#[inline]
fn place(line: u64) -> (usize, usize, usize) {
    let class = line.ilog2();
    let offset = line - (1 << class);
    (class as usize, (offset / LINES_PER_CHUNK) as usize, (offset % LINES_PER_CHUNK) as usize)
}

impl Directory {
    pub(crate) fn new() -> Directory {
        Directory { classes: std::array::from_fn(|_| OnceLock::new()) }
    }

    /// The line, if its chunk is there; `line` is 1 or more.
    #[inline]
    pub(crate) fn line(&self, line: u64) -> Option<&Line> {
        let (class, slot, at) = place(line);
        self.classes.get(class)?.get()?.get(slot)?.get()?.get(at)
    }

    /// Installs the line's chunk; `line` is 1 or more and has a class.
    pub(crate) fn install(&self, line: u64) {
        let (class, slot, _) = place(line);
        let lines = 1_u64 << class;
        let class = &self.classes[class];
        let slots = match class.get() {
            Some(slots) => slots,
            None => {
                let new: Class = (0..lines.div_ceil(LINES_PER_CHUNK)).map(|_| OnceLock::new()).collect();
                class.get_or_init(|| new)
            }
        };
        if slots[slot].get().is_none() {
            let new: Chunk = (0..lines.min(LINES_PER_CHUNK)).map(|_| Line::new()).collect();
            slots[slot].get_or_init(|| new);
        }
    }

    /// Calls `visit` with the number of each line of `first ..= last` (1 or more) that is there, ascending, until it says
    /// `false`; whether it never did.
    pub(crate) fn visit(&self, first: u64, last: u64, mut visit: impl FnMut(u64, &Line) -> bool) -> bool {
        let (from, to) = (place(first).0, place(last).0.min(CLASSES - 1));
        for class in from..=to {
            let Some(slots) = self.classes[class].get() else { continue };
            let start = 1_u64 << class;
            let (low, high) = (first.max(start) - start, last.min(2 * start - 1) - start);
            for slot in low / LINES_PER_CHUNK..=high / LINES_PER_CHUNK {
                let Some(chunk) = slots[slot as usize].get() else { continue };
                let base = slot * LINES_PER_CHUNK;
                let (low, high) = (low.max(base) - base, high.min(base + LINES_PER_CHUNK - 1) - base);
                for (line, at) in chunk[low as usize..=high as usize].iter().zip(low..) {
                    if !visit(start + base + at, line) {
                        return false;
                    }
                }
            }
        }
        true
    }

    /// Bytes on the heap, itself included.
    pub(crate) fn bytes(&self) -> usize {
        let classes = self.classes.iter().filter_map(OnceLock::get);
        let inner: usize = classes
            .map(|slots| {
                let chunks: usize = slots.iter().filter_map(OnceLock::get).map(|chunk| size_of_val(&**chunk)).sum();
                size_of_val(&**slots) + chunks
            })
            .sum();
        size_of::<Directory>() + inner
    }
}

impl fmt::Debug for Directory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Directory").field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}

/// The words that a range of mapped blocks touches, ascending: the number of each, and the bytes that the range has there.
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

/// The line of a block.
#[inline]
pub(crate) const fn line_of(block: u64) -> u64 {
    block / BLOCKS_PER_LINE
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::geometry::MAPPED_BLOCKS;

    #[test]
    fn a_line_is_a_cache_line() {
        assert_eq!((size_of::<Line>(), align_of::<Line>()), (64, 64));
    }

    #[test]
    fn every_line_has_a_place_of_its_own() {
        let mut seen = std::collections::HashSet::new();
        for line in 1..5000 {
            let (class, slot, at) = place(line);
            let lines = 1_u64 << class;
            assert!((slot as u64) < lines.div_ceil(64) && (at as u64) < lines.min(64), "line {line}");
            assert!(seen.insert((class, slot, at)), "line {line}");
        }
        let (class, _, _) = place(line_of(MAPPED_BLOCKS - 1));
        assert_eq!(class, CLASSES - 1);
    }

    #[test]
    fn lines_are_there_after_their_installation_only() {
        let directory = Directory::new();
        assert!(directory.line(1).is_none());
        for line in [1, 2, 63, 64, 127, 128, 5000, (1 << CLASSES) - 1] {
            directory.install(line);
            let before = std::ptr::from_ref(directory.line(line).unwrap());
            directory.install(line);
            assert_eq!(before, std::ptr::from_ref(directory.line(line).unwrap()), "line {line} moved");
        }
        assert!(directory.line(256).is_none());
    }

    #[test]
    fn visits_exactly_what_is_there() {
        let directory = Directory::new();
        for line in [1, 3, 70, 200, 1000] {
            directory.install(line);
        }
        for (first, last) in [(1, 1), (1, 5000), (2, 2), (64, 255), (65, 200), (190, 1100), (300, 900)] {
            let mut visited = Vec::new();
            assert!(directory.visit(first, last, |number, line| {
                assert!(std::ptr::eq(line, directory.line(number).unwrap()));
                visited.push(number);
                true
            }));
            let there: Vec<u64> = (first..=last).filter(|&line| directory.line(line).is_some()).collect();
            assert_eq!(visited, there, "{first}..={last}");
        }
        assert!(!directory.visit(1, 100, |number, _| number < 64));
    }

    #[test]
    fn words_of_a_range() {
        let words: Vec<_> = Words::of(BlockRange::new(6, 17).unwrap()).collect();
        assert_eq!(words, [(0, word::mask(6, 7)), (1, word::mask(0, 7)), (2, word::mask(0, 1))]);
        assert_eq!(Words::of(BlockRange::one(9)).collect::<Vec<_>>(), [(1, word::mask(1, 1))]);
    }
}
