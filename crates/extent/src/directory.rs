//! Where the words of a file lie.
//!
//! ```text
//! table ── first line (blocks 0 ..= 63), part of the table
//!      └── directory ── class k ── slot ── chunk of lines      lines 2^k ..= 2^(k+1)-1, k = 0 ..= 23
//! ```
//!
//! A class below 64 lines has one slot with one chunk of just its size, so a file of n blocks costs about n bytes; a
//! larger class has one slot for every 64 lines, and those of the largest are made in [pieces](super::row).
//!
//! **Marks.** A slot has a bit for each line of its chunk: set means that somebody may hold a block there. A thread
//! that takes a block looks at the bit afterwards, and sets it if it is clear; mostly it is set already, and nothing is
//! written. Covering requests look into marked lines only, and clear the marks of lines that they find idle. So the
//! cost of such a request follows the number of lines that were locked since the last one, and not the size of the
//! file.
//!
//! ```text
//!   whoever takes a block              a covering request, under the queue's lock
//!   ─────────────────────              ──────────────────────────────────────────
//!   A1  change the word                B1  announce itself in the hull
//!   A2  look at the mark, set it       B2  clear the marks
//!   A3  look at the hull               B3  look at the words of lines that were marked; mark them again if not idle
//! ```
//!
//! All are sequentially consistent. If B2 misses the mark that A2 set, then A3 sees the hull of B1, and puts the block
//! back. (The bitmap of chunks that are there is set before a chunk can be found, and read where B2 is.) If A2 sees a
//! mark that B2 is about to clear, B3 sees the word of A1. So when the marks are not set, nobody holds anything there
//! who has looked at the hull and stayed.
//!
//! **Rules.** Directory, slots and chunks are written once, and then never move or go until the table does: a thread
//! that has found a word may keep it. They are found without a lock (three acquire loads; four in a file of more than
//! 32 GiB). They are allocated before they are published, outside of every lock; when two threads install the same one,
//! the later drops its own and uses the other's.

use std::fmt;

use f2fs_sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use f2fs_sync::{OnceLock, protocol_never, protocol_step, protocol_value};

use crate::geometry::{BLOCKS_PER_LINE, CLASSES, LINES_PER_CHUNK, WORDS_PER_LINE};
use crate::order::store_load;
use crate::present::Present;
use crate::row::Row;

/// One cache line of words.
#[repr(align(64))]
pub(crate) struct Line(pub(crate) [AtomicU64; WORDS_PER_LINE]);

impl Line {
    pub(crate) fn new() -> Line {
        Line(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

type Chunk = Box<[Line]>;

/// The lines 2^k ..= 2^(k+1)-1.
struct Class {
    slots: Row<Slot>,
    present: Present,
}

/// The place of a chunk.
#[derive(Default)]
struct Slot {
    chunk: OnceLock<Chunk>,
    marks: AtomicU64,
}

/// The mark of a line.
#[derive(Clone, Copy)]
pub(crate) struct Mark<'a> {
    marks: &'a AtomicU64,
    bit: u64,
}

impl Mark<'_> {
    /// Sees to it that the mark is set, after a block of the line was taken.
    #[inline]
    pub(crate) fn set(self) {
        protocol_step!("mark_look_unordered", store_load());
        if self.marks.load(protocol_value!("mark_look_unordered", SeqCst, Relaxed)) & self.bit == 0 {
            protocol_step!("mark_not_set", self.marks.fetch_or(self.bit, SeqCst));
        }
    }
}

/// The lines of a file after its first.
pub(crate) struct Directory {
    classes: [OnceLock<Class>; CLASSES],
}

/// The outcome of a look at a line.
pub(crate) enum Visit<T> {
    /// Nobody holds any block of the line.
    Idle,
    /// A thread holds a block of it; it does not matter which.
    Busy,
    /// A thread holds a block of it: the search has found its line.
    Found(T),
}

impl Slot {
    /// Visits the marked lines among `within`.
    fn visit<T>(
        &self,
        chunk: &[Line],
        within: u64,
        clear: bool,
        mut visit: impl FnMut(u64, &Line) -> Visit<T>,
    ) -> Option<T> {
        // loom would not see a race with this first look: see `first_guess`.
        let mut marked = if cfg!(loom) && clear { within } else { self.marks.load(SeqCst) & within };
        if marked == 0 {
            return None;
        }
        if clear {
            marked &= self.marks.fetch_and(!marked, SeqCst);
            protocol_step!("scan_order", store_load());
        }
        let (mut left, mut busy, mut found) = (marked, 0, None);
        while left != 0 && found.is_none() {
            let at = left.trailing_zeros();
            let Some(line) = chunk.get(at as usize) else { break };
            match visit(u64::from(at), line) {
                Visit::Idle => left &= left - 1,
                Visit::Busy => {
                    busy |= 1 << at;
                    left &= left - 1;
                }
                Visit::Found(what) => found = Some(what),
            }
        }
        // The rest was not looked at, or is where the find was.
        let again = busy | left;
        if clear && again != 0 {
            protocol_step!("mark_cleared_of_busy_line", self.marks.fetch_or(again, SeqCst));
        }
        found
    }
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
    pub(crate) fn line(&self, line: u64) -> Option<(&Line, Mark<'_>)> {
        let (class, slot, at) = place(line);
        let slot = self.classes.get(class)?.get()?.slots.get(slot)?;
        let line = slot.chunk.get()?.get(at)?;
        Some((line, Mark { marks: &slot.marks, bit: 1 << at }))
    }

