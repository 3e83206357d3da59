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
// mutant: gate_later_opening_stays, killed by: an_older_opening_does_not_hide_a_newer_one
// mutant: gate_enter_fence, killed by: two_readers_and_a_closer
// mutant: gate_try_enter_fence, killed by: trying_to_enter_is_entering_or_nothing
// mutant: gate_try_enter_acquires, killed by: who_tries_to_enter_sees_what_the_closer_did
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

    /// All of the other thread's work is there or nothing, and it stays so.
    fn look(&self) {
        let seen = self.get();
        assert_eq!(seen.0, seen.1);
        assert_eq!(self.get(), seen);
    }
}

/// Another thread works behind the gate, each of the two in its own way of entering or closing it, while this one looks.
fn one_works_while_the_other_looks(name: &str, works: fn(&Gate, &Pair), looks: fn(&Gate, &Pair)) {
    model::exhaustive(name, move || {
        let shared = Arc::new((Gate::new(), Pair::new()));
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || works(&shared.0, &shared.1))
        };
        looks(&shared.0, &shared.1);
        other.join().expect("the other thread does not panic");
    });
}

fn works_closed(gate: &Gate, pair: &Pair) {
    let _closed = gate.close();
    pair.set(1);
}

fn looks_closed(gate: &Gate, pair: &Pair) {
    let _closed = gate.close();
    pair.look();
}

#[test]
fn a_closer_is_alone() {
    let works = |gate: &Gate, pair: &Pair| {
        let _guard = gate.enter();
        pair.set(1);
    };
    one_works_while_the_other_looks("a_closer_is_alone", works, looks_closed);
}

#[test]
fn an_entrant_sees_what_the_closer_did() {
    let looks = |gate: &Gate, pair: &Pair| {
        let _guard = gate.enter();
        pair.look();
    };
    one_works_while_the_other_looks("an_entrant_sees_what_the_closer_did", works_closed, looks);
}

#[test]
fn trying_to_enter_is_entering_or_nothing() {
    let works = |gate: &Gate, pair: &Pair| {
        if let Some(_guard) = gate.try_enter() {
            pair.set(1);
        }
    };
    one_works_while_the_other_looks("trying_to_enter_is_entering_or_nothing", works, looks_closed);
}

#[test]
fn who_tries_to_enter_sees_what_the_closer_did() {
    let looks = |gate: &Gate, pair: &Pair| {
        if let Some(_guard) = gate.try_enter() {
            pair.look();
        }
    };
    one_works_while_the_other_looks("who_tries_to_enter_sees_what_the_closer_did", works_closed, looks);
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
    let works = |gate: &Gate, pair: &Pair| {
        let first = gate.enter();
        let second = first.again();
        drop(first);
        pair.set(1);
        drop(second);
    };
    one_works_while_the_other_looks("a_second_guard_holds_the_gate_too", works, looks_closed);
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

#[test]
fn an_older_opening_does_not_hide_a_newer_one() {
    model::bounded("an_older_opening_does_not_hide_a_newer_one", 3, || {
        let gate = Arc::new(Gate::new());
        // Thread 1 has the second room, thread 2 and this one the first. So the first closer may tell the second room
        // of its opening when the second closer has told it of the next one.
        let entrant = {
            let gate = Arc::clone(&gate);
            thread::spawn(move || drop(gate.enter()))
        };
        let second = {
            let gate = Arc::clone(&gate);
            thread::spawn(move || {
                drop(gate.enter());
                drop(gate.close());
            })
        };
        drop(gate.close());
        entrant.join().expect("the entrant does not panic");
        second.join().expect("the second closer does not panic");
    });
}
