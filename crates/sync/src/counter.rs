//! A counter that many threads change and few read.

use crate::PerCore;
use crate::atomic::AtomicI64;
use crate::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::protocol_never;

/// A signed counter kept as one delta per processor: changing it writes no line that another processor writes, reading
/// it adds all deltas up.
///
/// Single deltas may be negative (what one processor adds another may take away), and deltas and their sum wrap on
/// overflow.
///
/// ```
/// use f2fs_sync::ShardedCounter;
///
/// let valid_blocks = ShardedCounter::new(100);
/// valid_blocks.add(3);
/// valid_blocks.sub(1);
/// assert_eq!(valid_blocks.sum(), 102);
/// ```
#[derive(Debug)]
pub struct ShardedCounter {
    deltas: PerCore<AtomicI64>,
}

impl ShardedCounter {
    /// A counter that starts at `value`.
    #[must_use]
    pub fn new(value: i64) -> Self {
        ShardedCounter { deltas: PerCore::new(|slot| AtomicI64::new(if slot == 0 { value } else { 0 })) }
    }

    /// Adds `amount`. The new delta of this processor, which tells nothing of the sum: it serves to do something once
    /// in so many additions.
    #[inline]
    pub fn add(&self, amount: i64) -> i64 {
        let delta = self.deltas.slot();
        protocol_never!("counter_add_not_atomic", {
            let new = delta.load(Relaxed).wrapping_add(amount);
            delta.store(new, Release);
            return new;
        });
        delta.fetch_add(amount, Release).wrapping_add(amount)
    }

    /// Takes `amount` away.
    #[inline]
    pub fn sub(&self, amount: i64) {
        self.add(amount.wrapping_neg());
    }

    /// The value.
    ///
    /// Exact if nobody changes the counter meanwhile (a checkpoint has the gate closed, say). Else it holds every
    /// change that happened before the call, and any of those that happen during it: it need not be a value that the
    /// counter ever had.
    #[must_use]
    pub fn sum(&self) -> i64 {
        self.deltas.iter().fold(0, |sum, delta| sum.wrapping_add(delta.load(Acquire)))
    }
}

impl Default for ShardedCounter {
    fn default() -> Self {
        ShardedCounter::new(0)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_between_threads() {
        let counter = ShardedCounter::new(-5);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let counter = &counter;
                scope.spawn(move || {
                    for _ in 0..1000 {
                        counter.add(3);
                        counter.sub(thread);
                    }
                });
            }
        });
        assert_eq!(counter.sum(), -5 + 4 * 3000 - (1 + 2 + 3) * 1000);
    }

    #[test]
    fn it_wraps() {
        let counter = ShardedCounter::new(i64::MAX);
        counter.add(1);
        assert_eq!(counter.sum(), i64::MIN);
        counter.sub(i64::MIN);
        assert_eq!(counter.sum(), 0);
    }
}
