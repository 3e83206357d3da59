//! Memory that a device may transfer into directly.

use std::{alloc::Layout, fmt, mem};

use f2fs_sync::Arc;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::BLOCK_SIZE;

/// One block of memory: 4096 bytes, aligned to 4096 bytes, which satisfies the DMA alignment of every device.
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C, align(4096))]
pub struct Block(pub [u8; BLOCK_SIZE]);

const _: () = assert!(size_of::<Block>() == BLOCK_SIZE && align_of::<Block>() == BLOCK_SIZE);

impl Block {
    /// A block of zeros.
    pub const ZERO: Self = Self([0; BLOCK_SIZE]);
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Block").field(&format_args!("{BLOCK_SIZE} bytes")).finish()
    }
}

/// A run of blocks in memory, contiguous and aligned to 4096 bytes.
///
/// Its heap memory does not move when the `AlignedBuf` itself moves, so a device can own it during a transfer.
#[derive(Default)]
pub struct AlignedBuf {
    memory: Vec<Block>,
    /// Blocks that the buffer has; those behind are memory of a home, with whatever was in it.
    used: usize,
    home: Option<Arc<dyn BufHome>>,
}

/// Where the memory of a buffer goes when the buffer is dropped: a pool whose memory a device knows beforehand.
///
/// A buffer with a home never frees or reallocates that memory. An operation that needs more room, or ownership of the
/// memory, copies.
pub trait BufHome: fmt::Debug + Send + Sync {
    /// Takes memory back that [`AlignedBuf::with_home`] was made of.
    fn take_back(&self, blocks: Vec<Block>);
}

impl AlignedBuf {
    /// A buffer of `blocks`, whose memory returns to `home`.
    #[must_use]
    pub fn with_home(blocks: Vec<Block>, home: Arc<dyn BufHome>) -> Self {
        Self { used: blocks.len(), memory: blocks, home: Some(home) }
    }

    /// A buffer of the first `blocks` blocks of `memory` (at most all), which stay as they are, and which returns to
    /// `home` as a whole.
    pub(crate) fn with_home_in(memory: Vec<Block>, blocks: usize, home: Arc<dyn BufHome>) -> Self {
        Self { used: blocks.min(memory.len()), memory, home: Some(home) }
    }

    /// Moves out of its home if there is no room for `blocks` blocks.
    fn make_room(&mut self, blocks: usize) {
        if blocks > self.memory.capacity() && self.home.is_some() {
            let mut own = Vec::with_capacity(blocks);
            own.extend_from_slice(self.as_blocks());
            *self = own.into();
        }
    }

    /// A zeroed buffer of `blocks` blocks. Of more than there is memory for, the process aborts, as for a vector.
    #[must_use]
    pub fn new(blocks: usize) -> Self {
        let blocks = Block::new_vec_zeroed(blocks).unwrap_or_else(|_| {
            std::alloc::handle_alloc_error(Layout::array::<Block>(blocks).unwrap_or(Layout::new::<Block>()))
        });
        blocks.into()
    }

    /// A copy of `bytes`, zero padded to whole blocks.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut blocks = Vec::with_capacity(bytes.len().div_ceil(BLOCK_SIZE));
        let (whole, rest) = bytes.as_chunks::<BLOCK_SIZE>();
        // Memory that is written anyway need not be cleared before.
        blocks.extend(whole.iter().map(|bytes| Block(*bytes)));
        if !rest.is_empty() {
            let mut last = Block::ZERO;
            last.0[..rest.len()].copy_from_slice(rest);
            blocks.push(last);
        }
        blocks.into()
    }

    /// The number of blocks.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.used
    }

    /// The number of bytes, a multiple of 4096.
    #[must_use]
    pub fn len(&self) -> usize {
        self.used * BLOCK_SIZE
    }

    /// Whether there is no block.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// All bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.as_blocks().as_bytes()
    }

    /// All bytes, to change.
    #[must_use]
    pub fn as_bytes_mut(&mut self) -> &mut [u8] {
        self.as_blocks_mut().as_mut_bytes()
    }

    /// The bytes of block `index`.
    ///
    /// # Panics
    /// When `index` is not below [`blocks`](Self::blocks), as slice indexing does.
    #[must_use]
    pub fn block(&self, index: usize) -> &[u8; BLOCK_SIZE] {
        &self.as_blocks()[index].0
    }

    /// The bytes of block `index`, to change.
    ///
    /// # Panics
    /// When `index` is not below [`blocks`](Self::blocks), as slice indexing does.
    #[must_use]
    pub fn block_mut(&mut self, index: usize) -> &mut [u8; BLOCK_SIZE] {
        &mut self.as_blocks_mut()[index].0
    }

    /// The blocks as a slice.
    #[must_use]
    pub fn as_blocks(&self) -> &[Block] {
        &self.memory[..self.used]
    }

    /// The blocks as a slice, to change.
    #[must_use]
    pub fn as_blocks_mut(&mut self) -> &mut [Block] {
        &mut self.memory[..self.used]
    }

    /// Shortens, or grows with zeros, to `blocks` blocks.
    pub fn resize(&mut self, blocks: usize) {
        self.make_room(blocks);
        let stale = self.used..blocks.min(self.memory.len());
        self.memory.get_mut(stale).unwrap_or_default().fill(Block::ZERO);
        if self.home.is_none() || blocks > self.memory.len() {
            self.memory.resize(blocks, Block::ZERO);
        }
        self.used = blocks;
    }

    /// Appends one block.
    pub fn push(&mut self, block: &[u8; BLOCK_SIZE]) {
        self.make_room(self.used + 1);
        match self.memory.get_mut(self.used) {
            Some(stale) => stale.0 = *block,
            None => self.memory.push(Block(*block)),
        }
        self.used += 1;
    }

    /// Appends a copy of `bytes`, zero padded to whole blocks.
    pub fn extend_from_bytes(&mut self, bytes: &[u8]) {
        let old = self.len();
        self.resize(self.blocks() + bytes.len().div_ceil(BLOCK_SIZE));
        self.as_bytes_mut()[old..old + bytes.len()].copy_from_slice(bytes);
    }
}

