//! The way of Btrfs in Linux 5.8: one tree of extent states under one lock, on which readers exclude each other.

use super::RangeLock;

/// A tree of extent states; `STATES` of them are there, one for each of the first blocks, before anything is locked.
#[derive(Debug)]
pub struct StateTree<const STATES: u64>(f2fs_extent::StateTree);

impl<const STATES: u64> RangeLock for StateTree<STATES> {
    fn new(_blocks: u64) -> Self {
        StateTree(f2fs_extent::StateTree::with_states(STATES))
    }

    fn shared<R>(&self, first: u64, last: u64, hold: impl FnOnce() -> R) -> R {
        self.exclusive(first, last, hold)
    }

    fn exclusive<R>(&self, first: u64, last: u64, hold: impl FnOnce() -> R) -> R {
        let _guard = self.0.lock(first..=last);
        hold()
    }
}
