//! One word of the lock table: eight blocks, one byte each, changed together by one atomic operation.
//!
//! ```text
//!  bit 7        6 ........ 0
//! ┌────────┬────────────────┐   0          free
//! │ queued │     state      │   1 ..= 126  that many readers
//! └────────┴────────────────┘   127        one writer
//!
//!   free ──take(Shared)──► 1 ──take(Shared)──► 2 ... 126      126 ──take──► refused: the reader is held in the queue's list
//!   free ──take(Exclusive)──► 127 ──downgrade──► 1
//!   n ──release(Shared)──► n-1        127 ──release(Exclusive)──► free
//!   edges that do not exist: readers ──► 127 (no upgrade); any ──take──► any while `queued` is set
//! ```
//!
//! `queued` says that a request for the block waits in the table's queue, or that readers are held there because the
//! byte could not count them. It turns every newcomer into the queue, and tells the thread that releases the block to
//! look there. It is set and cleared under the queue's lock only.
//!
//! All of this is arithmetic on eight bytes at once: a byte never carries into its neighbour, because a reader is added
//! only to bytes below [`MAX_READERS`] and taken only from bytes above zero.

use f2fs_sync::protocol_value;

use crate::geometry::{BLOCKS_PER_WORD, MAX_READERS};

/// How a range is locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mode {
    /// Together with other shared holders.
    Shared,
    /// Alone.
    Exclusive,
}

/// One in every byte.
const ONES: u64 = 0x0101_0101_0101_0101;
/// The state bits of every byte.
const STATE: u64 = 0x7f7f_7f7f_7f7f_7f7f;
/// The queued bit of every byte.
pub(crate) const QUEUED: u64 = 0x8080_8080_8080_8080;
/// Added to a state, it reaches the top bit where no reader fits any more.
const TO_FULL: u64 = ONES * (0x80 - MAX_READERS);

/// The bytes of the blocks `first ..= last` of one word (both below 8).
#[inline]
pub(crate) const fn mask(first: u64, last: u64) -> u64 {
    (u64::MAX << (8 * first)) & (u64::MAX >> (8 * (BLOCKS_PER_WORD - 1 - last)))
}

impl Mode {
    /// Whether two requests for one block, in these modes, exclude each other.
    #[inline]
    pub(crate) fn conflicts(self, other: Mode) -> bool {
        self == Mode::Exclusive || other == Mode::Exclusive
    }

    /// The amount that a holder in this mode adds to the state of the blocks in `mask`.
    #[inline]
    pub(crate) const fn weight(self, mask: u64) -> u64 {
        match self {
            Mode::Shared => ONES & mask,
            Mode::Exclusive => STATE & mask,
        }
    }

    /// Whether the holders of the blocks in `mask` leave room for one more in this mode, queue or no queue.
    #[inline]
    pub(crate) fn fits(self, word: u64, mask: u64) -> bool {
        match self {
            Mode::Shared => protocol_value!(
                "readers_never_share",
                ((word & STATE) + TO_FULL) & mask & QUEUED == 0,
                word & mask & STATE == 0
            ),
            Mode::Exclusive => word & mask & STATE == 0,
        }
    }

    /// The word with the blocks in `mask` taken in this mode, unless a holder or a queue stands in the way.
    #[inline]
    pub(crate) fn take(self, word: u64, mask: u64) -> Option<u64> {
        let free = match self {
            Mode::Shared => {
                let free = (word | ((word & STATE) + TO_FULL)) & mask & QUEUED == 0;
                let free = protocol_value!("readers_never_share", free, word & mask == 0);
                let free = protocol_value!(
                    "take_ignores_the_crowd",
                    free,
                    !excludes(word, mask, self) && word & mask & QUEUED == 0
                );
                protocol_value!("take_overtakes_the_queue", free, self.fits(word, mask))
            }
            Mode::Exclusive => word & mask == 0,
        };
        free.then(|| word + self.weight(mask))
    }
}

/// Whether every byte in `mask` has a state that there is: free, up to [`MAX_READERS`] readers, or one writer.
pub(crate) const fn in_order(word: u64, mask: u64) -> bool {
    let word = word & mask & STATE;
    // The bytes that are above the most readers, by their top bits, and those that are a writer's.
    let above = (word + (TO_FULL - ONES)) & QUEUED;
    above == (word + ONES) & QUEUED
}

/// Whether a holder of a block in `mask` excludes a lock in `mode`. A full set of readers does not exclude a reader:
/// the queue's list has room for it.
#[inline]
pub(crate) fn excludes(word: u64, mask: u64, mode: Mode) -> bool {
    match mode {
        Mode::Shared => {
            protocol_value!(
                "readers_never_share",
                ((word & STATE) + ONES) & mask & QUEUED != 0,
                word & mask & STATE != 0
            )
        }
        Mode::Exclusive => word & mask & STATE != 0,
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn masks_are_whole_bytes() {
        assert_eq!(mask(0, 7), u64::MAX);
        assert_eq!(mask(0, 0), 0xff);
        assert_eq!(mask(7, 7), 0xff << 56);
        assert_eq!(mask(2, 4), 0x0000_00ff_ffff_0000);
    }

    #[test]
    fn every_state_of_a_byte_takes_and_releases_alone() {
        // Each state of byte 3, between neighbours in every extreme state.
        for neighbours in [0, STATE, QUEUED, u64::MAX, ONES * MAX_READERS] {
            let m = mask(3, 3);
            for byte in 0..=0xff_u64 {
                let word = (neighbours & !m) | (byte << 24);
                let (queued, state) = (byte & 0x80 != 0, byte & 0x7f);
                assert_eq!(Mode::Shared.fits(word, m), state < MAX_READERS, "{byte:#x}");
                assert_eq!(Mode::Exclusive.fits(word, m), state == 0, "{byte:#x}");
                let shared = Mode::Shared.take(word, m);
                assert_eq!(shared.is_some(), !queued && state < MAX_READERS, "{byte:#x}");
                let exclusive = Mode::Exclusive.take(word, m);
                assert_eq!(exclusive.is_some(), byte == 0, "{byte:#x}");
                for (taken, mode) in [(shared, Mode::Shared), (exclusive, Mode::Exclusive)] {
                    let Some(taken) = taken else { continue };
                    assert_eq!(taken & !m, word & !m, "the neighbours stay");
                    assert_eq!(taken - mode.weight(m), word, "a release undoes the taking");
                }
                assert_eq!(in_order(word, m), state <= MAX_READERS || state == 0x7f, "{byte:#x}");
                assert_eq!(excludes(word, m, Mode::Exclusive), state != 0);
                assert_eq!(excludes(word, m, Mode::Shared), state == 0x7f);
            }
        }
    }

    #[test]
    fn a_range_is_taken_whole_or_not() {
        let m = mask(1, 6);
        let word = Mode::Shared.take(0, m).unwrap();
        assert_eq!(word, 0x0001_0101_0101_0100);
        assert_eq!(Mode::Exclusive.take(word, mask(6, 7)), None);
        assert_eq!(Mode::Exclusive.take(word, mask(7, 7)), Some(0x7f01_0101_0101_0100));
    }
}
