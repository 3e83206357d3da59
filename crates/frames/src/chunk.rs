//! A chunk of memory, and the frames that it is cut into.
//!
//! # Safety
//!
//! A chunk gives each of its frames out once, when it is made; a [`Frame`] is not copied. So each has its bytes for
//! itself, and all together keep the chunk.

use core::alloc::Layout;
use core::mem::MaybeUninit;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
use core::{fmt, slice};
use std::alloc::{alloc, dealloc, handle_alloc_error};

use crate::SharedChunk;
use crate::huge::prefer_huge_pages;

/// Bytes of a frame.
pub const FRAME: usize = 4096;

/// Memory that frames are cut from.
pub(crate) struct Chunk {
    memory: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the memory is the chunk's own, and reached through its frames alone, each of which has another part of it.
unsafe impl Send for Chunk {}
// SAFETY: as above; a reference to a chunk gives access to none of it.
unsafe impl Sync for Chunk {}

impl Chunk {
    /// The frames of a new chunk, of zeros.
    pub(crate) fn frames(count: usize) -> Vec<Frame> {
        let bytes = count.max(1) * FRAME;
        // A huge page has to begin where its size says.
        let align = if bytes.is_power_of_two() { bytes.max(FRAME) } else { FRAME };
        let Ok(layout) = Layout::from_size_align(bytes, align) else { unreachable!("a power of two") };
        // SAFETY: the layout has bytes.
        let Some(memory) = NonNull::new(unsafe { alloc(layout) }) else { handle_alloc_error(layout) };
        let chunk = SharedChunk::new(Chunk { memory, layout });
        // SAFETY: so many bytes are there, nobody else knows of them yet, and they need not be initialised.
        let new = unsafe { slice::from_raw_parts_mut(memory.as_ptr().cast::<MaybeUninit<u8>>(), bytes) };
        prefer_huge_pages(new);
        new.fill(MaybeUninit::new(0));
        let at = |number: usize| {
            // SAFETY: the offset lies inside of the allocation.
            let bytes = unsafe { memory.add(number * FRAME) };
            Frame { bytes, chunk: chunk.clone() }
        };
        (0..count.max(1)).map(at).collect()
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        // SAFETY: it was allocated with this layout, and no frame is left.
        unsafe { dealloc(self.memory.as_ptr(), self.layout) }
    }
}

/// 4096 bytes, aligned to as many.
pub struct Frame {
    bytes: NonNull<u8>,
    /// Keeps the memory.
    #[expect(dead_code, reason = "it is held, not looked at")]
    chunk: SharedChunk,
}

// SAFETY: a frame owns its bytes, as a box does.
unsafe impl Send for Frame {}
// SAFETY: as above.
unsafe impl Sync for Frame {}

impl Deref for Frame {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the bytes are initialised, the frame's own, and there as long as the chunk.
        unsafe { slice::from_raw_parts(self.bytes.as_ptr(), FRAME) }
    }
}

impl DerefMut for Frame {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and the frame is borrowed exclusively.
        unsafe { slice::from_raw_parts_mut(self.bytes.as_ptr(), FRAME) }
    }
}

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frame").finish_non_exhaustive()
    }
}
