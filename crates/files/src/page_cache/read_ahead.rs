//! How much is read beyond what was asked for.
//!
//! A read that misses where the last one that missed ended goes on with it: the window doubles, up to 1 MiB. Any other
//! miss is a place by itself, and nothing is read ahead; but a file that is read from its start on is expected to be
//! read on.
//!
//! # Locking
//!
//! None. The numbers are hints: threads that read one file at several places at once disturb each other's window, and
//! then read without it. Hits do not look here.

use f2fs_sync::atomic::{AtomicU64, Ordering};

/// Blocks of the first window: 64 KiB.
const FIRST: u64 = 16;
/// Blocks of the largest one: 1 MiB.
const LARGEST: u64 = 256;

/// The pattern of a file's reads.
#[derive(Debug, Default)]
pub(crate) struct ReadAhead {
    /// The block behind all that was read at the last miss.
    next: AtomicU64,
    /// Blocks read ahead then.
    window: AtomicU64,
}

impl ReadAhead {
    /// How many blocks to read ahead of a read that misses from block `first` on.
    pub(crate) fn window(&self, first: u64) -> u64 {
        let window = if first == 0 || first == self.next.load(Ordering::Relaxed) {
            (2 * self.window.load(Ordering::Relaxed)).clamp(FIRST, LARGEST)
        } else {
            0
        };
        self.window.store(window, Ordering::Relaxed);
        window
    }

    /// All up to block `end` was read.
    pub(crate) fn read_to(&self, end: u64) {
        self.next.store(end, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn the_window_grows_with_a_sequence_and_closes_with_a_jump() {
        let ahead = ReadAhead::default();
        let read = |first| {
            let window = ahead.window(first);
            ahead.read_to(first + 1 + window);
            window
        };
        assert_eq!(read(0), 16);
        assert_eq!(read(17), 32);
        assert_eq!(read(50), 64);
        assert_eq!(read(1000), 0);
        assert_eq!(read(10), 0);
        assert_eq!(read(11), 16, "two in a row");
    }
}
