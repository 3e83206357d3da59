//! A chunk of memory, and the pieces that it is cut into.
//!
//! # Safety
//!
//! A chunk gives each of its pieces out once, when it is made; a [`Piece`] is not copied. So each has its bytes for
//! itself, and all together keep the chunk.

use core::alloc::Layout;
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use core::slice;
use std::alloc::{alloc, dealloc, handle_alloc_error};

use f2fs_sync::PlainArc;

use crate::huge::{give_pages_back, prefer_huge_pages};

/// Bytes of a frame.
pub const FRAME: usize = 4096;

/// Memory that pieces are cut from.
pub(crate) struct Chunk {
    memory: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the memory is the chunk's own, and reached through its pieces alone, each of which has another part of it.
unsafe impl Send for Chunk {}
// SAFETY: as above; a reference to a chunk gives access to none of it.
unsafe impl Sync for Chunk {}

impl Chunk {
    /// The pieces of a new chunk, of zeros.
    pub(crate) fn pieces(count: usize) -> Vec<Piece> {
        let bytes = count.max(1) * FRAME;
        // A huge page has to begin where its size says.
        let align = if bytes.is_power_of_two() { bytes.max(FRAME) } else { FRAME };
        let Ok(layout) = Layout::from_size_align(bytes, align) else { unreachable!("a power of two") };
        // SAFETY: the layout has bytes.
        let Some(memory) = NonNull::new(unsafe { alloc(layout) }) else { handle_alloc_error(layout) };
        let chunk = PlainArc::new(Chunk { memory, layout });
        // SAFETY: so many bytes are there, nobody else knows of them yet, and they need not be initialised.
        let new = unsafe { slice::from_raw_parts_mut(memory.as_ptr().cast::<MaybeUninit<u8>>(), bytes) };
        prefer_huge_pages(new);
        new.fill(MaybeUninit::new(0));
        let at = |number: usize| {
            // SAFETY: the offset lies inside of the allocation.
            let begin = unsafe { memory.add(number * FRAME) };
            Piece { begin, chunk: chunk.clone() }
        };
        (0..count.max(1)).map(at).collect()
    }

    /// How many pieces it was cut into.
    fn len(&self) -> usize {
        self.layout.size() / FRAME
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        // SAFETY: it was allocated with this layout, and no piece is left.
        unsafe { dealloc(self.memory.as_ptr(), self.layout) }
    }
}

/// 4096 bytes of a chunk.
pub(crate) struct Piece {
    begin: NonNull<u8>,
    /// Keeps the memory.
    chunk: PlainArc<Chunk>,
}

// SAFETY: a piece owns its bytes, as a box does.
unsafe impl Send for Piece {}
// SAFETY: as above.
unsafe impl Sync for Piece {}

impl Piece {
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8; FRAME] {
        // SAFETY: the bytes are initialised, the piece's own, and there as long as the chunk.
        unsafe { self.begin.cast().as_ref() }
    }

    #[inline]
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8; FRAME] {
        // SAFETY: as above, and the piece is borrowed exclusively.
        unsafe { self.begin.cast().as_mut() }
    }

    fn ends_at(&self) -> *mut u8 {
        self.begin.as_ptr().wrapping_add(FRAME)
    }
}

/// Gives the memory of pieces back to the system: chunks that are whole go, and of the others the pages. Gives the pieces
/// that are left, by address. They have zeros, or what they had.
pub(crate) fn rest(mut pieces: Vec<Piece>) -> Vec<Piece> {
    pieces.sort_unstable_by_key(|piece| piece.begin);
    let mut left = Vec::new();
    let mut all = pieces.into_iter().peekable();
    while let Some(first) = all.next() {
        let chunk = first.chunk.clone();
        let mut of_chunk = vec![first];
        while let Some(next) = all.next_if(|next| PlainArc::ptr_eq(&next.chunk, &chunk)) {
            of_chunk.push(next);
        }
        if of_chunk.len() == chunk.len() {
            continue;
        }
        for run in of_chunk.chunk_by_mut(|piece, next| piece.ends_at() == next.begin.as_ptr()) {
            // SAFETY: the pieces are one behind the other in one chunk, which they keep, and are borrowed exclusively.
            give_pages_back(unsafe { slice::from_raw_parts_mut(run[0].begin.as_ptr(), run.len() * FRAME) });
        }
        left.append(&mut of_chunk);
    }
    left
}
