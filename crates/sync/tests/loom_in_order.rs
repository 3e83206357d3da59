//! Models of work that takes effect in its order.
#![cfg(loom)]

// mutant: in_order_done_without_fence, killed by: an_owner_may_have_two
// mutant: in_order_passes_without_fence, killed by: two_pass_in_their_order
// mutant: in_order_wakes_nobody, killed by: two_pass_in_their_order
// mutant: in_order_wakes_between, killed by: two_pass_in_their_order
// mutant: in_order_sleeps_without_fence, killed by: an_owner_passes_what_was_left_to_it
// mutant: in_order_sleeps_without_a_look, killed by: an_owner_passes_what_was_left_to_it
// mutant: in_order_laps, killed by: slots_are_used_again
// mutant: in_order_breaks_silently, killed by: who_waits_behind_what_is_given_up_gets_an_error

use f2fs_sync::atomic::{AtomicU64, Ordering::Relaxed};
use f2fs_sync::{Arc, BrokenOff, InOrder, model, thread};

struct Work {
    order: InOrder,
    /// A bit for each number that is done. What it is ordered by are the numbers that have passed.
    done: AtomicU64,
}

impl Work {
    fn new() -> Arc<Work> {
        Arc::new(Work { order: InOrder::new(), done: AtomicU64::new(0) })
    }

    fn run(&self, numbers: &[u64]) {
        let last = numbers[numbers.len() - 1];
        for number in numbers {
            self.done.fetch_or(1 << number, Relaxed);
            let said = if *number == last { self.order.finish(last) } else { self.order.done(*number) };
            assert_eq!(said, Ok(()));
        }
        let in_front = (1 << (last + 1)) - 1;
        assert_eq!(self.done.load(Relaxed) & in_front, in_front, "{last} went on before those in front of it");
    }
}

fn side_by_side(numbers: &[&'static [u64]]) {
    let work = Work::new();
    let others: Vec<_> = numbers[1..]
        .iter()
        .map(|numbers| {
            let (work, numbers) = (Arc::clone(&work), *numbers);
            thread::spawn(move || work.run(numbers))
        })
        .collect();
    work.run(numbers[0]);
    for other in others {
        other.join().expect("no thread panics");
    }
}

#[test]
fn two_pass_in_their_order() {
    model::exhaustive("two_pass_in_their_order", || side_by_side(&[&[0], &[1]]));
}

/// Nobody looks at the first of them.
#[test]
fn an_owner_may_have_two() {
    model::bounded("an_owner_may_have_two", 3, || side_by_side(&[&[0], &[1, 2]]));
}

/// Whoever is done with the first passes one more at most: the third is left to its owner, if that is awake.
#[test]
fn an_owner_passes_what_was_left_to_it() {
    model::bounded("an_owner_passes_what_was_left_to_it", 3, || side_by_side(&[&[0], &[1], &[2]]));
}

/// There are two slots.
#[test]
fn slots_are_used_again() {
    model::bounded("slots_are_used_again", 3, || side_by_side(&[&[0, 2], &[1, 3]]));
}

#[test]
fn who_waits_behind_what_is_given_up_gets_an_error() {
    model::exhaustive("who_waits_behind_what_is_given_up_gets_an_error", || {
        let work = Work::new();
        let other = Arc::clone(&work);
        let behind = thread::spawn(move || other.order.finish(1));
        work.order.break_off();
        assert_eq!(behind.join().expect("it does not panic"), Err(BrokenOff));
    });
}
