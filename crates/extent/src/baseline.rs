//! Btrfs' extent states in the shape of Linux 5.8, to measure against: one tree of states under one mutex. Readers
//! exclude each other. The feature `baselines` has it.
//!
//! A range is locked by setting a bit on the states that make it up, which are split at its ends; it is unlocked by
//! clearing the bit and merging them again. States that have nothing but the lock are there while the range is locked.
//!
//! # Locking rules
//!
//! The mutex protects tree and counts; it is held for a search and a change of the tree, and while it is waited for
//! nothing else is. A request whose range is locked in part sleeps on the condition variable of the state in its way,
//! and then begins again: there is no order among those who wait.

use std::collections::BTreeMap;
use std::ops::RangeBounds;
use std::time::Instant;

use f2fs_sync::{Condvar, Mutex, MutexGuard};

use crate::range::BlockRange;
use crate::wait::WaitStats;

/// The bit of a locked state.
const LOCKED: u32 = 1 << 31;
/// Condition variables, by the first block of the state that is waited for.
const QUEUES: usize = 64;

/// The states of a file: ranges of blocks with bits, one of which is the lock.
#[derive(Debug)]
pub struct StateTree {
    states: Mutex<States>,
    unlocked: [Condvar; QUEUES],
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
        // Neighbours differ, so that they are not merged.
        let tree = (0..count).map(|block| (block, (block, 1 + (block % 2) as u32))).collect();
        let states = Mutex::new(States { tree, waits: WaitStats::default() });
        StateTree { states, unlocked: std::array::from_fn(|_| Condvar::new()) }
    }

    /// Waits until the blocks are the caller's alone. An empty range locks nothing.
    pub fn lock(&self, range: impl RangeBounds<u64>) -> StateGuard<'_> {
        let range = BlockRange::of(range);
        if let Some(range) = range {
            let (mut states, mut since) = self.states();
            while let Err(start) = states.lock(range) {
                since.get_or_insert_with(Instant::now);
                self.queue(start).wait(&mut states);
            }
            states.count(since);
        }
        StateGuard { tree: self, range }
    }

    /// The blocks, unless one of them is locked.
    #[must_use]
    pub fn try_lock(&self, range: impl RangeBounds<u64>) -> Option<StateGuard<'_>> {
        let range = BlockRange::of(range);
        if let Some(range) = range {
            let (mut states, since) = self.states();
            states.count(since);
            states.lock(range).ok()?;
        }
        Some(StateGuard { tree: self, range })
    }

    /// How much waiting there has been, for ranges and for the mutex.
    #[must_use]
    pub fn wait_stats(&self) -> WaitStats {
        self.states.lock().waits
    }

    /// The mutex; if it was not free, since when it was waited for.
    fn states(&self) -> (MutexGuard<'_, States>, Option<Instant>) {
        match self.states.try_lock() {
            Some(states) => (states, None),
            None => {
                let since = Instant::now();
                (self.states.lock(), Some(since))
            }
        }
    }

    fn queue(&self, first: u64) -> &Condvar {
        &self.unlocked[first as usize % QUEUES]
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
        states.count(since);
        if states.unlock_alone(range) {
            drop(states);
            self.tree.queue(range.first()).notify_all();
        } else {
            states.unlock(range, |start| {
                self.tree.queue(start).notify_all();
            });
        }
    }
}

/// The state under the mutex.
#[derive(Debug)]
struct States {
    /// By first block: the last block and the bits. States do not overlap.
    tree: BTreeMap<u64, (u64, u32)>,
    waits: WaitStats,
}

impl States {
    fn count(&mut self, since: Option<Instant>) {
        if let Some(since) = since {
            let waited = since.elapsed();
            self.waits.waits += 1;
            self.waits.waited += waited;
            self.waits.longest = self.waits.longest.max(waited);
        }
    }

