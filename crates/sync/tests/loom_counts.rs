//! Models of the counter and the budget: no unit is lost, taken twice or refused. What a unit carries from its giver to
//! its taker is in `loom_units.rs`.
#![cfg(loom)]

// mutant: counter_add_not_atomic, killed by: no_addition_is_lost
// mutant: budget_take_not_atomic, killed by: no_unit_is_taken_twice
// mutant: budget_give_not_atomic, killed by: units_survive_freezing_and_thawing
// mutant: budget_drain_not_atomic, killed by: a_full_cache_is_emptied_while_others_use_it
// mutant: budget_drain_freezes, killed by: what_is_there_is_not_refused

use f2fs_sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::Release};
use f2fs_sync::{Arc, Budget, ShardedCounter, model, thread};

#[test]
fn no_addition_is_lost() {
    model::bounded("no_addition_is_lost", 3, || {
        // Three threads on two slots.
        let counter = Arc::new(ShardedCounter::new(1));
        let threads = [2, 3].map(|amount| {
            let counter = Arc::clone(&counter);
            thread::spawn(move || counter.add(amount))
        });
        counter.sub(1);
        for thread in threads {
            thread.join().expect("the thread does not panic");
        }
        assert_eq!(counter.sum(), 5);
    });
}

/// With a batch of one, the caches of both slots are in use from nine units on and freeze when the pool runs out.
fn nearly_empty() -> Budget {
    let budget = Budget::with_batch(9, 1);
    // One unit is in this slot's cache after that, one in the pool.
    assert!(budget.try_take(7));
    budget
}

#[test]
fn no_unit_is_taken_twice() {
    model::exhaustive("no_unit_is_taken_twice", || {
        let budget = Arc::new(nearly_empty());
        let other = Arc::clone(&budget);
        let thread = thread::spawn(move || other.try_take(2));
        let here = budget.try_take(1);
        let there = thread.join().expect("the thread does not panic");
        // Either fits alone, both do not.
        assert!(here != there, "here {here}, there {there}");
        assert_eq!(budget.available_exact(), if here { 1 } else { 0 });
    });
}

#[test]
fn what_is_there_is_not_refused() {
    model::bounded("what_is_there_is_not_refused", 3, || {
        let budget = Arc::new(nearly_empty());
        // The other slot's cache gets a unit too. There are 3 from now on, and at every moment at least 3.
        let filler = Arc::clone(&budget);
        thread::spawn(move || filler.give(1)).join().expect("the thread does not panic");
        let given = Arc::new(AtomicBool::new(false));

        // Threads 2 and 3: a unit is given in one slot, then one is taken in the other.
        let giver = {
            let (budget, given) = (Arc::clone(&budget), Arc::clone(&given));
            thread::spawn(move || {
                budget.give(1);
                given.store(true, Release);
            })
        };
        let taker = {
            let (budget, given) = (Arc::clone(&budget), Arc::clone(&given));
            thread::spawn(move || given.load(Acquire) && budget.try_take(1))
        };
        assert!(budget.try_take(3), "3 units were left at every moment");
        giver.join().expect("the thread does not panic");
        let taken = taker.join().expect("the thread does not panic");
        assert_eq!(budget.available_exact(), if taken { 0 } else { 1 });
    });
}

#[test]
fn units_survive_freezing_and_thawing() {
    model::exhaustive("units_survive_freezing_and_thawing", || {
        let budget = Arc::new(nearly_empty());
        let other = Arc::clone(&budget);
        let thread = thread::spawn(move || {
            // Freezes.
            let taken = other.try_take(2);
            // Thaws.
            other.give(8);
            taken
        });
        budget.give(1);
        let exact = budget.available_exact();
        assert!([1, 3, 9].contains(&exact), "{exact}");
        let taken = thread.join().expect("the thread does not panic");
        assert!(taken, "two were left at every moment");
        assert_eq!(budget.available_exact(), 9);
    });
}

#[test]
fn a_full_cache_is_emptied_while_others_use_it() {
    // Three threads on two slots: two of them share a cache.
    model::bounded("a_full_cache_is_emptied_while_others_use_it", 3, || {
        let budget = Arc::new(Budget::with_batch(20, 1));
        assert!(budget.try_take(10));
        let threads = [0, 1].map(|_| {
            let budget = Arc::clone(&budget);
            thread::spawn(move || {
                budget.give(1);
                assert!(budget.try_take(1), "there are ten and more");
            })
        });
        // A cache holds two at most: the third goes to the pool, and takes one with it.
        for _ in 0..3 {
            budget.give(1);
        }
        for thread in threads {
            thread.join().expect("the thread does not panic");
        }
        assert_eq!(budget.available_exact(), 13);
    });
}
