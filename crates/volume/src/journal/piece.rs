//! The pieces of a node that a record holds or leaves out.

use core::ops::Range;

use f2fs_format::node::BODY_SIZE;

/// Bytes of a piece: a line of the processor's cache.
pub(crate) const PIECE: usize = 64;
/// Pieces of a node's body; the last one has 40 bytes. There is a bit for each in a word.
pub(crate) const PIECES: usize = BODY_SIZE.div_ceil(PIECE);

const _: () = assert!(PIECES == 64);

/// Where a piece lies in a node's body.
pub(crate) fn place(piece: usize) -> Range<usize> {
    piece * PIECE..((piece + 1) * PIECE).min(BODY_SIZE)
}

/// A bit for each piece of this part of the body, which begins with one and is not empty.
#[inline]
pub(crate) fn mask(at: usize, len: usize) -> u64 {
    u64::MAX >> (PIECES - len.div_ceil(PIECE)) << (at / PIECE)
}
