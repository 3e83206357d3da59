//! The kernel's list of free NIDs (`free_nid_list` and `free_nid_root` in `fs/f2fs/node.c`).
//!
//! ```text
//!              insert                take                 done (bound)
//!   not here ---------> listed --------------> taken -------------------> not here
//!      ^                  ^  |  remove           |
//!      +------------------|--+      give back    |
//!                         +----------------------+
//! ```
//!
//! What is read and written here moves with the lock, and a machine that is played is told of it
//! ([`f2fs_sync::memory`]).
//!
//! A NID is here once: listed or taken. One that is taken cannot be listed by a scan, although its entry still says
//! NULL.

use std::collections::VecDeque;
use std::collections::hash_map::Entry;

use f2fs_format::Nid;
use f2fs_sync::memory;
use rustc_hash::FxHashMap;

/// The states of a NID in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// In the list (`FREE_NID`).
    Listed,
    /// Handed out, not bound yet (`PREALLOC_NID`).
    Taken,
}

/// The list.
#[derive(Debug, Default)]
pub(crate) struct FreeList {
    /// In the order in which they are handed out; NIDs that are not [`State::Listed`] any more are passed over.
    queue: VecDeque<Nid>,
    states: FxHashMap<Nid, State>,
    listed: usize,
}

impl FreeList {
    /// NIDs that can be taken.
    pub(crate) fn len(&self) -> usize {
        self.listed
    }

    /// The state of a NID.
    pub(crate) fn state(&self, nid: Nid) -> Option<State> {
        self.states.get(&nid).inspect(|state| memory::read(*state)).copied()
    }

    /// The NID that is handed out next.
    pub(crate) fn first(&self) -> Option<Nid> {
        self.queue.iter().copied().find(|nid| self.state(*nid) == Some(State::Listed))
    }

    /// Appends a NID; it must not be listed.
    pub(crate) fn insert(&mut self, nid: Nid) {
        memory::written(self.states.entry(nid).insert_entry(State::Listed).get());
        self.queue.push_back(nid);
        if let Some(last) = self.queue.back() {
            memory::written(last);
        }
        self.listed += 1;
    }

    /// Hands out the first NID.
    pub(crate) fn take(&mut self) -> Option<Nid> {
        while let Some(nid) = self.queue.pop_front() {
            if let Some(state) = self.states.get_mut(&nid).filter(|state| **state == State::Listed) {
                memory::written(state);
                *state = State::Taken;
                self.listed -= 1;
                return Some(nid);
            }
        }
        None
    }

    /// Hands out this NID, listed or not; it must not be taken.
    pub(crate) fn take_this(&mut self, nid: Nid) {
        if self.states.insert(nid, State::Taken) == Some(State::Listed) {
            self.listed -= 1;
        }
    }

    /// A taken NID is bound, or is to be listed again. Tells whether it was taken.
    pub(crate) fn done(&mut self, nid: Nid) -> bool {
        let Entry::Occupied(state) = self.states.entry(nid) else { return false };
        memory::written(state.get());
        let taken = *state.get() == State::Taken;
        if taken {
            state.remove();
        }
        taken
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn first_in_first_out_and_each_once() {
        let mut list = FreeList::default();
        for nid in 10..15 {
            list.insert(Nid(nid));
        }
        list.take_this(Nid(10));
        assert_eq!((list.len(), list.first()), (4, Some(Nid(11))));
        assert_eq!(list.take(), Some(Nid(11)));
        assert!(list.done(Nid(10)) && !list.done(Nid(10)) && !list.done(Nid(12)));
        list.insert(Nid(10));
        let rest: Vec<_> = std::iter::from_fn(|| list.take()).map(|nid| nid.0).collect();
        assert_eq!(rest, [12, 13, 14, 10]);
        assert_eq!((list.len(), list.first(), list.state(Nid(12))), (0, None, Some(State::Taken)));
    }
}
