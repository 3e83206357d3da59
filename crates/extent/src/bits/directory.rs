//! Where the chunks of bits lie: chunk n in class `log2(n + 1)`, so that small files need few classes.
//!
//! **Rules.** As for the words of locks: written once, never moved, found without a lock. A chunk is installed with the
//! lock of the map of runs held, because its bits are taken over from there; it is allocated before. Searches, which
//! hold that lock too, see from a bitmap which chunks are there.

use f2fs_sync::OnceLock;

use super::chunk::Chunk;
use crate::geometry::{CHUNK_BLOCKS, CHUNK_CLASSES};
use crate::present::Present;
use crate::row::Row;

/// The chunks 2^k - 1 .. 2^(k+1) - 1.
#[derive(Debug)]
struct Class {
    slots: Row<OnceLock<Box<Chunk>>>,
    present: Present,
}

impl Class {
    fn new(class: usize) -> Class {
        let slots = 1_usize << class;
        Class { slots: Row::new(slots), present: Present::new(slots) }
    }
}

/// The chunks of a file.
#[derive(Debug)]
pub(super) struct Chunks {
    classes: [OnceLock<Box<Class>>; CHUNK_CLASSES],
}

/// Blocks that can have chunks.
pub(super) const CHUNKED_BLOCKS: u64 = CHUNK_BLOCKS * ((1 << CHUNK_CLASSES) - 1);

#[inline]
fn place(number: u64) -> (usize, usize) {
    let class = (number + 1).ilog2();
    (class as usize, (number + 1 - (1 << class)) as usize)
}

impl Chunks {
    pub(super) fn new() -> Chunks {
        Chunks { classes: std::array::from_fn(|_| OnceLock::new()) }
    }

    /// The chunk, if it is there.
    #[inline]
    pub(super) fn get(&self, number: u64) -> Option<&Chunk> {
        let (class, slot) = place(number);
        self.classes.get(class)?.get()?.slots.get(slot)?.get().map(|chunk| &**chunk)
    }

    /// Makes the place of a chunk.
    pub(super) fn prepare(&self, number: u64) {
        let (class, slot) = place(number);
        let cell = &self.classes[class];
        let class = match cell.get() {
            Some(class) => class,
            None => {
                let new = Box::new(Class::new(class));
                cell.get_or_init(|| new)
            }
        };
        class.slots.get_or_make(slot);
    }

    /// Puts a chunk in its place, which was prepared.
    pub(super) fn install(&self, number: u64, chunk: Box<Chunk>) -> Option<&Chunk> {
        let (class, slot) = place(number);
        let class = self.classes[class].get()?;
        class.present.set(slot);
        class.slots.get(slot).map(|slot| &**slot.get_or_init(|| chunk))
    }

    /// The first chunk from `number` on, and its number.
    pub(super) fn next(&self, number: u64) -> Option<(u64, &Chunk)> {
        let (first, mut from) = place(number);
        for (class, cell) in self.classes.iter().enumerate().skip(first) {
            if let Some(here) = cell.get()
                && let Some(slot) = here.present.next(from)
            {
                let number = (1_u64 << class) - 1 + slot as u64;
                return Some((number, here.slots.get(slot)?.get()?));
            }
            from = 0;
        }
        None
    }

    /// The number of the last chunk before `number`.
    pub(super) fn previous(&self, number: u64) -> Option<u64> {
        let (last, mut to) = place(number);
        for (class, cell) in self.classes.iter().enumerate().take(last + 1).rev() {
            if class < last {
                to = usize::MAX;
            }
            if let Some(slot) = cell.get().and_then(|here| here.present.previous(to)) {
                return Some((1_u64 << class) - 1 + slot as u64);
            }
        }
        None
    }

    /// Bytes on the heap, itself included.
    pub(super) fn bytes(&self) -> usize {
        let classes = self.classes.iter().filter_map(OnceLock::get);
        let inner: usize = classes
            .map(|class| {
                let chunks = class.present.count();
                let places = class.slots.bytes() + class.present.bytes();
                size_of::<Class>() + places + chunks * (size_of::<Chunk>() + CHUNK_BLOCKS as usize)
            })
            .sum();
        size_of::<Chunks>() + inner
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_found_in_order() {
        let chunks = Chunks::new();
        let numbers = [0, 2, 3, 6, 7, 16, 100, CHUNKED_BLOCKS / CHUNK_BLOCKS - 1];
        assert!(chunks.next(0).is_none() && chunks.previous(1000).is_none());
        for number in numbers {
            assert!(chunks.get(number).is_none());
            chunks.prepare(number);
            chunks.install(number, Box::new(Chunk::new())).unwrap();
            assert!(chunks.get(number).is_some());
        }
        for from in 0..200 {
            let next = numbers.into_iter().find(|&number| number >= from);
            assert_eq!(chunks.next(from).map(|(number, _)| number), next, "from {from}");
            let previous = numbers.into_iter().rev().find(|&number| number < from);
            assert_eq!(chunks.previous(from), previous, "before {from}");
        }
        let end = CHUNKED_BLOCKS / CHUNK_BLOCKS;
        assert_eq!(chunks.previous(end), Some(end - 1));
    }
}
