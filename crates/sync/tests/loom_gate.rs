//! Models of the gate.
#![cfg(loom)]

// mutant: gate_enter_fence, killed by: a_closer_is_alone
// mutant: gate_close_fence, killed by: a_closer_is_alone
// mutant: gate_leave_releases, killed by: a_closer_is_alone
// mutant: gate_open_releases, killed by: an_entrant_sees_what_the_closer_did
// mutant: gate_leave_fence, killed by: the_last_to_leave_wakes_the_closer
// mutant: gate_leave_wakes_under_lock, killed by: the_last_to_leave_wakes_the_closer
// mutant: gate_turn_back_counts_down, killed by: a_closer_is_alone
// mutant: gate_turn_not_passed, killed by: closers_take_turns_with_an_entrant
// mutant: gate_turn_passed_without_lock, killed by: closers_take_turns_with_an_entrant
// mutant: gate_admitted_without_its_count, killed by: closers_take_turns_with_an_entrant
// mutant: gate_rooms_not_told, killed by: two_readers_and_a_closer
// mutant: gate_enter_fence, killed by: two_readers_and_a_closer
// mutant: gate_try_enter_fence, killed by: trying_to_enter_is_entering_or_nothing
// mutant: gate_again_same_slot, killed by: a_second_guard_holds_the_gate_too

use f2fs_sync::atomic::{AtomicUsize, Ordering::Relaxed};
use f2fs_sync::{Arc, Gate, model, thread};

/// Two numbers that are equal whenever nobody is at work on them. Relaxed, so that only the gate orders what is seen of
/// them.
struct Pair(AtomicUsize, AtomicUsize);

impl Pair {
    fn new() -> Self {
        Pair(AtomicUsize::new(0), AtomicUsize::new(0))
    }

    fn set(&self, value: usize) {
        self.0.store(value, Relaxed);
        self.1.store(value, Relaxed);
    }

    fn get(&self) -> (usize, usize) {
        (self.0.load(Relaxed), self.1.load(Relaxed))
    }
}

#[test]
fn a_closer_is_alone() {
    model::exhaustive("a_closer_is_alone", || {
        let shared = Arc::new((Gate::new(), Pair::new()));
        let reader = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let _guard = shared.0.enter();
                shared.1.set(1);
            })
        };
        {
            let _closed = shared.0.close();
            // All of the other thread's work or nothing, and it stays so.
            let seen = shared.1.get();
            assert_eq!(seen.0, seen.1);
            assert_eq!(shared.1.get(), seen);
        }
        reader.join().expect("the reader does not panic");
    });
}

#[test]
fn an_entrant_sees_what_the_closer_did() {
    model::exhaustive("an_entrant_sees_what_the_closer_did", || {
        let shared = Arc::new((Gate::new(), Pair::new()));
        let closer = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let _closed = shared.0.close();
                shared.1.set(1);
            })
        };
        {
            let _guard = shared.0.enter();
            let seen = shared.1.get();
            assert_eq!(seen.0, seen.1);
            assert_eq!(shared.1.get(), seen);
        }
        closer.join().expect("the closer does not panic");
    });
}

#[test]
fn trying_to_enter_is_entering_or_nothing() {
    model::exhaustive("trying_to_enter_is_entering_or_nothing", || {
        let shared = Arc::new((Gate::new(), Pair::new()));
        let reader = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                if let Some(_guard) = shared.0.try_enter() {
                    shared.1.set(1);
                }
            })
        };
        {
            let _closed = shared.0.close();
            let seen = shared.1.get();
            assert_eq!(seen.0, seen.1);
            assert_eq!(shared.1.get(), seen);
        }
        reader.join().expect("the reader does not panic");
    });
}

#[test]
fn the_last_to_leave_wakes_the_closer() {
    model::exhaustive("the_last_to_leave_wakes_the_closer", || {
        let gate = Arc::new(Gate::new());
        let guard = gate.enter();
        let closer = {
            let gate = Arc::clone(&gate);
            thread::spawn(move || drop(gate.close()))
        };
        drop(guard);
        closer.join().expect("the closer does not panic");
    });
}

#[test]
fn a_second_guard_holds_the_gate_too() {
    model::exhaustive("a_second_guard_holds_the_gate_too", || {
        let shared = Arc::new((Gate::new(), Pair::new()));
        let reader = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let first = shared.0.enter();
                let second = first.again();
                drop(first);
                shared.1.set(1);
                drop(second);
            })
        };
        {
            let _closed = shared.0.close();
            let seen = shared.1.get();
            assert_eq!(seen.0, seen.1);
            assert_eq!(shared.1.get(), seen);
        }
        reader.join().expect("the reader does not panic");
    });
}

#[test]
fn two_readers_and_a_closer() {
    model::bounded("two_readers_and_a_closer", 3, || {
        let shared = Arc::new((Gate::new(), Pair::new(), Pair::new()));
        let readers = [0, 1].map(|reader| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let _guard = shared.0.enter();
                if reader == 0 { shared.1.set(1) } else { shared.2.set(1) }
            })
        });
        {
            let _closed = shared.0.close();
            for pair in [&shared.1, &shared.2] {
                let seen = pair.get();
                assert_eq!(seen.0, seen.1);
            }
        }
        for reader in readers {
            reader.join().expect("the reader does not panic");
        }
    });
}

#[test]
fn closers_take_turns_with_an_entrant() {
    model::bounded("closers_take_turns_with_an_entrant", 3, || {
        let shared = Arc::new((Gate::new(), Pair::new()));
        let closer = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let _closed = shared.0.close();
                shared.1.set(1);
            })
        };
        let entrant = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let _guard = shared.0.enter();
                let seen = shared.1.get();
                assert_eq!(seen.0, seen.1);
            })
        };
        {
            let _closed = shared.0.close();
            let seen = shared.1.get();
            assert_eq!(seen.0, seen.1);
            shared.1.set(2);
        }
        closer.join().expect("the closer does not panic");
        entrant.join().expect("the entrant does not panic");
    });
}
