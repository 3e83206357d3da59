//! Where the memory of tags comes back to when a device has dropped its buffers.
//!
//! Locking rules: one lock, held to take or put back one piece: a device may drop a buffer in another thread.

use f2fs_device::{Block, BufHome};
use f2fs_sync::Mutex;

/// A home for pieces of memory of one length.
///
/// A buffer with a home keeps its memory to itself and brings it back whole, so all of it is initialised, as it was at
/// first.
#[derive(Debug)]
pub(crate) struct Home {
    blocks: usize,
    pieces: Mutex<Vec<Vec<Block>>>,
}

impl BufHome for Home {
    fn take_back(&self, blocks: Vec<Block>) {
        self.pieces.lock().push(blocks);
    }
}

impl Home {
    /// A home for memory of so many initialised blocks, and for no other.
    pub(crate) fn new(blocks: usize) -> Self {
        Self { blocks, pieces: Mutex::default() }
    }

    /// Any memory that is at home, with its first length.
    pub(crate) fn take(&self) -> Option<Vec<Block>> {
        let memory = self.pieces.lock().pop()?;
        Some(self.whole(memory))
    }

    /// The memory that begins at this block, if it is at home.
    pub(crate) fn take_at(&self, first: *const Block) -> Option<Vec<Block>> {
        let mut pieces = self.pieces.lock();
        let place = pieces.iter().rposition(|memory| memory.as_ptr() == first)?;
        let memory = pieces.swap_remove(place);
        drop(pieces);
        Some(self.whole(memory))
    }

    fn whole(&self, mut memory: Vec<Block>) -> Vec<Block> {
        debug_assert!(memory.capacity() >= self.blocks, "memory of another channel");
        // SAFETY: only memory with `blocks` initialised blocks gets this home (`new`). `AlignedBuf` shortens and fills
        // it and never moves it or hands it out, and bytes behind the end of a shortened vector stay as they are.
        unsafe { memory.set_len(self.blocks) };
        memory
    }
}

#[cfg(test)]
mod tests {
    use f2fs_device::AlignedBuf;
    use f2fs_sync::{Arc, coerce};

    use super::*;

    #[test]
    fn the_memory_that_was_lent_is_found_among_others() {
        let home = Arc::new(Home::new(4));
        let lend = |blocks: usize| {
            let mut memory: Vec<Block> = AlignedBuf::new(4).into();
            memory.truncate(blocks);
            AlignedBuf::with_home(memory, coerce!(Arc::clone(&home) => dyn BufHome))
        };
        let (first, second) = (lend(1), lend(3));
        let at = first.as_blocks().as_ptr();
        assert!(home.take_at(at).is_none(), "it is lent still");
        drop(first);
        drop(second);
        assert!(home.take_at(AlignedBuf::new(1).as_blocks().as_ptr()).is_none(), "of no home");
        let found = home.take_at(at).unwrap();
        assert_eq!((found.as_ptr(), found.len()), (at, 4));
        assert!(home.take_at(at).is_none());
        assert_eq!(home.take().unwrap().len(), 4);
        assert!(home.take().is_none());
    }
}