    /// Locks a range; the error is the first block of a locked state in its way. Usually there is no state at all: one
    /// search.
    fn lock(&mut self, range: BlockRange) -> Result<(), u64> {
        let below = self.tree.range(..=range.last()).rev();
        let mut overlapping = below.take_while(|(_, (end, _))| *end >= range.first()).peekable();
        if overlapping.peek().is_none() {
            self.tree.insert(range.first(), (range.last(), LOCKED));
            return Ok(());
        }
        match overlapping.filter(|(_, (_, bits))| bits & LOCKED != 0).last() {
            Some((start, _)) => Err(*start),
            None => {
                self.lock_states(range);
                Ok(())
            }
        }
    }

    /// Sets the lock on every state in the range, and makes a state of every gap. None of them is locked.
    fn lock_states(&mut self, range: BlockRange) {
        self.split(range.first());
        if let Some(behind) = range.last().checked_add(1) {
            self.split(behind);
        }
        let mut next = Some(range.first());
        while let Some(start) = next.filter(|start| *start <= range.last()) {
            let here = self.tree.range(start..=range.last()).next().map(|(at, state)| (*at, *state));
            let (end, bits) = match here {
                Some((at, state)) if at == start => state,
                Some((at, _)) => (at - 1, 0),
                None => (range.last(), 0),
            };
            self.tree.insert(start, (end, bits | LOCKED));
            next = end.checked_add(1);
        }
    }

    /// Unlocks a range that is one state with nothing but the lock; tells whether it was.
    fn unlock_alone(&mut self, range: BlockRange) -> bool {
        let alone = self.tree.get(&range.first()) == Some(&(range.last(), LOCKED));
        if alone {
            self.tree.remove(&range.first());
        }
        alone
    }

    /// Clears the lock on every state in the range; `unlocked` is called with the first block of each.
    fn unlock(&mut self, range: BlockRange, mut unlocked: impl FnMut(u64)) {
        let mut next = Some(range.first());
        while let Some((start, (end, bits))) = next
            .filter(|next| *next <= range.last())
            .and_then(|next| self.tree.range(next..=range.last()).next().map(|(start, state)| (*start, *state)))
        {
            if bits == LOCKED {
                self.tree.remove(&start);
            } else {
                self.tree.insert(start, (end, bits & !LOCKED));
                self.merge(start);
            }
            unlocked(start);
            next = end.checked_add(1);
        }
    }

    /// Makes a state that contains `at` and is not locked begin there.
    fn split(&mut self, at: u64) {
        let Some((&start, &(end, bits))) = self.tree.range(..at).next_back() else { return };
        if end >= at && bits & LOCKED == 0 {
            self.tree.insert(start, (at - 1, bits));
            self.tree.insert(at, (end, bits));
        }
    }

    /// Joins a state with neighbours of the same bits.
    fn merge(&mut self, start: u64) {
        let Some(&(mut end, bits)) = self.tree.get(&start) else { return };
        if let Some((&next, &(next_end, next_bits))) =
            end.checked_add(1).and_then(|next| self.tree.get_key_value(&next))
            && next_bits == bits
        {
            self.tree.remove(&next);
            self.tree.insert(start, (next_end, bits));
            end = next_end;
        }
        if let Some((&before, &(before_end, before_bits))) = self.tree.range(..start).next_back()
            && before_end.checked_add(1) == Some(start)
            && before_bits == bits
        {
            self.tree.remove(&start);
            self.tree.insert(before, (end, bits));
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    fn states(tree: &StateTree) -> Vec<(u64, u64, u32)> {
        tree.states.lock().tree.iter().map(|(start, (end, bits))| (*start, *end, *bits)).collect()
    }

    #[test]
    fn states_are_split_locked_and_merged_again() {
        let tree = StateTree::new();
        *tree.states.lock() =
            States { tree: BTreeMap::from([(10, (19, 1)), (20, (29, 2))]), waits: WaitStats::default() };
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
    fn a_range_is_a_state_while_it_is_locked() {
        let tree = StateTree::new();
        let (all, nothing) = (tree.lock(..), tree.lock(7..7));
        assert_eq!(states(&tree), [(0, u64::MAX, LOCKED)]);
        assert!(tree.try_lock(u64::MAX..=u64::MAX).is_none());
        drop((all, nothing));
        assert_eq!(states(&tree), []);
        assert_eq!(StateTree::with_states(3).states.lock().tree.len(), 3);
    }
}
