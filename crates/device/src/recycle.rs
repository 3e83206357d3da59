//! Buffers that are used again, so that a transfer neither asks the allocator for aligned memory nor clears it.
//!
//! Locking rules: one lock a processor, on the memory that waits there; held to take or put back one piece. A buffer
//! goes back to the pool that it was taken from, whichever thread drops it: it refers to that place, whose count of
//! references so belongs to one processor, too.

use f2fs_sync::{Arc, Mutex, PerCore};

use crate::{AlignedBuf, Block, BufHome};

/// Buffers of fewer blocks are left to the allocator: none, but for models, where each lock multiplies the schedules.
const SHORTEST: usize = if cfg!(any(loom, shuttle)) { 16 } else { 1 };
/// Blocks that wait for a processor at most: 16 MiB.
const KEPT: usize = 4096;
/// Powers of two up to [`KEPT`].
const SIZES: usize = KEPT.ilog2() as usize + 1;

/// Memory of buffers, kept for the next one. Cheap to clone; clones share it.
///
/// ```
/// let recycler = f2fs_device::Recycler::new();
/// let mut buf = recycler.take_stale(500);
/// buf.as_bytes_mut().fill(7);
/// drop(buf);
/// assert_eq!(recycler.take_stale(500).blocks(), 500); // may hold zeros, or the sevens
/// ```
#[derive(Clone, Debug)]
pub struct Recycler {
    homes: Arc<PerCore<Arc<Home>>>,
}

/// The memory that waits for one processor; aligned, so that its references are counted on a line of their own.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Home {
    waiting: Mutex<Waiting>,
}

/// Pieces of memory.
#[derive(Debug, Default)]
struct Waiting {
    /// By the logarithm of their blocks.
    by_size: [Vec<Vec<Block>>; SIZES],
    /// Blocks of all of them.
    blocks: usize,
}

impl BufHome for Home {
    fn take_back(&self, memory: Vec<Block>) {
        let mut waiting = self.waiting.lock();
        let blocks = waiting.blocks + memory.capacity();
        if blocks <= KEPT
            && let Some(pieces) = waiting.by_size.get_mut(memory.capacity().ilog2() as usize)
        {
            pieces.push(memory);
            waiting.blocks = blocks;
        }
    }
}

impl Default for Recycler {
    fn default() -> Self {
        Self::new()
    }
}

impl Recycler {
    /// With no memory yet.
    #[must_use]
    pub fn new() -> Self {
        Self { homes: Arc::new(PerCore::new(|_| Arc::default())) }
    }

    /// A buffer of `blocks` blocks whose content is not defined: zeros, or what an earlier buffer held. The caller
    /// overwrites all of it. Its memory returns here when it is dropped.
    #[must_use]
    pub fn take_stale(&self, blocks: usize) -> AlignedBuf {
        let Some((mut memory, home)) = self.take(blocks) else { return AlignedBuf::new(blocks) };
        // What an earlier buffer had is not cleared again, whatever the lengths of those in between.
        if memory.len() < blocks {
            memory.resize(blocks, Block::ZERO);
        }
        AlignedBuf::with_home_in(memory, blocks, f2fs_sync::coerce!(home => dyn BufHome))
    }

    /// A buffer of no blocks, with room for `blocks`, which the caller [pushes](AlignedBuf::push). Its memory returns here
    /// when it is dropped.
    #[must_use]
    pub fn take_empty(&self, blocks: usize) -> AlignedBuf {
        let Some((memory, home)) = self.take(blocks) else { return Vec::with_capacity(blocks).into() };
        AlignedBuf::with_home_in(memory, 0, f2fs_sync::coerce!(home => dyn BufHome))
    }

    /// Memory for so many blocks, of which some, or none, hold what was there before; and its home. `None`: it is left to
    /// the allocator.
    fn take(&self, blocks: usize) -> Option<(Vec<Block>, Arc<Home>)> {
        if !(SHORTEST..=KEPT).contains(&blocks) {
            return None;
        }
        let size = blocks.next_power_of_two();
        let home = self.homes.slot();
        let found = {
            let mut waiting = home.waiting.lock();
            // The last one came home last, and is still in the processor's cache.
            let found = waiting.by_size[size.ilog2() as usize].pop();
            waiting.blocks -= found.as_ref().map_or(0, Vec::capacity);
            found
        };
        Some((found.unwrap_or_else(|| Vec::with_capacity(size)), Arc::clone(home)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(recycler: &Recycler) -> usize {
        recycler.homes.iter().map(|home| home.waiting.lock().blocks).sum()
    }

    #[test]
    fn buffers_come_home_and_empty_or_huge_ones_do_not() {
        let recycler = Recycler::new();
        drop(recycler.take_stale(0));
        drop(recycler.take_stale(KEPT + 1));
        assert_eq!(kept(&recycler), 0);
        for blocks in [1, 3, 16, 17, 400, 512, 300] {
            let buf = recycler.take_stale(blocks);
            assert_eq!(buf.blocks(), blocks);
            assert_eq!(buf.as_bytes().as_ptr().addr() % crate::BLOCK_SIZE, 0);
        }
        assert!(kept(&recycler) >= 1 + 4 + 16 + 32 + 512);
    }

    #[test]
    fn buffers_of_other_lengths_keep_what_was_there_and_begin_empty() {
        let recycler = Recycler::new();
        let mut buf = recycler.take_empty(5);
        assert!(buf.is_empty());
        (1..=5).for_each(|byte| buf.push(&[byte; crate::BLOCK_SIZE]));
        let at = buf.as_bytes().as_ptr().addr();
        drop(buf);
        drop(recycler.take_stale(7));
        let mut buf = recycler.take_stale(6);
        assert_eq!(buf.as_bytes().as_ptr().addr(), at, "the same memory");
        let firsts: Vec<u8> = buf.as_blocks().iter().map(|block| block.0[9]).collect();
        assert_eq!(firsts, [1, 2, 3, 4, 5, 0]);
        buf.resize(2);
        buf.resize(4);
        let firsts: Vec<u8> = buf.as_blocks().iter().map(|block| block.0[9]).collect();
        assert_eq!(firsts, [1, 2, 0, 0], "a buffer that grows has zeros");
        drop(buf);
        let mut buf = recycler.take_empty(8);
        buf.push(&[8; crate::BLOCK_SIZE]);
        assert_eq!((buf.blocks(), buf.block(0)[9], buf.clone().blocks()), (1, 8, 1));
        assert_eq!(Vec::from(buf).len(), 1);
    }

    #[test]
    fn what_waits_is_bounded_and_belongs_to_one_buffer_at_a_time() {
        let recycler = Recycler::new();
        let bufs: Vec<_> = (0..64).map(|_| recycler.take_stale(512)).collect();
        let mut places: Vec<_> = bufs.iter().map(|buf| buf.as_bytes().as_ptr().addr()).collect();
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), 64);
        drop(bufs);
        assert!(kept(&recycler) >= 512 && kept(&recycler) <= KEPT * recycler.homes.slots());
    }
}
