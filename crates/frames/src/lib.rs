//! Frames: memory for the pages of a cache, 4 KiB each, in huge pages of the processor where the system gives them.
//!
//! A random hit in a large cache misses the caches of the processor, and the table of its address translations as well.
//! Frames are cut from chunks of 2 MiB, and the system is asked for one huge page for each: then one translation serves
//! 512 frames.
//!
//! ```text
//!   take ◄── list of this processor ◄── 64 at a time ── list of all ◄── up to 512 at a time ── chunk of up to 2 MiB
//!   drop ──► list of this processor ──► 64 at a time ─► list of all
//! ```
//!
//! ```
//! use f2fs_frames::{FRAME, Frames};
//!
//! let frames = Frames::new(10_000);
//! let mut frame = frames.take();
//! frame.fill(7);
//! assert_eq!(*frame, [7; FRAME]);
//! drop(frame);
//! frames.rest();
//! ```
//!
//! # Locking
//!
//! A list for each processor, and one that all share, a lock each. The shared one is taken under one of a processor. A
//! chunk is made with none held.

mod chunk;
mod frame;
mod freed;
mod huge;
mod lists;

use core::fmt;

pub use chunk::FRAME;
pub use frame::Frame;
pub use freed::give_back_freed;
pub use huge::prefer_huge_pages;

use lists::Lists;

/// The frames of one cache.
pub struct Frames {
    /// Models have no use for the order of frames, and have none.
    lists: Option<&'static Lists>,
}

impl fmt::Debug for Frames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes = self.lists.map(|lists| (lists.chunk(), lists.batch()));
        f.debug_struct("Frames").field("chunk_and_batch", &sizes).finish_non_exhaustive()
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        if let Some(lists) = self.lists {
            lists.retire();
        }
    }
}

impl Frames {
    /// For a cache of so many pages at most. Small caches have small chunks: what is taken and not in use is at most
    /// half of that, where it is 8 pages for each processor or more, and a chunk for each further thread that finds no
    /// frame at the same moment. The first chunks have 8 frames, and each further one as many as there are, up to 512.
    #[must_use]
    pub fn new(pages: u64) -> Frames {
        Frames { lists: (!cfg!(any(loom, shuttle))).then(|| Lists::for_frames(pages)) }
    }

    /// A frame, with whatever is in it.
    #[must_use]
    pub fn take(&self) -> Frame {
        self.take_any().0
    }

    /// A frame, and whether it is known to have zeros.
    fn take_any(&self) -> (Frame, bool) {
        self.lists.map_or_else(|| (Frame::alone(), true), Frame::of)
    }

    /// A frame of zeros.
    ///
    /// ```
    /// let frames = f2fs_frames::Frames::new(100);
    /// frames.take().fill(7);
    /// assert!(frames.take_zeroed().iter().all(|byte| *byte == 0));
    /// ```
    #[must_use]
    pub fn take_zeroed(&self) -> Frame {
        let (mut frame, has_zeros) = self.take_any();
        if !has_zeros {
            frame.fill(0);
        }
        frame
    }

    /// Gives the memory of frames that nobody uses back to the system. Worth its time behind a large number of frames that
    /// were dropped: some milliseconds for 100 MiB.
    pub fn rest(&self) {
        if let Some(lists) = self.lists {
            lists.rest();
        }
    }
}

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
        taken.clear();
        let again: Vec<Frame> = (0..2000).map(|_| frames.take()).collect();
        let common = addresses(&again).iter().filter(|address| before.binary_search(address).is_ok()).count();
        assert!(common >= 2000 - 512, "{common} of 2000 were used again");
    }

    #[test]
    fn zeros_are_asked_for() {
        let frames = Frames::new(64);
        for round in 0..200 {
            let mut taken: Vec<Frame> = (0..round % 40 + 1).map(|_| frames.take_zeroed()).collect();
            assert!(taken.iter().all(|frame| **frame == [0; FRAME]), "{round}");
            taken.iter_mut().for_each(|frame| frame[round] = 1);
        }
    }

    /// Frames live as long as they are held, whatever becomes of the others.
    #[test]
    fn frames_outlive_the_rest() {
        let frames = Frames::new(16);
        let mut kept = frames.take();
        drop(frames.take());
        drop(frames);
        kept.fill(3);
        assert_eq!(*kept, [3; FRAME]);
    }

    /// What nobody uses goes, and what is in use stays as it is.
    #[test]
    fn memory_that_nobody_uses_rests() {
        let frames = Frames::new(4096);
        let mut taken: Vec<Frame> = (0..2000).map(|_| frames.take()).collect();
        taken.iter_mut().enumerate().for_each(|(number, frame)| frame.fill((number % 250 + 1) as u8));
        // Every third one, and all of some chunks.
        let keep = |number: usize| number.is_multiple_of(3) && !(700..1900).contains(&number);
        let mut number = 0..;
        taken.retain(|_| number.next().is_some_and(keep));
        let chunks = || frames.lists.map_or(0, Lists::made);
        let before = chunks();
        frames.rest();
        let kept = (0..2000).filter(|number| keep(*number));
        for (number, frame) in kept.zip(&taken) {
            assert!(frame.iter().all(|byte| *byte == (number % 250 + 1) as u8), "{number}");
        }
        assert!((before - 1100..before - 500).contains(&chunks()), "{before} frames, then {}", chunks());
        frames.rest();
        // Linux gives zeros for pages that it was given.
        let again: Vec<Frame> = (0..chunks() - taken.len()).map(|_| frames.take()).collect();
        let resting = again.iter().filter(|frame| ***frame == [0; FRAME]).count();
        // A page of the system may be larger than a frame.
        assert!(resting == again.len() || rustix::param::page_size() > FRAME, "{resting} of {}", again.len());
        assert_eq!(chunks(), again.len() + taken.len(), "none was made");
        drop(again);
        taken.clear();
        frames.rest();
        assert_eq!(chunks(), 0);
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
                        if thread == 0 {
                            frames.rest();
                        }
                        assert!(mine.iter().all(|frame| **frame == [thread; FRAME]));
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
            assert!(frames.lists.is_some_and(|lists| lists.chunk() <= 4 && lists.batch() <= 2), "{frames:?}");
            drop(frames.take());
        }
    }
}
