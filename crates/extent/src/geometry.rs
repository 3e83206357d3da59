//! The sizes of the lock table, in one place; under `cfg(loom)` they shrink, so that a model of three threads ends.
//!
//! ```text
//! word   8 blocks, one byte each                 the unit of one compare-and-swap
//! line   8 words  = 64 blocks = one cache line   block 0's line lies in the table itself
//! chunk  64 lines = 4096 blocks = 16 MiB of file the unit of allocation of large files
//! class  k holds the lines 2^k ..= 2^(k+1)-1     24 classes: 2^30 blocks = 4 TiB, more than an F2FS file can have
//! ```

/// Blocks in a word: one byte each.
pub(crate) const BLOCKS_PER_WORD: u64 = 8;

/// Words in a line.
#[cfg(not(loom))]
pub(crate) const WORDS_PER_LINE: usize = 8;
#[cfg(loom)]
pub(crate) const WORDS_PER_LINE: usize = 2;

/// Lines in a full chunk.
#[cfg(not(loom))]
pub(crate) const LINES_PER_CHUNK: u64 = 64;
#[cfg(loom)]
pub(crate) const LINES_PER_CHUNK: u64 = 2;

/// Classes of lines that the directory knows.
#[cfg(not(loom))]
pub(crate) const CLASSES: usize = 24;
#[cfg(loom)]
pub(crate) const CLASSES: usize = 2;

/// Places in a piece of a row: of chunks of lines, or of bits.
#[cfg(not(loom))]
pub(crate) const PIECE: usize = 1024;
#[cfg(loom)]
pub(crate) const PIECE: usize = 1;

/// How many readers the byte of a block counts; further ones are held in the queue's list.
#[cfg(not(loom))]
pub(crate) const MAX_READERS: u64 = 126;
#[cfg(loom)]
pub(crate) const MAX_READERS: u64 = 2;

/// A range of this many blocks or more is locked as a covering range and not word by word.
#[cfg(not(loom))]
pub(crate) const COVERING_BLOCKS: u64 = 4096;
#[cfg(loom)]
pub(crate) const COVERING_BLOCKS: u64 = 16;

/// Blocks in a chunk of bits.
#[cfg(not(loom))]
pub(crate) const CHUNK_BLOCKS: u64 = 4096;
#[cfg(loom)]
pub(crate) const CHUNK_BLOCKS: u64 = 16;

/// Classes of chunks of bits: class k has the chunks 2^k - 1 .. 2^(k+1) - 1.
#[cfg(not(loom))]
pub(crate) const CHUNK_CLASSES: usize = 18;
#[cfg(loom)]
pub(crate) const CHUNK_CLASSES: usize = 2;

/// Blocks in a line.
pub(crate) const BLOCKS_PER_LINE: u64 = BLOCKS_PER_WORD * WORDS_PER_LINE as u64;

/// Blocks that have a word; a range that reaches beyond is locked as a covering range.
pub(crate) const MAPPED_BLOCKS: u64 = BLOCKS_PER_LINE << CLASSES;

const _: () = {
    assert!(WORDS_PER_LINE.is_power_of_two() && LINES_PER_CHUNK.is_power_of_two());
    // A block's byte counts readers up to MAX_READERS; 0x7f says exclusive; the top bit says queued.
    assert!(MAX_READERS < 0x7f);
    assert!(COVERING_BLOCKS <= MAPPED_BLOCKS);
};
