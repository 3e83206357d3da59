//! The cores that wait for a lock or condition variable.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

/// One that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waiter {
    pub(super) core: usize,
    /// Wants the lock for itself. Waiters at a condition variable do.
    pub(super) exclusive: bool,
    /// Tells this wait from the core's others.
    pub(super) ticket: u64,
}

/// By the address of the lock or condition variable.
#[derive(Debug, Default)]
pub(super) struct Queues {
    waiters: FxHashMap<usize, VecDeque<Waiter>>,
    readers: FxHashMap<usize, usize>,
    /// Locks that were handed over to a core that is not there yet.
    handed: FxHashMap<usize, usize>,
    /// From when on the next release is fair, in picoseconds.
    fair: u64,
    random: u64,
}

/// `parking_lot` hands a lock over to the first waiter once in a random time up to this, half a millisecond on average.
const UNFAIR: u64 = 1_000_000_000;

impl Queues {
    pub(super) fn enqueue(&mut self, address: usize, waiter: Waiter) {
        self.waiters.entry(address).or_default().push_back(waiter);
    }

    /// One gives up waiting; whether it still waited.
    pub(super) fn leave(&mut self, address: usize, ticket: u64) -> bool {
        let Some(queue) = self.waiters.get_mut(&address) else { return false };
        let before = queue.len();
        queue.retain(|waiter| waiter.ticket != ticket);
        let left = queue.len() < before;
        if queue.is_empty() {
            self.waiters.remove(&address);
        }
        left
    }

    /// Whether this one waits.
    pub(super) fn holds(&self, address: usize, ticket: u64) -> bool {
        self.waiters.get(&address).is_some_and(|queue| queue.iter().any(|waiter| waiter.ticket == ticket))
    }

    pub(super) fn is_waited_for(&self, address: usize) -> bool {
        self.waiters.contains_key(&address)
    }

    pub(super) fn writer_waits(&self, address: usize) -> bool {
        self.waiters.get(&address).is_some_and(|queue| queue.iter().any(|waiter| waiter.exclusive))
    }

    pub(super) fn reader_enters(&mut self, address: usize) {
        *self.readers.entry(address).or_default() += 1;
    }

    /// A core releases the lock: returns the cores to wake. A writer alone, or readers together; none while other
    /// readers are in.
    pub(super) fn release(&mut self, address: usize, now: u64) -> Vec<Waiter> {
        if let Some(readers) = self.readers.get_mut(&address) {
            *readers -= 1;
            if *readers > 0 {
                return Vec::new();
            }
            self.readers.remove(&address);
        }
        let first = self.take(address, 1);
        if let Some(waiter) = first.first()
            && waiter.exclusive
            && now >= self.fair
        {
            self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            self.fair = now + (self.random >> 33) % UNFAIR;
            self.handed.insert(address, waiter.core);
        }
        if first.first().is_none_or(|waiter| waiter.exclusive) {
            return first;
        }
        let more =
            self.waiters.get(&address).map_or(0, |queue| queue.iter().take_while(|next| !next.exclusive).count());
        let more = self.take(address, more);
        first.into_iter().chain(more).collect()
    }

    /// Whether the lock was not handed over to another core.
    pub(super) fn may_take(&mut self, address: usize, core: usize) -> bool {
        match self.handed.get(&address) {
            Some(to) if *to == core => {
                self.handed.remove(&address);
                true
            }
            Some(_) => false,
            None => true,
        }
    }

    /// The first so many.
    pub(super) fn take(&mut self, address: usize, count: usize) -> Vec<Waiter> {
        let Some(queue) = self.waiters.get_mut(&address) else { return Vec::new() };
        let taken = queue.drain(..count.min(queue.len())).collect();
        if queue.is_empty() {
            self.waiters.remove(&address);
        }
        taken
    }
}
