//! Frames: memory for the pages of a cache, 4 KiB each, in huge pages of the processor where the system gives them.
//!
//! A random hit in a large cache misses the caches of the processor, and the table of its address translations as well.
//! Frames are cut from chunks of 2 MiB, and the system is asked for one huge page for each: then one translation serves
//! 512 frames.
//!
//! ```text
//!   take ◄── list of this processor ◄── 32 at a time ── list of all ◄── 512 at a time ── chunk of 2 MiB
//!   give ──► list of this processor ──► 32 at a time ─► list of all
//! ```
//!
//! ```
//! use f2fs_frames::{FRAME, Frames};
//!
//! let frames = Frames::new(10_000);
//! let mut frame = frames.take();
//! frame.fill(7);
//! assert_eq!(*frame, [7; FRAME]);
//! frames.give(frame);
//! ```
//!
//! # Locking
//!
//! Those of [`Spares`]. A chunk is made with no lock held.

mod chunk;
mod freed;
mod huge;

use core::fmt;

use f2fs_sync::{PlainArc, Spares, processors};

pub use chunk::{FRAME, Frame};
pub use freed::give_back_freed;
pub use huge::prefer_huge_pages;

use chunk::Chunk;

/// Frames of a chunk at most: a huge page.
const CHUNK: u64 = (huge::HUGE / FRAME) as u64;
/// Frames that go from list to list at a time, at most.
const BATCH: u64 = 32;

/// The frames of one cache.
pub struct Frames {
    unused: Spares<Frame>,
    /// Frames of a chunk.
    chunk: usize,
}

impl fmt::Debug for Frames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frames").field("chunk", &self.chunk).field("unused", &self.unused).finish()
    }
}

impl Frames {
    /// For a cache of so many pages at most. Small caches have small chunks: what is taken and not in use is at most
    /// half of that, where it is 8 pages for each processor or more, and a chunk for each further thread that finds no
    /// frame at the same moment.
    #[must_use]
    pub fn new(pages: u64) -> Frames {
        Frames { unused: Spares::new(batch_for(pages)), chunk: (pages / 4).clamp(1, CHUNK) as usize }
    }

    /// A frame, with whatever is in it.
    #[must_use]
    pub fn take(&self) -> Frame {
        if cfg!(any(loom, shuttle)) {
            // Models have no use for the order of frames.
            return Chunk::frames(1).remove(0);
        }
        if let Some(frame) = self.unused.take() {
            return frame;
        }
        // Several threads may be here: each chunk is used in the end.
        let mut frames = Chunk::frames(self.chunk);
        let frame = frames.swap_remove(0);
        self.unused.give_all(frames);
        frame
    }

    /// Takes a frame back.
    pub fn give(&self, frame: Frame) {
        if !cfg!(any(loom, shuttle)) {
            self.unused.give(frame);
        }
    }
}

/// Frames of a cache of so many pages that go from list to list at a time.
fn batch_for(pages: u64) -> usize {
    let lists = (processors() as u64).next_power_of_two();
    (pages / (8 * lists)).clamp(1, BATCH) as usize
}

/// Shared by the frames of a chunk.
type SharedChunk = PlainArc<Chunk>;

/// The example of this crate's README, so that it is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn frames_are_apart_and_come_again() {
        let frames = Frames::new(4096);
        let mut taken: Vec<Frame> = (0..2000).map(|_| frames.take()).collect();
        for (number, frame) in taken.iter_mut().enumerate() {
            assert_eq!(**frame, [0; FRAME]);
            frame.fill(number as u8);
        }
        for (number, frame) in taken.iter().enumerate() {
            assert!(frame.iter().all(|byte| *byte == number as u8), "{number}");
            assert!(frame.as_ptr().addr().is_multiple_of(FRAME));
        }
        let addresses = |frames: &[Frame]| {
            let mut all: Vec<_> = frames.iter().map(|frame| frame.as_ptr().addr()).collect();
            all.sort_unstable();
            all
        };
        let before = addresses(&taken);
        taken.drain(..).for_each(|frame| frames.give(frame));
        let again: Vec<Frame> = (0..2000).map(|_| frames.take()).collect();
        let common = addresses(&again).iter().filter(|address| before.binary_search(address).is_ok()).count();
        assert!(common >= 2000 - 512, "{common} of 2000 were used again");
    }

    /// Frames live as long as they are held, whatever becomes of the others.
    #[test]
    fn frames_outlive_the_rest() {
        let frames = Frames::new(16);
        let mut kept = frames.take();
        frames.give(frames.take());
        drop(frames);
        kept.fill(3);
        assert_eq!(*kept, [3; FRAME]);
    }

    #[test]
    fn threads_share_them() {
        let frames = Frames::new(1000);
        std::thread::scope(|scope| {
            for thread in 0..4_u8 {
                let frames = &frames;
                scope.spawn(move || {
                    for round in 0..200 {
                        let mut mine: Vec<Frame> = (0..round % 50 + 1).map(|_| frames.take()).collect();
                        mine.iter_mut().for_each(|frame| frame.fill(thread));
                        assert!(mine.iter().all(|frame| **frame == [thread; FRAME]));
                        mine.drain(..).for_each(|frame| frames.give(frame));
                    }
                });
            }
        });
    }

    #[test]
    fn advice_takes_any_memory() {
        for len in [0, 1, 1000, (2 << 20) / 8, 5 << 20] {
            let mut table: Vec<u64> = Vec::with_capacity(len);
            prefer_huge_pages(table.spare_capacity_mut());
            table.resize(len, 7);
            assert!(table.iter().all(|word| *word == 7));
        }
        prefer_huge_pages::<()>(&mut [core::mem::MaybeUninit::new(()); 3]);
    }

    #[test]
    fn a_small_cache_takes_little() {
        for pages in [0, 1, 3, 16] {
            let frames = Frames::new(pages);
            assert!(frames.chunk <= 4 && batch_for(pages) <= 2, "{frames:?}");
            frames.give(frames.take());
        }
    }
}
