//! Models of what a unit of a budget carries: who takes it sees what its giver did before, whichever way the unit went.
#![cfg(loom)]

// mutant: budget_give_order, killed by: units_carry_what_was_done_before
// mutant: budget_take_order, killed by: a_unit_of_the_same_cache_carries_what_was_done_before
// mutant: budget_give_order, killed by: a_unit_of_the_same_cache_carries_what_was_done_before
// mutant: budget_count_releases, killed by: a_unit_that_was_counted_carries_what_was_done_before
// mutant: budget_count_acquires, killed by: a_unit_that_another_counted_carries_what_was_done_before
// mutant: budget_refill_releases, killed by: a_unit_of_a_refilled_cache_carries_what_was_done_before
// mutant: budget_drain_acquires, killed by: a_unit_of_a_drained_cache_carries_what_was_done_before

use f2fs_sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use f2fs_sync::{Arc, Budget, model, thread};

#[test]
fn units_carry_what_was_done_before() {
    model::exhaustive("units_carry_what_was_done_before", || {
        let budget = Budget::with_batch(8, 1);
        assert!(budget.try_take(6));
        let shared = Arc::new((budget, AtomicUsize::new(0)));
        let other = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            other.1.store(1, Relaxed);
            other.0.give(1);
        });
        // Two units are left; the third is the one that the other thread gives.
        if shared.0.try_take(3) {
            assert_eq!(shared.1.load(Relaxed), 1);
        }
        thread.join().expect("the thread does not panic");
    });
}

/// One thread gives units to the cache of its slot, and another one takes them there.
///
/// The taker asks a flag first: of the accesses to one variable loom reverses only the last, so it would never try the
/// order in which the first look at the cache finds what was given. The flag is a variable of its own, and orders
/// nothing.
fn from_cache_to_cache(after: fn(&Budget)) {
    let budget = three_units();
    let shared = Arc::new((budget, AtomicUsize::new(0), AtomicBool::new(false)));
    // Thread 1 has the other slot, thread 2 this one.
    idle();
    let other = Arc::clone(&shared);
    let thread = thread::spawn(move || {
        other.1.store(1, Relaxed);
        other.0.give(2);
        after(&other.0);
        other.2.store(true, Relaxed);
    });
    // Three units are left; the fourth is one that the other thread gives.
    if shared.2.load(Relaxed) && shared.0.try_take(4) {
        assert_eq!(shared.1.load(Relaxed), 1);
    }
    thread.join().expect("the thread does not panic");
}

#[test]
fn a_unit_of_the_same_cache_carries_what_was_done_before() {
    model::bounded("a_unit_of_the_same_cache_carries_what_was_done_before", 3, || from_cache_to_cache(|_| ()));
}

#[test]
fn a_unit_that_was_counted_carries_what_was_done_before() {
    model::bounded("a_unit_that_was_counted_carries_what_was_done_before", 3, || {
        from_cache_to_cache(|budget| assert!(budget.available_exact() <= 5));
    });
}

/// The same with a third thread between the two: what it does with the budget moves units of the giver, and the taker
/// takes them from where they are then. It says whether it moved any.
///
/// Only the budget orders the three: the flags by which each waits for the one before order nothing. A giver that moves
/// its units itself has ordered them already, so only a third thread shows that who moves units sees what their giver
/// did, and hands it on.
struct Passage {
    budget: Budget,
    /// What the giver gives.
    given: u64,
    moves: fn(&Budget) -> bool,
    /// What the taker takes: more than there would be without the giver's units.
    taken: u64,
    seen: AtomicUsize,
    gave: AtomicBool,
    moved: AtomicBool,
}

impl Passage {
    fn new(budget: Budget, given: u64, moves: fn(&Budget) -> bool, taken: u64) -> Arc<Self> {
        let seen = AtomicUsize::new(0);
        let [gave, moved] = [false, false].map(AtomicBool::new);
        Arc::new(Passage { budget, given, moves, taken, seen, gave, moved })
    }

    fn give(&self) {
        self.seen.store(1, Relaxed);
        self.budget.give(self.given);
        self.gave.store(true, Relaxed);
    }

    fn pass_on(&self) {
        if self.gave.load(Relaxed) && (self.moves)(&self.budget) {
            self.moved.store(true, Relaxed);
        }
    }

    fn take(&self) {
        if self.moved.load(Relaxed) && self.budget.try_take(self.taken) {
            assert_eq!(self.seen.load(Relaxed), 1);
        }
    }

    /// Plays it, with this thread as the taker. `one_slot` says whether giver and mover have the same slot.
    fn play(self: Arc<Self>, one_slot: bool) {
        let (giver, mover) = (Arc::clone(&self), Arc::clone(&self));
        let giver = thread::spawn(move || giver.give());
        if one_slot {
            idle();
        }
        let mover = thread::spawn(move || mover.pass_on());
        self.take();
        giver.join().expect("the giver does not panic");
        mover.join().expect("the mover does not panic");
    }
}

/// Three units: two in this slot's cache, one in the pool.
fn three_units() -> Budget {
    let budget = Budget::with_batch(16, 2);
    assert!(budget.try_take(13));
    budget
}

/// No unit at all, and caches that serve.
fn no_units() -> Budget {
    let budget = Budget::with_batch(16, 2);
    assert!(budget.try_take(16));
    budget
}

/// A thread that does nothing, so that the next one has the other slot.
fn idle() {
    thread::spawn(|| ()).join().expect("the thread does not panic");
}

#[test]
fn a_unit_that_another_counted_carries_what_was_done_before() {
    model::bounded("a_unit_that_another_counted_carries_what_was_done_before", 3, || {
        // The giver is thread 2, and has this slot.
        idle();
        let count = |budget: &Budget| budget.available_exact() <= 5;
        Passage::new(three_units(), 2, count, 4).play(false);
    });
}

#[test]
fn a_unit_of_a_refilled_cache_carries_what_was_done_before() {
    model::bounded("a_unit_of_a_refilled_cache_carries_what_was_done_before", 3, || {
        // So many units go to the pool. Thread 2 takes one of them, and two more into the cache of this slot.
        Passage::new(no_units(), 5, |budget| budget.try_take(1), 2).play(false);
    });
}

#[test]
fn a_unit_of_a_drained_cache_carries_what_was_done_before() {
    model::bounded("a_unit_of_a_drained_cache_carries_what_was_done_before", 3, || {
        // So many units fill the cache of thread 1; thread 3, with the same slot, empties it into the pool.
        let fill_up = |budget: &Budget| {
            budget.give(1);
            true
        };
        Passage::new(no_units(), 4, fill_up, 3).play(true);
    });
}
