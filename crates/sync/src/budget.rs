//! A bounded number of units that many threads take and give back, exact at its end.
//!
//! # Rules
//!
//! - A unit is in the *pool*, in one processor's *cache*, or taken. `state` protects the pool; a cache is one atomic.
//! - Taking from and giving to a cache is one compare-and-swap on this processor's line, without a lock.
//! - Units move between the pool and a cache only with `state` held. Nothing else is locked under it.
//! - An empty cache takes a batch from the pool, and a full one gives a batch to it. A cache is left half full either
//!   way. So a thread visits the pool once in a batch, whether it only takes, only gives, or does both in turn.
//!
//! # States
//!
//! ```text
//!              a take that neither cache nor pool can serve
//!   ┌────────┐ ───────────────────────────────────────────► ┌────────┐
//!   │ cached │                                              │ frozen │
//!   └────────┘ ◄─────────────────────────────────────────── └────────┘
//!              a give that makes the pool large again
//! ```
//!
//! *Cached* is the common case. When units run short, the budget *freezes*: with `state` held, each cache is emptied
//! into the pool and marked frozen in one swap. From its mark on, a cache serves nobody, and those who find the mark
//! wait for `state`. So once all are marked, the pool holds every unit that is not taken, at one moment: a take that is
//! refused is refused because there were fewer units than it asked for. (Emptying the caches without stopping them
//! would miss units given to a cache behind the collector's back while others leave a cache ahead of it.) While frozen,
//! all takes and gives go through the pool, exact and one by one. Caches thaw when the pool has enough to fill them all
//! several times over.

use crate::atomic::AtomicU64;
use crate::atomic::Ordering::{AcqRel, Relaxed, Release};
use crate::{Mutex, PerCore, protocol_never, protocol_value};

/// A cache that serves nobody. No cache holds as many units: see [`Budget::give`].
const FROZEN: u64 = u64::MAX;

/// The largest number of units that move between a cache and the pool at once. The pool's lock is taken in one of so
/// many operations: far below one in a hundred.
const LARGEST_BATCH: u64 = 256;

/// A bounded number of units (free blocks, free node IDs): threads take some and give some back.
///
/// [`try_take`](Budget::try_take) is exact: it says no only if, at some moment during the call, fewer units were left
/// than were asked for; and never hands out a unit twice. It is cheap too: a thread takes from a cache of its
/// processor's own, and only where units run short do all threads go through one lock.
///
/// ```
/// use f2fs_sync::Budget;
///
/// let blocks = Budget::new(10);
/// assert!(blocks.try_take(8));
/// assert!(!blocks.try_take(3));
/// assert!(blocks.try_take(2));
/// blocks.give(5);
/// assert_eq!(blocks.available_exact(), 5);
/// ```
#[derive(Debug)]
pub struct Budget {
    caches: PerCore<AtomicU64>,
    /// How many units move between a cache and the pool at once. A cache holds at most three times as many.
    batch: u64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The units that are in no cache and not taken.
    pool: u64,
    /// Whether the caches are frozen.
    frozen: bool,
}

impl Budget {
    /// A budget of `units`, with caches of a size that suits it.
    #[must_use]
    pub fn new(units: u64) -> Self {
        let slots = PerCore::new(|_| ()).slots() as u64;
        Budget::with_batch(units, (units / (16 * slots)).min(LARGEST_BATCH))
    }

    /// A budget of `units` whose caches take `batch` units at once; with 0 there are no caches, and every call takes
    /// the lock.
    #[must_use]
    pub fn with_batch(units: u64, batch: u64) -> Self {
        let mut caches = PerCore::new(|_| AtomicU64::new(FROZEN));
        // Far from what would let a cache's number reach the mark.
        let batch = batch.min(u64::from(u32::MAX));
        let frozen = batch == 0 || units < thaw_at(batch, caches.slots());
        if !frozen {
            caches.iter_mut().for_each(|cache| *cache = AtomicU64::new(0));
        }
        Budget { caches, batch, state: Mutex::new(State { pool: units, frozen }) }
    }

    /// Takes `units` if so many are left; whether it did. Everything that their givers did before is visible then.
    #[inline]
    #[must_use = "the units are taken only if it says so"]
    pub fn try_take(&self, units: u64) -> bool {
        let cache = self.caches.slot();
        let mut cached = cache.load(Relaxed);
        while cached != FROZEN && cached >= units {
            protocol_never!("budget_take_not_atomic", {
                cache.store(cached - units, Release);
                return true;
            });
            let order = protocol_value!("budget_take_order", AcqRel, Relaxed);
            match cache.compare_exchange_weak(cached, cached - units, order, Relaxed) {
                Ok(_) => return true,
                Err(now) => cached = now,
            }
        }
        self.take_from_pool(cache, units)
    }

