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

    /// Memory that is at home, with its first length.
    pub(crate) fn take(&self) -> Option<Vec<Block>> {
        let mut memory = self.pieces.lock().pop()?;
        debug_assert!(memory.capacity() >= self.blocks, "memory of another channel");
        // SAFETY: only memory with `blocks` initialised blocks gets this home (`new`). `AlignedBuf` shortens and fills
        // it and never moves it or hands it out, and bytes behind the end of a shortened vector stay as they are.
        unsafe { memory.set_len(self.blocks) };
        Some(memory)
    }
}
