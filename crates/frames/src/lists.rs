//! The frames that nobody uses.
//!
//! # Locking
//!
//! A list for each processor, and one that all share, a lock each. The shared one is taken under one of a processor, and
//! nothing under it. Memory is asked for and given back with none held.

use core::mem;

use f2fs_sync::{CachePadded, Mutex, PlainArc};

use crate::chunk::{Chunk, FRAME, Piece, rest};
use crate::huge::HUGE;

/// Frames of a chunk at most: a huge page.
const CHUNK: usize = HUGE / FRAME;
/// Frames of the first chunk at most: who uses a few frames takes little memory.
const FIRST: usize = 8;
/// Frames that go from list to list at a time, at most.
const BATCH: u64 = 32;

/// A piece that nobody uses.
pub(crate) struct Spare {
    pub(crate) piece: Piece,
    /// Nobody ever did: it has zeros.
    pub(crate) is_new: bool,
}

/// The list of all.
pub(crate) struct Shared {
    idle: Mutex<Idle>,
    /// Frames of a chunk at most.
    pub(crate) chunk: usize,
    pub(crate) batch: usize,
}

#[derive(Default)]
struct Idle {
    free: Vec<Spare>,
    /// Their memory the system has.
    resting: Vec<Spare>,
    /// Frames of all chunks.
    made: usize,
}

impl Shared {
    /// For so many frames in use at most, and so many lists.
    pub(crate) fn new(frames: u64, lists: usize) -> Shared {
        Shared {
            idle: Mutex::default(),
            chunk: (frames / 4).clamp(1, CHUNK as u64) as usize,
            batch: (frames / (8 * lists as u64)).clamp(1, BATCH) as usize,
        }
    }

    /// Some pieces, if there are any; else how many are to be made.
    fn some(&self, into: &mut Vec<Spare>) -> usize {
        let mut idle = self.idle.lock();
        let Idle { free, resting, made } = &mut *idle;
        let from = if free.is_empty() { resting } else { free };
        if from.is_empty() {
            let size = (*made).clamp(FIRST.min(self.chunk), self.chunk);
            *made += size;
            return size;
        }
        into.extend(from.drain(from.len().saturating_sub(self.batch)..));
        0
    }

    /// Frames of all chunks that are there.
    #[cfg(test)]
    pub(crate) fn made(&self) -> usize {
        self.idle.lock().made
    }

    /// Gives the memory of its pieces, and of `others`, back to the system.
    pub(crate) fn rest(&self, others: Vec<Spare>) {
        let mut spares = others;
        {
            let mut idle = self.idle.lock();
            spares.append(&mut idle.free);
            spares.append(&mut idle.resting);
        }
        let before = spares.len();
        let left = rest(spares.into_iter().map(|spare| spare.piece).collect());
        let mut idle = self.idle.lock();
        idle.made -= before - left.len();
        idle.resting.extend(left.into_iter().map(|piece| Spare { piece, is_new: false }));
    }
}

/// The list of a processor.
pub(crate) struct Home {
    free: CachePadded<Mutex<Vec<Spare>>>,
    shared: PlainArc<Shared>,
}

impl Home {
    pub(crate) fn new(shared: PlainArc<Shared>) -> Home {
        Home { free: CachePadded::default(), shared }
    }

    /// A piece that nobody uses.
    pub(crate) fn take(&self) -> Spare {
        let size = {
            let mut free = self.free.lock();
            if let Some(spare) = free.pop() {
                return spare;
            }
            let size = self.shared.some(&mut free);
            if let Some(spare) = free.pop() {
                return spare;
            }
            size
        };
        // Several threads may be here: each chunk is used in the end.
        let mut spares = Chunk::pieces(size).into_iter().map(|piece| Spare { piece, is_new: true });
        let Some(first) = spares.next() else { unreachable!("a chunk has a piece") };
        self.shared.idle.lock().free.extend(spares);
        first
    }

    /// Takes a piece back.
    pub(crate) fn give(&self, piece: Piece) {
        let mut free = self.free.lock();
        free.push(Spare { piece, is_new: false });
        if free.len() > 2 * self.shared.batch {
            let left = free.len() - self.shared.batch;
            self.shared.idle.lock().free.extend(free.drain(left..));
        }
    }

    /// Takes what is in its list.
    pub(crate) fn empty(&self) -> Vec<Spare> {
        mem::take(&mut *self.free.lock())
    }
}