    /// Gives `units` back, or adds new ones. Their sum must stay below `u64::MAX`.
    #[inline]
    pub fn give(&self, units: u64) {
        protocol_never!("budget_give_takes_the_lock", drop(self.state.lock()));
        let cache = self.caches.slot();
        let mut cached = cache.load(Relaxed);
        while cached != FROZEN && units <= 2 * self.batch && cached + units <= 2 * self.batch {
            protocol_never!("budget_give_not_atomic", {
                cache.store(cached + units, Release);
                return;
            });
            let order = protocol_value!("budget_give_order", AcqRel, Relaxed);
            match cache.compare_exchange_weak(cached, cached + units, order, Relaxed) {
                Ok(_) => return,
                Err(now) => cached = now,
            }
        }
        self.give_to_pool(cache, units);
    }

    /// How many units are left, at one moment during the call. Stops the caches for that moment: not for a hot path.
    #[must_use]
    pub fn available_exact(&self) -> u64 {
        let state = self.state.lock();
        if state.frozen {
            return state.pool;
        }
        let order = protocol_value!("budget_count_acquires", AcqRel, Release);
        let cached: Vec<u64> = self.caches.iter().map(|cache| cache.swap(FROZEN, order)).collect();
        for (cache, units) in self.caches.iter().zip(&cached) {
            cache.store(*units, protocol_value!("budget_count_releases", Release, Relaxed));
        }
        cached.iter().fold(state.pool, |sum, units| sum.saturating_add(*units))
    }

    #[cold]
    fn take_from_pool(&self, cache: &AtomicU64, units: u64) -> bool {
        let mut state = self.state.lock();
        if state.pool < units && !state.frozen {
            self.freeze(&mut state);
        }
        let Some(left) = state.pool.checked_sub(units) else {
            self.thaw_if_large(&mut state);
            return false;
        };
        state.pool = left;
        // Fill the cache on the way. It is not frozen, and will not be while we have the lock.
        if !state.frozen && left >= self.batch && cache.load(Relaxed) < self.batch {
            state.pool -= self.batch;
            cache.fetch_add(self.batch, protocol_value!("budget_refill_releases", AcqRel, Relaxed));
        }
        // Nothing to thaw: what a freeze brings together is less than that, and units only went.
        true
    }

    #[cold]
    fn give_to_pool(&self, cache: &AtomicU64, units: u64) {
        let mut state = self.state.lock();
        debug_assert!(state.pool < FROZEN - units, "{units} units more than {} are too many to count", state.pool);
        state.pool = state.pool.saturating_add(units);
        // Empty the full cache on the way, down to a batch. It is not frozen, and will not be while we have the lock.
        let mut cached = cache.load(Relaxed);
        while !state.frozen && cached > self.batch {
            protocol_never!("budget_drain_not_atomic", {
                cache.store(self.batch, Release);
                state.pool += cached - self.batch;
                break;
            });
            let order = protocol_value!("budget_drain_acquires", AcqRel, Release);
            match cache.compare_exchange_weak(cached, self.batch, order, Relaxed) {
                Ok(_) => {
                    state.pool = state.pool.saturating_add(cached - self.batch);
                    break;
                }
                Err(now) => cached = now,
            }
        }
        self.thaw_if_large(&mut state);
    }

    /// Empties and stops the caches.
    fn freeze(&self, state: &mut State) {
        let mark = protocol_value!("budget_drain_freezes", FROZEN, 0);
        for cache in self.caches.iter() {
            state.pool = state.pool.saturating_add(cache.swap(mark, AcqRel));
        }
        state.frozen = mark == FROZEN;
    }

    /// Lets the caches serve again, if the pool can fill them.
    fn thaw_if_large(&self, state: &mut State) {
        if state.frozen && self.batch > 0 && state.pool >= thaw_at(self.batch, self.caches.slots()) {
            state.frozen = false;
            self.caches.iter().for_each(|cache| cache.store(0, Release));
        }
    }
}

