//! The frames that nobody uses.
//!
//! # Locking
//!
//! A list for each processor, and one that all share, a lock each. The shared one is taken under one of a processor, and
//! nothing under it. Memory is asked for and given back with none held.
//!
//! The lists of a cache stay in the program for ever, so that a frame reaches them without a count of references, which
//! all processors would write. Those of a cache that is gone are empty, and the next cache gets them.

use f2fs_sync::atomic::{AtomicUsize, Ordering};
use f2fs_sync::{CachePadded, Mutex, PerCore, processors};

use crate::chunk::{Chunk, FRAME, Piece, rest};
use crate::huge::HUGE;

/// Frames of a chunk at most: a huge page.
const CHUNK: usize = HUGE / FRAME;
/// Frames of the first chunk at most: who uses a few frames takes little memory.
const FIRST: usize = 8;
/// Frames that go from list to list at a time, at most.
const BATCH: u64 = 64;

/// A piece that nobody uses.
pub(crate) struct Spare {
    pub(crate) piece: Piece,
    /// Nobody ever did: it has zeros.
    pub(crate) is_new: bool,
}

/// The lists of a cache.
#[derive(Default)]
pub(crate) struct Lists {
    here: PerCore<Mutex<Vec<Spare>>>,
    shared: CachePadded<Mutex<Shared>>,
    /// Frames of a chunk at most.
    chunk: AtomicUsize,
    batch: AtomicUsize,
}

#[derive(Default)]
struct Shared {
    free: Vec<Spare>,
    /// Their memory the system has.
    resting: Vec<Spare>,
    /// Frames of all chunks.
    made: usize,
}

impl Lists {
    /// Empty ones, for so many frames in use at most.
    pub(crate) fn for_frames(frames: u64) -> &'static Lists {
        let lists = gone::take().unwrap_or_else(|| Box::leak(Box::default()));
        let processors = (processors() as u64).next_power_of_two();
        // Of the cache before, frames may still be in use.
        lists.shared.lock().made = 0;
        lists.chunk.store((frames / 4).clamp(1, CHUNK as u64) as usize, Ordering::Relaxed);
        lists.batch.store((frames / (8 * processors)).clamp(1, BATCH) as usize, Ordering::Relaxed);
        lists
    }

    /// Their cache is gone: nobody takes from them before the next one.
    pub(crate) fn retire(&'static self) {
        self.rest_of(|_| Vec::new());
        gone::put(self);
    }

    /// Frames of a chunk at most.
    pub(crate) fn chunk(&self) -> usize {
        self.chunk.load(Ordering::Relaxed)
    }

    /// Frames that go from list to list.
    pub(crate) fn batch(&self) -> usize {
        self.batch.load(Ordering::Relaxed)
    }

    /// Frames of all chunks that are there.
    #[cfg(test)]
    pub(crate) fn made(&self) -> usize {
        self.shared.lock().made
    }

    /// A piece that nobody uses.
    pub(crate) fn take(&self) -> Spare {
        let size = {
            let mut here = self.here.slot().lock();
            if let Some(spare) = here.pop() {
                return spare;
            }
            let mut shared = self.shared.lock();
            let Shared { free, resting, made } = &mut *shared;
            let from = if free.is_empty() { resting } else { free };
            here.extend(from.drain(from.len().saturating_sub(self.batch())..));
            if let Some(spare) = here.pop() {
                return spare;
            }
            let size = (*made).clamp(FIRST.min(self.chunk()), self.chunk());
            *made += size;
            size
        };
        // Several threads may be here: each chunk is used in the end.
        let mut spares = Chunk::pieces(size).into_iter().map(|piece| Spare { piece, is_new: true });
        let Some(first) = spares.next() else { unreachable!("a chunk has a piece") };
        self.shared.lock().free.extend(spares);
        first
    }

    /// Takes a piece back.
    pub(crate) fn give(&self, piece: Piece) {
        let mut here = self.here.slot().lock();
        here.push(Spare { piece, is_new: false });
        if here.len() > 2 * self.batch() {
            let left = here.len() - self.batch();
            self.shared.lock().free.extend(here.drain(left..));
        }
    }

    /// Gives the memory of all pieces back to the system.
    pub(crate) fn rest(&self) {
        self.rest_of(rest);
    }

    /// Puts what `keep` leaves of all pieces among those that rest.
    fn rest_of(&self, keep: impl FnOnce(Vec<Piece>) -> Vec<Piece>) {
        let mut spares = Vec::new();
        self.here.iter().for_each(|here| spares.append(&mut here.lock()));
        {
            let mut shared = self.shared.lock();
            spares.append(&mut shared.free);
            spares.append(&mut shared.resting);
        }
        let before = spares.len();
        let left = keep(spares.into_iter().map(|spare| spare.piece).collect());
        let mut shared = self.shared.lock();
        shared.made = shared.made.saturating_sub(before - left.len());
        shared.resting.extend(left.into_iter().map(|piece| Spare { piece, is_new: false }));
    }
}

/// The lists of caches that are gone.
#[cfg(not(any(loom, shuttle)))]
mod gone {
    use f2fs_sync::{Mutex, OnceLock};

    use super::Lists;

    fn all() -> &'static Mutex<Vec<&'static Lists>> {
        static GONE: OnceLock<Mutex<Vec<&'static Lists>>> = OnceLock::new();
        GONE.get_or_init(Mutex::default)
    }

    pub(super) fn take() -> Option<&'static Lists> {
        all().lock().pop()
    }

    pub(super) fn put(lists: &'static Lists) {
        all().lock().push(lists);
    }
}

/// Models make none.
#[cfg(any(loom, shuttle))]
mod gone {
    use super::Lists;

    pub(super) fn take() -> Option<&'static Lists> {
        None
    }

    pub(super) fn put(_lists: &'static Lists) {}
}
