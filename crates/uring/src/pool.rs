//! Registered buffers: memory that the kernel pinned beforehand for a ring.
//!
//! Registering pins the memory once instead of for each transfer. The ring knows a buffer by an index, and the pool
//! finds the index by the address: that is unambiguous because this memory is never freed while the pool lives. Buffers
//! made of it come home when they are dropped ([`BufHome`]), and the queue that registered it keeps the pool.
//!
//! Locking rules: one lock, on the memory that is at home; held to take or put back one piece.

use std::{collections::HashMap, io, slice};

use f2fs_device::{AlignedBuf, Block, BufHome};
use f2fs_sync::{Arc, Mutex};
use io_uring::{IoUring, cqueue, squeue};

use crate::flight::Vector;

/// The most buffers that a ring takes.
const MAX_BUFFERS: usize = 1 << 14;

/// The registered buffers of one ring.
#[derive(Debug)]
pub(crate) struct Pool {
    home: Arc<Home>,
    /// The index of each buffer by its address.
    indices: HashMap<usize, u16>,
}

#[derive(Debug, Default)]
struct Home {
    memory: Mutex<Vec<Vec<Block>>>,
}

impl BufHome for Home {
    fn take_back(&self, blocks: Vec<Block>) {
        self.memory.lock().push(blocks);
    }
}

impl Pool {
    /// Registers `count` new buffers of `blocks` blocks with `ring`, which must have none yet.
    ///
    /// # Errors
    /// The kernel's error; typically that more memory would be pinned than the process may (`RLIMIT_MEMLOCK`).
    pub(crate) fn register<S: squeue::EntryMarker, A: cqueue::EntryMarker>(
        ring: &IoUring<S, A>,
        count: usize,
        blocks: usize,
    ) -> io::Result<Self> {
        if count == 0 || blocks == 0 || count > MAX_BUFFERS {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut memory: Vec<Vec<Block>> = (0..count).map(|_| AlignedBuf::new(blocks).into()).collect();
        let vectors: Vec<Vector> = memory.iter_mut().map(|blocks| Vector::of(blocks)).collect();
        // SAFETY: `Vector` is laid out as `struct iovec`, and there are `count` of them.
        let iovecs = unsafe { slice::from_raw_parts(vectors.as_ptr().cast(), vectors.len()) };
        // SAFETY: the memory is owned by `memory`, which goes into the home. A buffer made of it neither frees nor
        // moves the memory: it brings it home. The queue that owns `ring` keeps the home until it has closed the ring.
        unsafe { ring.submitter().register_buffers(iovecs) }?;
        let indices = memory.iter().enumerate().map(|(index, blocks)| (blocks.as_ptr().addr(), index as u16)).collect();
        Ok(Self { home: Arc::new(Home { memory: Mutex::new(memory) }), indices })
    }

    /// A buffer of exactly `blocks` blocks, zeroed, if one is at home.
    pub(crate) fn take(&self, blocks: usize) -> Option<AlignedBuf> {
        let mut memory = {
            let mut home = self.home.memory.lock();
            let at = home.iter().position(|memory| memory.capacity() == blocks)?;
            home.swap_remove(at)
        };
        memory.clear();
        memory.resize(blocks, Block::ZERO);
        Some(AlignedBuf::with_home(memory, f2fs_sync::coerce!(Arc::clone(&self.home) => dyn BufHome)))
    }

    /// The index of a registered buffer.
    pub(crate) fn index(&self, buf: &AlignedBuf) -> Option<u16> {
        self.indices.get(&buf.as_bytes().as_ptr().addr()).copied()
    }
}