    /// Installs the line's chunk; `line` is 1 or more and has a class.
    pub(crate) fn install(&self, line: u64) {
        let (class, slot, _) = place(line);
        let lines = 1_u64 << class;
        let class = &self.classes[class];
        let class = match class.get() {
            Some(class) => class,
            None => {
                let slots = lines.div_ceil(LINES_PER_CHUNK) as usize;
                let new = Class { slots: Row::new(slots), present: Present::new(slots) };
                class.get_or_init(|| new)
            }
        };
        // The class has a slot for each of its lines.
        let Some(Slot { chunk, .. }) = class.slots.get_or_make(slot) else { return };
        if chunk.get().is_none() {
            let new: Chunk = (0..lines.min(LINES_PER_CHUNK)).map(|_| Line::new()).collect();
            protocol_step!("present_set_before_chunk", class.present.set(slot));
            chunk.get_or_init(|| new);
            protocol_never!("present_set_before_chunk", class.present.set(slot));
        }
    }

    /// Shows `visit` the marked lines of `first ..= last` (1 or more), ascending, until `visit` has found its line.
    /// With `clear`, which takes the queue's lock, lines that turn out to be idle lose their marks.
    pub(crate) fn visit<T>(
        &self,
        first: u64,
        last: u64,
        clear: bool,
        mut visit: impl FnMut(u64, &Line) -> Visit<T>,
    ) -> Option<T> {
        for (class, here) in self.classes.iter().enumerate().take(place(last).0 + 1).skip(place(first).0) {
            let Some(here) = here.get() else { continue };
            let start = 1_u64 << class;
            // Nothing is marked behind the end of the class.
            let (low, high) = (first.max(start) - start, last - start);
            let mut next = (low / LINES_PER_CHUNK) as usize;
            while let Some(at) = here.present.next(next).filter(|&at| at as u64 <= high / LINES_PER_CHUNK) {
                next = at + 1;
                let number = at as u64;
                let Some(slot) = here.slots.get(at) else { continue };
                let Some(chunk) = slot.chunk.get() else { continue };
                let base = number * LINES_PER_CHUNK;
                let (low, high) = (low.max(base) - base, high.min(base + LINES_PER_CHUNK - 1) - base);
                let within = (u64::MAX << low) & (u64::MAX >> (63 - high));
                let found = slot.visit(chunk, within, clear, |at, line| visit(start + base + at, line));
                if found.is_some() {
                    return found;
                }
            }
        }
        None
    }

    /// Bytes on the heap, itself included.
    pub(crate) fn bytes(&self) -> usize {
        // Without a look at each slot: there may be many, and few that are taken.
        let classes = self.classes.iter().enumerate().filter_map(|(number, class)| Some((number, class.get()?)));
        let inner: usize = classes
            .map(|(number, class)| {
                let lines = (1 << number).min(LINES_PER_CHUNK as usize);
                let chunks = class.present.count() * lines * size_of::<Line>();
                class.slots.bytes() + class.present.bytes() + chunks
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

/// The line of a block.
#[inline]
pub(crate) const fn line_of(block: u64) -> u64 {
    block / BLOCKS_PER_LINE
}

#[cfg(all(test, not(any(loom, shuttle))))]
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
            let before = std::ptr::from_ref(directory.line(line).unwrap().0);
            directory.install(line);
            assert_eq!(before, std::ptr::from_ref(directory.line(line).unwrap().0), "line {line} moved");
        }
        assert!(directory.line(256).is_none());
    }

    #[test]
    fn bytes_are_those_of_what_is_there() {
        let directory = Directory::new();
        assert_eq!(directory.bytes(), size_of::<Directory>());
        // Class 0 has one slot, one word of places that are taken, and a chunk of one line.
        directory.install(1);
        let first = size_of::<Slot>() + size_of::<u64>() + size_of::<Line>();
        assert_eq!(directory.bytes(), size_of::<Directory>() + first);
        // Class 7 has two slots, one of which gets a whole chunk.
        directory.install(130);
        let seventh = 2 * size_of::<Slot>() + size_of::<u64>() + 64 * size_of::<Line>();
        assert_eq!(directory.bytes(), size_of::<Directory>() + first + seventh);
    }

    #[test]
    fn visits_exactly_what_is_marked() {
        let directory = Directory::new();
        for line in 1..=1000 {
            directory.install(line);
        }
        let marked = [1, 3, 63, 64, 70, 200, 1000];
        let visited = |first, last, clear, result: fn(u64) -> Visit<u64>| {
            let mut visited = Vec::new();
            let found = directory.visit(first, last, clear, |number, line| {
                assert!(std::ptr::eq(line, directory.line(number).unwrap().0));
                visited.push(number);
                result(number)
            });
            (visited, found)
        };
        assert_eq!(visited(1, 5000, true, |_| Visit::Idle), (vec![], None));
        for line in marked {
            directory.line(line).unwrap().1.set();
        }
        for (first, last) in [(1, 1), (1, 5000), (2, 2), (64, 255), (65, 200), (190, 1100), (300, 900)] {
            let there: Vec<u64> = marked.into_iter().filter(|&line| first <= line && line <= last).collect();
            assert_eq!(visited(first, last, false, |_| Visit::Idle), (there.clone(), None), "{first}..={last}");
            assert_eq!(visited(first, last, true, |_| Visit::Busy), (there, None), "{first}..={last}");
        }
        // A find stops the search; from there on, and where it was busy, marks stay.
        let find = |line| {
            if line == 70 {
                Visit::Found(line)
            } else if line == 3 {
                Visit::Busy
            } else {
                Visit::Idle
            }
        };
        assert_eq!(visited(1, 5000, true, find), (vec![1, 3, 63, 64, 70], Some(70)));
        assert_eq!(visited(1, 5000, true, |_| Visit::Idle), (vec![3, 70, 200, 1000], None));
        assert_eq!(visited(1, 5000, true, |_| Visit::Idle), (vec![], None));
    }
}
