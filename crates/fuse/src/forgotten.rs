//! When memory of inodes that the kernel gave back is worth dropping.
//!
//! The kernel gives inodes back when memory is short, or when their files are removed. Then the caches below drop what
//! nobody uses, and not only what is above their limits, which are for a machine that has memory: tens of thousands of
//! nodes here and there among what was freed keep about as much memory again from going back. To look through the
//! caches takes time by what is in them: so it is done when a third of all that was known is gone.
//!
//! # Locking
//!
//! None: a count, which is set back by the thread that finds it high enough.

use f2fs_sync::atomic::{AtomicUsize, Ordering};

use crate::table::PART;

/// Inodes at least, and the step in which they are compared with those that are left: whole parts.
const STEP: usize = 4096;

/// The inodes that the kernel gave back since the caches were looked through.
#[derive(Debug, Default)]
pub(crate) struct Forgotten(AtomicUsize);

impl Forgotten {
    /// Counts a [`PART`]. Whether those that are gone are half as many as `left`, and the count begins anew.
    pub(crate) fn is_much(&self, left: impl FnOnce() -> usize) -> bool {
        let gone = self.0.fetch_add(PART, Ordering::Relaxed) + PART;
        let is_much = gone.is_multiple_of(STEP) && gone >= left() / 2;
        if is_much {
            self.0.store(0, Ordering::Relaxed);
        }
        is_much
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_third_of_many_is_much() {
        let forgotten = Forgotten::default();
        let parts = 100_000 / PART;
        let gone = (1..=parts).map(|part| part * PART);
        let much: Vec<usize> = gone.filter(|gone| forgotten.is_much(|| 100_000 - gone)).collect();
        // The first third in steps, then a third of what is left, and so on to steps.
        assert_eq!(much[0], 36_864);
        assert!(much.len() < 12 && 100_000 - much[much.len() - 1] < 2 * STEP, "{much:?}");
    }
}
