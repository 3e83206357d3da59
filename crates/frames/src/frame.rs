//! A frame in use.

use core::fmt;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};

use crate::chunk::{Chunk, FRAME, Piece};
use crate::lists::{Lists, Spare};

/// 4096 bytes, aligned to as many. When it is dropped, its memory is there for other frames.
pub struct Frame {
    piece: ManuallyDrop<Piece>,
    /// Where the memory goes; `None`: to the allocator.
    lists: Option<&'static Lists>,
}

impl Frame {
    /// One from a list, and whether nobody had its memory before: then it has zeros.
    pub(crate) fn of(lists: &'static Lists) -> (Frame, bool) {
        let Spare { piece, is_new } = lists.take();
        (Frame { piece: ManuallyDrop::new(piece), lists: Some(lists) }, is_new)
    }

    /// A frame of its own, of zeros; its memory goes to the allocator.
    ///
    /// ```
    /// assert_eq!(*f2fs_frames::Frame::alone(), [0; f2fs_frames::FRAME]);
    /// ```
    #[must_use]
    pub fn alone() -> Frame {
        Frame { piece: ManuallyDrop::new(Chunk::pieces(1).swap_remove(0)), lists: None }
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        // SAFETY: nobody uses the frame any more, and this is called once.
        let piece = unsafe { ManuallyDrop::take(&mut self.piece) };
        if let Some(lists) = self.lists {
            lists.give(piece);
        }
    }
}

impl Deref for Frame {
    type Target = [u8; FRAME];

    #[inline]
    fn deref(&self) -> &[u8; FRAME] {
        self.piece.bytes()
    }
}

impl DerefMut for Frame {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8; FRAME] {
        self.piece.bytes_mut()
    }
}

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frame").finish_non_exhaustive()
    }
}