impl From<Vec<Block>> for AlignedBuf {
    fn from(blocks: Vec<Block>) -> Self {
        Self { used: blocks.len(), memory: blocks, home: None }
    }
}

impl From<AlignedBuf> for Vec<Block> {
    fn from(mut buf: AlignedBuf) -> Self {
        if buf.home.is_some() { buf.as_blocks().to_vec() } else { mem::take(&mut buf.memory) }
    }
}

impl Clone for AlignedBuf {
    /// A copy without a home.
    fn clone(&self) -> Self {
        self.as_blocks().to_vec().into()
    }
}

impl Drop for AlignedBuf {
    fn drop(&mut self) {
        if let Some(home) = self.home.take() {
            home.take_back(mem::take(&mut self.memory));
        }
    }
}

impl fmt::Debug for AlignedBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AlignedBuf").field("blocks", &self.blocks()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_zeroed_and_padded() {
        for blocks in [0, 1, 3, 512] {
            let buf = AlignedBuf::new(blocks);
            assert_eq!((buf.blocks(), buf.len(), buf.is_empty()), (blocks, blocks * BLOCK_SIZE, blocks == 0));
            assert_eq!(buf.as_bytes().as_ptr().addr() % BLOCK_SIZE, 0);
            assert!(buf.as_bytes().iter().all(|&b| b == 0));
        }
        let buf = AlignedBuf::from_bytes(&[7; BLOCK_SIZE + 1]);
        assert_eq!(buf.blocks(), 2);
        assert_eq!(buf.block(0), &[7; BLOCK_SIZE]);
        assert_eq!((buf.block(1)[0], buf.block(1)[1]), (7, 0));
    }

    #[test]
    fn growing_keeps_the_content() {
        let mut buf = AlignedBuf::from_bytes(b"a");
        buf.push(&[2; BLOCK_SIZE]);
        buf.extend_from_bytes(b"tail");
        buf.resize(4);
        assert_eq!(buf.blocks(), 4);
        assert_eq!(buf.block(0)[0], b'a');
        assert_eq!(buf.block(1), &[2; BLOCK_SIZE]);
        assert_eq!(&buf.block(2)[..5], b"tail\0");
        assert_eq!(buf.block(3), &[0; BLOCK_SIZE]);
    }

    #[test]
    fn the_memory_stays_where_it_is_when_the_buffer_moves() {
        let buf = AlignedBuf::new(2);
        let at = buf.as_bytes().as_ptr().addr();
        let moved = [buf];
        assert_eq!(moved[0].as_bytes().as_ptr().addr(), at);
    }

    #[derive(Debug, Default)]
    struct Pool(f2fs_sync::Mutex<Vec<Vec<Block>>>);

    impl BufHome for Pool {
        fn take_back(&self, blocks: Vec<Block>) {
            self.0.lock().push(blocks);
        }
    }

    #[test]
    fn memory_returns_to_its_home_and_never_moves() {
        let pool = Arc::new(Pool::default());
        let memory: Vec<Block> = AlignedBuf::new(4).into();
        let at = memory.as_ptr().addr();
        let home = |memory| AlignedBuf::with_home(memory, f2fs_sync::coerce!(Arc::clone(&pool) => dyn BufHome));
        let returned = || pool.0.lock().pop();
        let uses: [fn(AlignedBuf); 6] = [
            drop,
            |buf| drop(Vec::<Block>::from(buf)),
            |mut buf| buf.resize(1),
            |mut buf| {
                buf.block_mut(3)[0] = 9;
                buf.resize(100);
                assert_eq!((buf.block(3)[0], buf.block(4)[0]), (9, 0));
            },
            |mut buf| buf.push(&[1; BLOCK_SIZE]),
            |buf| drop(buf.clone()),
        ];
        let mut memory = memory;
        for each in uses {
            memory.resize(4, Block::ZERO);
            each(home(memory));
            memory = returned().unwrap();
            assert_eq!(memory.as_ptr().addr(), at);
            assert!(returned().is_none(), "returned twice");
        }
    }
}
