//! The states under the lock: locked, unlocked, split and merged.

use super::tree::{State, Tree};
use crate::range::BlockRange;

/// The bit of a locked state.
pub(super) const LOCKED: u32 = 1 << 31;

/// The states of a file.
#[derive(Debug)]
pub(super) struct States(Tree);

impl States {
    /// A state for each of the first `count` blocks. Neighbours differ, so that they are not merged.
    pub(super) fn new(count: u64) -> States {
        let mut tree = Tree::new();
        for block in 0..count {
            tree.insert(State { first: block, last: block, bits: 1 + (block % 2) as u32 });
        }
        States(tree)
    }

    /// Locks a range; the error is the first block of a locked state in its way. Usually there is no state at all.
    pub(super) fn lock(&mut self, range: BlockRange) -> Result<(), u64> {
        let first = self.0.within(range);
        if first.is_none() {
            self.0.insert(State { first: range.first(), last: range.last(), bits: LOCKED });
            return Ok(());
        }
        let mut next = first;
        while let Some((id, state)) = self.overlapping(next, range) {
            if state.bits & LOCKED != 0 {
                return Err(state.first);
            }
            next = self.0.beside(id, 1);
        }
        self.set(range, LOCKED);
        Ok(())
    }

    /// Whether a state of the range has one of these bits (`test_range_bit`).
    pub(super) fn has(&self, range: BlockRange, bits: u32) -> bool {
        let mut next = self.0.within(range);
        while let Some((id, state)) = self.overlapping(next, range) {
            if state.bits & bits != 0 {
                return true;
            }
            next = self.0.beside(id, 1);
        }
        false
    }

    /// Sets bits on every state in the range, and makes a state of every gap (`set_extent_bit`). Either none is locked,
    /// or the range was locked as it is.
    pub(super) fn set(&mut self, range: BlockRange, bits: u32) {
        self.split(range.first());
        if let Some(behind) = range.last().checked_add(1) {
            self.split(behind);
        }
        let mut next = Some(range.first());
        while let Some(rest) = next.and_then(|first| BlockRange::new(first, range.last())) {
            let here = self.0.within(rest).map(|id| (id, self.0.state(id)));
            let end = match here {
                Some((id, state)) if state.first == rest.first() => {
                    self.0.change(id, State { bits: state.bits | bits, ..state });
                    state.last
                }
                other => {
                    let last = other.map_or(rest.last(), |(_, state)| state.first - 1);
                    self.0.insert(State { first: rest.first(), last, bits });
                    last
                }
            };
            next = end.checked_add(1);
        }
    }

    /// Unlocks a range that is one state with nothing but the lock; tells whether it was.
    pub(super) fn unlock_alone(&mut self, range: BlockRange) -> bool {
        let alone = State { first: range.first(), last: range.last(), bits: LOCKED };
        let found = self.0.within(range).filter(|id| self.0.state(*id) == alone);
        if let Some(id) = found {
            self.0.remove(id);
        }
        found.is_some()
    }

    /// Clears the lock on every state in the range; `unlocked` is called with the first block of each.
    pub(super) fn unlock(&mut self, range: BlockRange, mut unlocked: impl FnMut(u64)) {
        let mut next = Some(range);
        while let Some(id) = next.and_then(|rest| self.0.within(rest)) {
            let state = self.0.state(id);
            if state.bits == LOCKED {
                self.0.remove(id);
            } else {
                self.0.change(id, State { bits: state.bits & !LOCKED, ..state });
                self.merge(id);
            }
            unlocked(state.first);
            next = state.last.checked_add(1).and_then(|first| BlockRange::new(first, range.last()));
        }
    }

    fn overlapping(&self, id: Option<u32>, range: BlockRange) -> Option<(u32, State)> {
        let id = id?;
        let state = self.0.state(id);
        (state.first <= range.last()).then_some((id, state))
    }

    /// Makes a state that contains `at` and is not locked begin there.
    fn split(&mut self, at: u64) {
        let Some(id) = self.0.from(at) else { return };
        let state = self.0.state(id);
        if state.first < at && state.bits & LOCKED == 0 {
            self.0.change(id, State { last: at - 1, ..state });
            self.0.insert(State { first: at, ..state });
        }
    }

    /// Joins a state with neighbours of the same bits.
    fn merge(&mut self, id: u32) {
        let mut state = self.0.state(id);
        if let Some((next, above)) = self.0.beside(id, 1).map(|next| (next, self.0.state(next)))
            && state.last.checked_add(1) == Some(above.first)
            && above.bits == state.bits
        {
            self.0.remove(next);
            state.last = above.last;
            self.0.change(id, state);
        }
        if let Some((before, below)) = self.0.beside(id, 0).map(|before| (before, self.0.state(before)))
            && below.last.checked_add(1) == Some(state.first)
            && below.bits == state.bits
        {
            self.0.remove(before);
            self.0.change(id, State { first: below.first, ..state });
        }
    }

    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(super) fn all(&self) -> Vec<(u64, u64, u32)> {
        let mut next = self.0.from(0);
        let mut all = Vec::new();
        while let Some(id) = next {
            let State { first, last, bits } = self.0.state(id);
            all.push((first, last, bits));
            next = self.0.beside(id, 1);
        }
        all
    }
}
