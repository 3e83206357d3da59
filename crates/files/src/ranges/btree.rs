//! Btrfs' extent states in the shape of Linux 5.8, as a peer: one tree of locked ranges under one mutex. Readers exclude each
//! other.
//!
//! # Locking
//!
//! The mutex protects the tree and the counts; it is held for a search and a change of the tree, and while it is waited for
//! nothing else is. A request whose range is locked in part sleeps on the condition variable of the range in its way, and
//! then begins again: there is no order among those who wait.

use std::collections::BTreeMap;
use std::time::Instant;

use f2fs_sync::{Condvar, Mutex, MutexGuard};

use super::LockWaits;

/// Condition variables, by the first block of the range that is waited for.
const QUEUES: usize = 16;

/// The locked ranges of a file.
#[derive(Debug)]
pub(crate) struct StateTree {
    states: Mutex<States>,
    unlocked: [Condvar; QUEUES],
}

#[derive(Debug, Default)]
struct States {
    /// First block and last block of each locked range.
    locked: BTreeMap<u64, u64>,
    waits: LockWaits,
}

impl States {
    /// A locked range that overlaps this one.
    fn in_the_way(&self, first: u64, last: u64) -> Option<u64> {
        let (start, end) = self.locked.range(..=last).next_back()?;
        (*end >= first).then_some(*start)
    }

    fn count(&mut self, since: Option<Instant>) {
        if let Some(since) = since {
            let waited = since.elapsed();
            self.waits.waits += 1;
            self.waits.waited += waited;
            self.waits.longest = self.waits.longest.max(waited);
        }
    }
}

impl Default for StateTree {
    fn default() -> StateTree {
        StateTree { states: Mutex::new(States::default()), unlocked: core::array::from_fn(|_| Condvar::new()) }
    }
}

impl StateTree {
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

    /// Waits until the blocks are the caller's alone.
    pub(super) fn lock(&self, first: u64, last: u64) -> TreeGuard<'_> {
        let (mut states, mut since) = self.states();
        while let Some(start) = states.in_the_way(first, last) {
            since.get_or_insert_with(Instant::now);
            self.queue(start).wait(&mut states);
        }
        states.count(since);
        states.locked.insert(first, last);
        TreeGuard { tree: self, first }
    }

    /// The blocks, unless somebody has one of them.
    pub(super) fn try_lock(&self, first: u64, last: u64) -> Option<TreeGuard<'_>> {
        let (mut states, since) = self.states();
        states.count(since);
        if states.in_the_way(first, last).is_some() {
            return None;
        }
        states.locked.insert(first, last);
        Some(TreeGuard { tree: self, first })
    }

    pub(super) fn waits(&self) -> LockWaits {
        self.states.lock().waits
    }
}

/// A locked range of the tree.
#[derive(Debug)]
pub(crate) struct TreeGuard<'a> {
    tree: &'a StateTree,
    first: u64,
}

impl Drop for TreeGuard<'_> {
    fn drop(&mut self) {
        let (mut states, since) = self.tree.states();
        states.count(since);
        states.locked.remove(&self.first);
        drop(states);
        self.tree.queue(self.first).notify_all();
    }
}
