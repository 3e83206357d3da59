//! Btrfs' extent states in the shape of Linux 5.8, to measure against: one red-black tree of states under one lock.
//! Readers exclude each other. The feature `baselines` has it.
//!
//! A range is locked by setting a bit on the states that make it up, which are split at its ends; it is unlocked by
//! clearing the bit and merging them again. States that have nothing but the lock are there while the range is locked.
//! States with other bits stay: Btrfs marks each page that it has read as up to date
//! ([`StateGuard::mark`], `endio_readpage_release_extent` in `fs/btrfs/extent_io.c`), so the tree grows with the part of
//! the file that is in memory.
//!
//! | File | What it is |
//! |---|---|
//! | `states.rs` | what is done with states |
//! | `tree.rs` | the tree |
//!
//! Linux has a spin lock. A thread that spins may keep the processor from the one that has the lock, so here it is a
//! mutex, but where a machine with many processors is played ([`f2fs_sync::spinning`]). How much was waited is not
//! counted under the lock: Linux has no such counts.
//!
//! # Locking rules
//!
//! The mutex protects the tree; it is held for a search and a change of the tree, and while it is waited for nothing
//! else is, but when the count of a processor's waits is changed. A request whose range is locked in part sleeps on the
//! condition variable of the state in its way, and then begins again: there is no order among those who wait.

use std::ops::RangeBounds;
use std::time::Instant;

use f2fs_sync::{CachePadded, Condvar, Mutex, MutexGuard, PerCore, spinning};

use self::states::{LOCKED, States};
use crate::range::BlockRange;
use crate::wait::WaitStats;

mod states;
mod tree;

/// Condition variables, by the first block of the state that is waited for.
const QUEUES: usize = 64;

/// The states of a file: ranges of blocks with bits, one of which is the lock.
#[derive(Debug)]
pub struct StateTree {
    states: CachePadded<Mutex<States>>,
    unlocked: [Condvar; QUEUES],
    waits: PerCore<Mutex<WaitStats>>,
}

/// A locked range of a [`StateTree`]. Dropping it unlocks the range.
#[derive(Debug)]
#[must_use]
pub struct StateGuard<'a> {
    tree: &'a StateTree,
    range: Option<BlockRange>,
}

impl StateTree {
    /// A tree without a state.
    #[must_use]
    pub fn new() -> StateTree {
        StateTree::with_states(0)
    }

    /// A tree in which each of the first `count` blocks has a state of its own, as in a file with many small extents.
    #[must_use]
    pub fn with_states(count: u64) -> StateTree {
        StateTree {
            states: CachePadded::new(Mutex::new(States::new(count))),
            unlocked: std::array::from_fn(|_| Condvar::new()),
            waits: PerCore::default(),
        }
    }

    /// Waits until the blocks are the caller's alone. An empty range locks nothing.
    pub fn lock(&self, range: impl RangeBounds<u64>) -> StateGuard<'_> {
        let range = BlockRange::of(range);
        if let Some(range) = range {
            let (mut states, mut since) = self.states();
            while let Err(start) = states.lock(range) {
                since.get_or_insert_with(Instant::now);
                spinning(|| self.queue(start).wait(&mut states));
            }
            drop(states);
            self.count(since);
        }
        StateGuard { tree: self, range }
    }

    /// The blocks, unless one of them is locked.
    #[must_use]
    pub fn try_lock(&self, range: impl RangeBounds<u64>) -> Option<StateGuard<'_>> {
        let range = BlockRange::of(range);
        if let Some(range) = range {
            let (mut states, since) = self.states();
            let locked = states.lock(range);
            drop(states);
            self.count(since);
            locked.ok()?;
        }
        Some(StateGuard { tree: self, range })
    }

    /// Whether a state of the range has one of these bits, locked or not (`test_range_bit`).
    #[must_use]
    pub fn has(&self, range: impl RangeBounds<u64>, bits: u32) -> bool {
        let Some(range) = BlockRange::of(range) else { return false };
        let (states, since) = self.states();
        let has = states.has(range, bits & !LOCKED);
        drop(states);
        self.count(since);
        has
    }

    /// How much waiting there has been, for ranges and for the mutex.
    #[must_use]
    pub fn wait_stats(&self) -> WaitStats {
        let mut all = WaitStats::default();
        for of_one in self.waits.iter() {
            let of_one = *of_one.lock();
            all.waits += of_one.waits;
            all.waited += of_one.waited;
            all.longest = all.longest.max(of_one.longest);
        }
        all
    }

    /// The mutex; if it was not free, since when it was waited for.
    fn states(&self) -> (MutexGuard<'_, States>, Option<Instant>) {
        match self.states.try_lock() {
            Some(states) => (states, None),
            None => {
                let since = Instant::now();
                (spinning(|| self.states.lock()), Some(since))
            }
        }
    }

    fn count(&self, since: Option<Instant>) {
        if let Some(since) = since {
            let waited = since.elapsed();
            let mut waits = self.waits.slot().lock();
            waits.waits += 1;
            waits.waited += waited;
            waits.longest = waits.longest.max(waited);
        }
    }

    fn queue(&self, first: u64) -> &Condvar {
        &self.unlocked[first as usize % QUEUES]
    }
}

