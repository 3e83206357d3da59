//! The way of Btrfs in Linux 5.8: one tree of extent states under one lock. To lock a range is to set a bit on the
//! states that make it up, splitting them at its ends; to unlock it is to clear the bit and to merge them again. Readers
//! exclude each other.

use std::collections::BTreeMap;

use f2fs_sync::{Condvar, Mutex};

use super::RangeLock;

/// The lock bit.
const LOCKED: u32 = 1 << 31;
/// Wait queues, by the first block of the state that is waited for.
const QUEUES: usize = 64;

/// A tree of extent states; `STATES` of them are there, one for each of the first blocks, before anything is locked.
#[derive(Debug)]
pub struct StateTree<const STATES: u64> {
    /// By first block: the last block and the bits.
    states: Mutex<BTreeMap<u64, (u64, u32)>>,
    unlocked: [Condvar; QUEUES],
}

impl<const STATES: u64> StateTree<STATES> {
    fn queue(&self, first: u64) -> &Condvar {
        &self.unlocked[first as usize % QUEUES]
    }

    fn lock(&self, first: u64, last: u64) {
        let mut states = self.states.lock();
        loop {
            split(&mut states, first);
            if let Some(next) = last.checked_add(1) {
                split(&mut states, next);
            }
            // One that begins before the range and reaches into it is locked: it would have been split.
            let before = states.range(..first).next_back().filter(|(_, (end, _))| *end >= first);
            let locked = before.into_iter().chain(states.range(first..=last)).find(|(_, (_, bits))| bits & LOCKED != 0);
            if let Some(start) = locked.map(|(start, _)| *start) {
                self.queue(start).wait(&mut states);
                continue;
            }
            break;
        }
        // Every state in the range gets the bit, and every gap a state.
        let mut next = Some(first);
        while let Some(start) = next.filter(|&start| start <= last) {
            let here = states.range(start..=last).next().map(|(&start, &(end, bits))| (start, end, bits));
            let end = match here {
                Some((at, end, bits)) if at == start => {
                    states.insert(start, (end, bits | LOCKED));
                    end
                }
                Some((at, ..)) => {
                    states.insert(start, (at - 1, LOCKED));
                    at - 1
                }
                None => {
                    states.insert(start, (last, LOCKED));
                    last
                }
            };
            next = end.checked_add(1);
        }
    }

    fn unlock(&self, first: u64, last: u64) {
        let mut states = self.states.lock();
        let mut next = Some(first);
        while let Some((start, end, bits)) = next
            .filter(|&start| start <= last)
            .and_then(|from| states.range(from..=last).next().map(|(&start, &(end, bits))| (start, end, bits)))
        {
            if bits == LOCKED {
                states.remove(&start);
            } else {
                states.insert(start, (end, bits & !LOCKED));
                merge(&mut states, start);
            }
            self.queue(start).notify_all();
            next = end.checked_add(1);
        }
    }
}

/// Makes a state that contains `at` and is not locked begin there.
fn split(states: &mut BTreeMap<u64, (u64, u32)>, at: u64) {
    let Some((&start, &(end, bits))) = states.range(..at).next_back() else { return };
    if end >= at && bits & LOCKED == 0 {
        states.insert(start, (at - 1, bits));
        states.insert(at, (end, bits));
    }
}

/// Joins the state with neighbours of the same bits.
fn merge(states: &mut BTreeMap<u64, (u64, u32)>, start: u64) {
    let Some(&(mut end, bits)) = states.get(&start) else { return };
    if let Some((&next, &(next_end, next_bits))) = end.checked_add(1).and_then(|next| states.get_key_value(&next))
        && next_bits == bits
    {
        states.remove(&next);
        states.insert(start, (next_end, bits));
        end = next_end;
    }
    if let Some((&before, &(before_end, before_bits))) = states.range(..start).next_back()
        && before_end.checked_add(1) == Some(start)
        && before_bits == bits
    {
        states.remove(&start);
        states.insert(before, (end, bits));
    }
}

impl<const STATES: u64> RangeLock for StateTree<STATES> {
    fn new(_blocks: u64) -> Self {
        // Neighbours differ, so that they stay states of their own.
        let states = (0..STATES).map(|block| (block, (block, 1 + (block % 2) as u32))).collect();
        StateTree { states: Mutex::new(states), unlocked: std::array::from_fn(|_| Condvar::new()) }
    }

    fn shared<R>(&self, first: u64, last: u64, hold: impl FnOnce() -> R) -> R {
        self.exclusive(first, last, hold)
    }

    fn exclusive<R>(&self, first: u64, last: u64, hold: impl FnOnce() -> R) -> R {
        self.lock(first, last);
        let result = hold();
        self.unlock(first, last);
        result
    }
}
