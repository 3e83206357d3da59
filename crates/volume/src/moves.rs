//! How often blocks of files were moved while caches remember their addresses.
//!
//! # Rule
//!
//! A move is counted after the address slot was changed, and before the next checkpoint closes the gate (by the holder
//! of an [`Op`](crate::Op), or with the gate closed). Until that checkpoint is durable the block's old place keeps its
//! content. So an operation that compares the count after it has entered the gate may use remembered addresses for as
//! long as it runs.

use f2fs_format::Nid;
use f2fs_sync::atomic::{AtomicU64, Ordering};
use f2fs_sync::protocol_step;

/// Inodes share a count with those whose numbers are the same in the lowest bits.
const COUNTS: usize = if cfg!(loom) { 2 } else { 256 };

/// The counts. Read by every look-up of an address, written by moves alone.
#[derive(Debug)]
pub(crate) struct Moves {
    counts: Box<[AtomicU64]>,
}

impl Moves {
    pub(crate) fn new() -> Moves {
        Moves { counts: (0..COUNTS).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Grows whenever a data block of the inode was moved by another than the file's writers, and sometimes without
    /// cause.
    #[inline]
    pub(crate) fn count(&self, ino: Nid) -> u64 {
        self.of(ino).load(Ordering::Acquire)
    }

    /// Counts a move, after the slot was changed, within an operation.
    pub(crate) fn add(&self, ino: Nid) {
        protocol_step!("move_counted", self.of(ino).fetch_add(1, Ordering::Release));
    }

    fn of(&self, ino: Nid) -> &AtomicU64 {
        &self.counts[ino.index() % COUNTS]
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests {
    use super::*;

    #[test]
    fn a_move_is_counted_for_its_inode() {
        let moves = Moves::new();
        assert_eq!((moves.count(Nid(5)), moves.count(Nid(6))), (0, 0));
        (0..3).for_each(|_| moves.add(Nid(5)));
        assert_eq!((moves.count(Nid(5)), moves.count(Nid(6))), (3, 0));
    }
}