impl StateGuard<'_> {
    /// Sets bits on the range; they stay when it is unlocked (`set_extent_bit`). All but the uppermost bit are free to
    /// use.
    pub fn mark(&self, bits: u32) {
        if let Some(range) = self.range {
            let (mut states, since) = self.tree.states();
            states.set(range, bits & !LOCKED);
            drop(states);
            self.tree.count(since);
        }
    }
}

impl Default for StateTree {
    fn default() -> StateTree {
        StateTree::new()
    }
}

impl Drop for StateGuard<'_> {
    fn drop(&mut self) {
        let Some(range) = self.range else { return };
        let (mut states, since) = self.tree.states();
        if states.unlock_alone(range) {
            drop(states);
            self.tree.queue(range.first()).notify_all();
        } else {
            states.unlock(range, |start| {
                self.tree.queue(start).notify_all();
            });
            drop(states);
        }
        self.tree.count(since);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    fn states(tree: &StateTree) -> Vec<(u64, u64, u32)> {
        tree.states.lock().all()
    }

    /// A tree of these states.
    fn marked(states: &[(u64, u64, u32)]) -> StateTree {
        let tree = StateTree::new();
        for (first, last, bits) in states {
            tree.lock(*first..=*last).mark(*bits);
        }
        tree
    }

    #[test]
    fn states_are_split_locked_and_merged_again() {
        let tree = marked(&[(10, 19, 1), (20, 29, 2)]);
        let guard = tree.lock(15..25);
        let locked = [(10, 14, 1), (15, 19, 1 | LOCKED), (20, 24, 2 | LOCKED), (25, 29, 2)];
        assert_eq!(states(&tree), locked);
        assert!(tree.try_lock(24..100).is_none() && tree.try_lock(0..=15).is_none());
        let gap = tree.try_lock(26..40).unwrap();
        let more = [(25, 25, 2), (26, 29, 2 | LOCKED), (30, 39, LOCKED)];
        assert_eq!(states(&tree), [&locked[..3], &more].concat());
        drop((guard, gap));
        assert_eq!(states(&tree), [(10, 19, 1), (20, 29, 2)]);
        assert_eq!(tree.wait_stats(), WaitStats::default());
    }

    #[test]
    fn marks_stay_and_neighbours_with_the_same_are_one_state() {
        let tree = marked(&[(1, 1, 4), (3, 3, 4), (2, 2, 4)]);
        assert_eq!(states(&tree), [(1, 3, 4)]);
        assert!(tree.has(3..10, 4) && !tree.has(4..10, 4) && !tree.has(0..10, 3) && !tree.has(5..5, 4));
        let part = tree.lock(2..=5);
        part.mark(LOCKED | 8);
        assert_eq!(states(&tree), [(1, 1, 4), (2, 3, 12 | LOCKED), (4, 5, 8 | LOCKED)]);
        assert!(tree.has(5..=5, 8) && !tree.has(0..10, LOCKED), "the lock is no mark");
        drop(part);
        assert_eq!(states(&tree), [(1, 1, 4), (2, 3, 12), (4, 5, 8)]);
    }

    #[test]
    fn a_range_is_a_state_while_it_is_locked() {
        let tree = StateTree::new();
        let (all, nothing) = (tree.lock(..), tree.lock(7..7));
        assert_eq!(states(&tree), [(0, u64::MAX, LOCKED)]);
        nothing.mark(1);
        assert!(tree.try_lock(u64::MAX..=u64::MAX).is_none());
        drop((all, nothing));
        assert_eq!(states(&tree), []);
        assert_eq!(states(&StateTree::with_states(3)), [(0, 0, 1), (1, 1, 2), (2, 2, 1)]);
    }
}
