//! Whether what was looked up under a lock still holds, asked without the lock.

use crate::atomic::AtomicU64;
use crate::atomic::Ordering::{Acquire, Release};
use crate::protocol_step;

/// A number that belongs to something, and changes before that thing does.
///
/// # Rules
///
/// - Whoever looks something up holds its lock, at least shared, and takes the stamp ([`seen`](Stamp::seen)) meanwhile.
/// - A thread that changes it holds the lock exclusively, and invalidates the stamp *first*.
///
/// So as long as the stamp [holds](Stamp::holds), a look-up under the lock would find the same: a change that anybody
/// has seen happened after its stamp was invalidated. Asking writes nothing; changes that are rare keep a line that
/// many read from being written.
///
/// ```text
///   seen ──holds──► true ... true   invalidate   holds──► false (never true again)
///                                  └─ exclusive ─ change ─┘
/// ```
#[derive(Debug, Default)]
pub struct Stamp(AtomicU64);

impl Stamp {
    /// A stamp.
    #[must_use]
    pub fn new() -> Self {
        Stamp(AtomicU64::new(0))
    }

    /// The number now. Call it with the lock held, before or after looking.
    #[inline]
    #[must_use]
    pub fn seen(&self) -> u64 {
        self.0.load(Acquire)
    }

    /// Whether nothing was changed since this number was seen.
    #[inline]
    #[must_use]
    pub fn holds(&self, seen: u64) -> bool {
        self.0.load(Acquire) == seen
    }

    /// Lets no number that was seen hold any more. Call it with the lock held exclusively, before the change.
    pub fn invalidate(&self) {
        protocol_step!("stamp_moves_before_change", self.0.fetch_add(1, Release));
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_number_holds_until_the_next_change() {
        let stamp = Stamp::new();
        for _ in 0..3 {
            let seen = stamp.seen();
            assert!(stamp.holds(seen) && stamp.holds(stamp.seen()));
            stamp.invalidate();
            assert!(!stamp.holds(seen));
        }
    }
}