/// How many units the pool has when the caches thaw: more than a freeze can bring together (three batches from each
/// cache), so that a budget that hovers at its end does not change its state with each call.
fn thaw_at(batch: u64, slots: usize) -> u64 {
    4 * batch * slots as u64
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::atomic::AtomicUsize;

    #[test]
    fn every_unit_is_taken_once_and_none_is_refused() {
        for batch in [0, 1, 7, 64] {
            let budget = Budget::with_batch(10_000, batch);
            let taken = AtomicUsize::new(0);
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        while budget.try_take(1) {
                            taken.fetch_add(1, Relaxed);
                        }
                    });
                }
            });
            assert_eq!(taken.load(Relaxed), 10_000, "batch {batch}");
            assert_eq!(budget.available_exact(), 0);
        }
    }

    #[test]
    fn nothing_is_lost_by_taking_and_giving() {
        let budget = Budget::with_batch(600, 8);
        std::thread::scope(|scope| {
            for thread in 1..=4_u64 {
                let budget = &budget;
                scope.spawn(move || {
                    for round in 0..5000 {
                        let units = (round * thread) % 150;
                        // Four threads hold at most 149 units each.
                        assert!(budget.try_take(units), "{units} of 600 are left");
                        budget.give(units);
                    }
                });
            }
        });
        assert_eq!(budget.available_exact(), 600);
    }

    #[test]
    fn what_other_caches_hold_can_be_taken() {
        let budget = Budget::with_batch(4000, 64);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| assert!(budget.try_take(1)));
            }
        });
        assert_eq!(budget.available_exact(), 3996);
        assert!(!budget.try_take(3997));
        assert!(budget.try_take(3996));
        assert!(!budget.try_take(1));
        assert!(budget.try_take(0));
    }

    #[test]
    fn it_freezes_near_the_end_and_thaws_when_units_return() {
        let budget = Budget::with_batch(10_000, 4);
        assert!(!budget.state.lock().frozen);
        assert!(budget.try_take(9_999));
        assert!(!budget.try_take(2));
        assert!(budget.state.lock().frozen);
        budget.give(1);
        assert!(budget.state.lock().frozen);
        budget.give(9_000);
        assert!(!budget.state.lock().frozen);
        assert_eq!(budget.available_exact(), 9_002);
    }

    #[test]
    fn caches_serve_where_units_suffice_for_them() {
        let slots = PerCore::new(|_| ()).slots() as u64;
        let frozen = |units, batch| Budget::with_batch(units, batch).state.lock().frozen;
        assert!(frozen(16 * slots - 1, 4) && !frozen(16 * slots, 4));
        assert!(frozen(1000, 0), "there are no caches");
        // What they hold at most is a small part, however many units there are.
        for units in [0, 15, 16 * slots, 1000 * slots, 1 << 20, 1 << 40] {
            let budget = Budget::new(units);
            assert!(3 * budget.batch * slots <= units / 5, "{} of {units} at once", budget.batch);
            assert_eq!(budget.batch > 0, units >= 16 * slots, "{units}");
            assert!(budget.batch == 0 || !budget.state.lock().frozen);
        }
        let budget = Budget::with_batch(1000, 0);
        budget.give(1);
        assert!(budget.state.lock().frozen);
    }

    #[test]
    fn it_freezes_only_where_the_pool_has_too_few_units() {
        let budget = Budget::with_batch(10_000, 4);
        assert!(!budget.try_take(20_000));
        assert!(!budget.state.lock().frozen, "it has enough for all others");
        assert!(budget.try_take(10_000));
        assert!(!budget.state.lock().frozen, "the pool had them all");
        assert!(!budget.try_take(1));
        assert!(budget.state.lock().frozen);
    }

    #[test]
    fn small_budgets_have_no_caches() {
        let budget = Budget::new(3);
        assert_eq!(budget.batch, 0);
        assert!(budget.try_take(3) && !budget.try_take(1));
        budget.give(1);
        assert!(budget.try_take(1));
    }

    #[test]
    fn the_pool_is_visited_once_in_a_batch() {
        // One thread that only gives, then one that only takes, then one that does both about a full cache.
        let budget = Budget::with_batch(100_000, 8);
        let pool = || budget.state.lock().pool;
        let visits = |operations: usize, operation: &dyn Fn(usize)| {
            (0..operations)
                .filter(|n| {
                    let before = pool();
                    operation(*n);
                    pool() != before
                })
                .count()
        };
        // The thread may be moved to another processor now and then, where a cache begins again.
        let moves = 8;
        assert!(budget.try_take(10_000));
        assert!(visits(800, &|_| budget.give(1)) <= 800 / 8 + moves);
        assert!(visits(800, &|_| assert!(budget.try_take(1))) <= 800 / 8 + moves);
        assert!(visits(16, &|_| budget.give(1)) <= 2 + moves);
        assert!(visits(800, &|n| if n % 2 == 0 { budget.give(1) } else { assert!(budget.try_take(1)) }) <= moves);
    }

    #[test]
    fn a_cache_does_not_hoard() {
        let budget = Budget::with_batch(100_000, 8);
        for _ in 0..1000 {
            assert!(budget.try_take(20));
        }
        let most = 3 * budget.batch;
        assert!(budget.caches.iter().all(|cache| cache.load(Relaxed) <= most));
    }
}
