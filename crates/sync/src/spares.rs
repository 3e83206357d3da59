//! Things that are kept for the next use, in place of being made and dropped.
//!
//! ```text
//!   take ◄── list of this processor ◄── a batch at a time ── list of all
//!   give ──► list of this processor ──► a batch at a time ─► list of all ◄── give_all
//! ```
//!
//! # Locking
//!
//! A list for each processor, and one that all share, a lock each. The shared one is taken under one of a processor.
//! Nothing is dropped with a lock held. Two hints say without a lock whether anything was given, and whether the shared list
//! has any: threads that find nothing write no common line.

use std::fmt;

use crate::atomic::{AtomicBool, Ordering::Relaxed};
use crate::{CachePadded, Mutex, PerCore};

/// Things that wait to be used again. As many as were given, unless they are taken or [dropped](Self::drop_all).
///
/// ```
/// use f2fs_sync::Spares;
///
/// let spares = Spares::new(32);
/// spares.give(vec![0_u8; 4096]);
/// assert_eq!(spares.take().map(|buffer| buffer.len()), Some(4096));
/// assert_eq!(spares.take(), None);
/// ```
pub struct Spares<T> {
    here: PerCore<Mutex<Vec<T>>>,
    shared: Mutex<Vec<T>>,
    hints: CachePadded<Hints>,
    batch: usize,
}

#[derive(Default)]
struct Hints {
    /// Something was given since all were dropped.
    given: AtomicBool,
    /// The shared list has some. Written with its lock held, where it changes.
    shared: AtomicBool,
}

fn hint(hint: &AtomicBool, now: bool) {
    if hint.load(Relaxed) != now {
        hint.store(now, Relaxed);
    }
}

impl<T> fmt::Debug for Spares<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spares").field("batch", &self.batch).finish_non_exhaustive()
    }
}

impl<T> Spares<T> {
    /// None yet. So many go from list to list at a time: a processor keeps twice as many at most.
    #[must_use]
    pub fn new(batch: usize) -> Spares<T> {
        Spares {
            here: PerCore::default(),
            shared: Mutex::default(),
            hints: CachePadded::default(),
            batch: batch.max(1),
        }
    }

    /// One of them, if this processor has one, or all share one.
    #[must_use]
    pub fn take(&self) -> Option<T> {
        if !self.hints.given.load(Relaxed) {
            return None;
        }
        let mut here = self.here.slot().lock();
        if here.is_empty() && self.hints.shared.load(Relaxed) {
            let mut shared = self.shared.lock();
            let left = shared.len().saturating_sub(self.batch);
            here.extend(shared.drain(left..));
            hint(&self.hints.shared, !shared.is_empty());
        }
        here.pop()
    }

    /// Keeps one.
    pub fn give(&self, spare: T) {
        let mut here = self.here.slot().lock();
        here.push(spare);
        hint(&self.hints.given, true);
        if here.len() > 2 * self.batch {
            let left = here.len() - self.batch;
            self.give_all(here.drain(left..));
        }
    }

    /// Keeps many.
    pub fn give_all(&self, spares: impl IntoIterator<Item = T>) {
        let mut shared = self.shared.lock();
        shared.extend(spares);
        hint(&self.hints.shared, !shared.is_empty());
        hint(&self.hints.given, true);
    }

    /// Drops all but so many of those that all share, which nobody has taken for the longest time.
    pub fn drop_beyond(&self, most: usize) {
        let dropped = {
            let mut shared = self.shared.lock();
            let beyond = shared.len().saturating_sub(most);
            shared.drain(..beyond).collect::<Vec<T>>()
        };
        drop(dropped);
    }

    /// Drops all of them.
    pub fn drop_all(&self) {
        hint(&self.hints.given, false);
        for list in self.here.iter().chain([&self.shared]) {
            let dropped = std::mem::take(&mut *list.lock());
            drop(dropped);
        }
    }

    /// How many wait, about.
    #[must_use]
    pub fn len(&self) -> usize {
        self.here.iter().chain([&self.shared]).map(|list| list.lock().len()).sum()
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn what_was_given_is_taken_again_and_once() {
        let spares = Spares::new(4);
        (0..100).for_each(|number| spares.give(number));
        spares.give_all(100..200);
        assert_eq!(spares.len(), 200);
        // Those of another processor stay where they are if the thread moved: eight at most, and all others are found.
        let mut taken: Vec<u32> = std::iter::from_fn(|| spares.take()).collect();
        assert!(taken.len() + 8 * spares.here.slots() >= 200, "{}", taken.len());
        taken.sort_unstable();
        taken.dedup();
        assert_eq!(taken.len() + spares.len(), 200);
    }

    #[test]
    fn a_processor_leaves_some_to_the_others() {
        let spares = Spares::new(4);
        spares.give_all(0..100);
        assert!(spares.take().is_some());
        assert_eq!(spares.shared.lock().len(), 96);
    }

    #[test]
    fn what_nobody_took_for_long_is_dropped_first() {
        let spares = Spares::new(1);
        spares.give_all(0..10);
        spares.drop_beyond(20);
        spares.drop_beyond(3);
        assert_eq!(std::iter::from_fn(|| spares.take()).collect::<Vec<u32>>(), [9, 8, 7]);
        spares.give(1);
        spares.give_all([2, 3]);
        spares.drop_all();
        assert!(spares.is_empty());
    }
}
