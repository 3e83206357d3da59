//! The contents of a write: pieces of the caller's memory, and the old contents around those that end within a block.

use f2fs_device::{AlignedBuf, Recycler};
use f2fs_format::{BLOCK_BYTES, BLOCK_SIZE};

/// Whole blocks that are copied into new memory, which is not cleared before, are fewer than this. More come in memory
/// that is used again.
const FEW: usize = 16;

/// Bytes to write; at least one.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    /// Where they begin in the file.
    pub offset: u64,
    /// The bytes.
    pub buf: &'a [u8],
}

impl Piece<'_> {
    /// The first and the last block.
    pub(super) fn blocks(&self) -> (u64, u64) {
        (self.offset / BLOCK_BYTES, (self.end() - 1) / BLOCK_BYTES)
    }

    /// Where they end in the file.
    pub(super) fn end(&self) -> u64 {
        self.offset + self.buf.len() as u64
    }

    /// Whether the piece has only a part of a block of its own.
    pub(super) fn is_partial(&self, block: u64) -> bool {
        self.offset > block * BLOCK_BYTES || self.end() < (block + 1) * BLOCK_BYTES
    }
}

/// A block that a piece covers in part, with its old content around that part.
pub(super) struct Edge {
    pub(super) block: u64,
    pub(super) data: AlignedBuf,
}

/// The blocks of pieces, one after the other.
pub(super) struct Source<'a> {
    pieces: &'a [Piece<'a>],
    edges: &'a [Edge],
    /// The next block, of the first piece.
    next: u64,
}

impl<'a> Source<'a> {
    /// From the first block of the first piece on.
    pub(super) fn new(pieces: &'a [Piece<'a>], edges: &'a [Edge]) -> Source<'a> {
        Source { pieces, edges, next: pieces.first().map_or(0, |piece| piece.offset / BLOCK_BYTES) }
    }

    /// The next blocks, in memory of their own.
    pub(super) fn take(&mut self, blocks: usize, recycler: &Recycler) -> AlignedBuf {
        if blocks < FEW
            && let Some(piece) = self.pieces.first()
            && !piece.is_partial(self.next)
            && self.whole(piece) >= blocks as u64
        {
            let from = (self.next * BLOCK_BYTES - piece.offset) as usize;
            let data = AlignedBuf::from_bytes(&piece.buf[from..from + blocks * BLOCK_SIZE]);
            self.advance(piece, blocks as u64);
            return data;
        }
        let mut data = recycler.take_stale(blocks);
        self.fill(&mut data);
        data
    }

    /// How many blocks of its first piece come next of which it has all.
    fn whole(&self, piece: &Piece<'_>) -> u64 {
        let (_, last) = piece.blocks();
        last + u64::from(!piece.is_partial(last)) - self.next
    }

    /// So many blocks of the first piece are done.
    fn advance(&mut self, piece: &Piece<'_>, blocks: u64) {
        self.next += blocks;
        if self.next > piece.blocks().1 {
            self.pieces = &self.pieces[1..];
            self.next = self.pieces.first().map_or(0, |piece| piece.offset / BLOCK_BYTES);
        }
    }

    /// Fills the buffer with the next blocks.
    pub(super) fn fill(&mut self, data: &mut AlignedBuf) {
        let mut filled = 0;
        while filled < data.blocks() {
            let Some(piece) = self.pieces.first() else { return };
            let len = if let [edge, rest @ ..] = self.edges
                && edge.block == self.next
                && piece.is_partial(self.next)
            {
                data.block_mut(filled).copy_from_slice(edge.data.block(0));
                self.edges = rest;
                1
            } else {
                // Whole blocks, up to an edge at the end.
                let len = self.whole(piece).min((data.blocks() - filled) as u64);
                let from = (self.next * BLOCK_BYTES - piece.offset) as usize;
                let bytes = (len * BLOCK_BYTES) as usize;
                let at = filled * BLOCK_SIZE;
                data.as_bytes_mut()[at..at + bytes].copy_from_slice(&piece.buf[from..from + bytes]);
                len as usize
            };
            filled += len;
            self.advance(piece, len as u64);
        }
    }
}
