//! Work whose order was given out before it was done: nobody goes on before all work in front of it is done.
//!
//! ```text
//!            done                  all in front have passed
//!   ahead ─────┬─────► done ───────────────────────────────────► passed
//!              │                                                  ▲  ▲
//!              └─────► watched ───────────────────────────────────┘  │ the same, and the owner is woken
//!             finish      └──────► asleep ───────────────────────────┘
//! ```
//!
//! Numbers are given out by somebody else, 0, 1, 2, each to one owner; an owner may have several. It does its work, says
//! that it is [`done`](InOrder::done) with all but its last number, and [finishes](InOrder::finish) that: it waits until
//! the number has passed. Blocks of a log that are written side by side are an example: what a block says holds when the
//! block is written, and all blocks in front of it.
//!
//! # Rules
//!
//! - Whoever is done looks at the number in front. If that has passed, it passes its own, and those behind it that are
//!   done already: so a thread that the system took off its processor does not hold up those that come behind it.
//! - Each number has a slot, and numbers a lap apart have the same one. A number of the next lap waits until the former
//!   one has passed. Nobody may wait for anything between getting a number and being done with it, so the lowest number
//!   that has not passed is never waited for in vain.
//! - An owner spins on its last slot for a while, and sleeps then. The mutex of a slot is held for a moment, and
//!   nothing is taken under it.
//! - A thread that has passed many for others leaves the next one to its owner, if that spins.
//!
//! # Why nobody is forgotten
//!
//! To be done: *say so, fence, look at the slot in front*. To pass: *say so, fence, look at the slot behind*. Whichever
//! fence comes second sees the other's word. An owner that falls asleep says so, and looks in front again, with the same
//! fence: what was left to it while it was awake it passes itself.

use std::fmt;

use crate::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use crate::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use crate::{CachePadded, Condvar, Mutex, hint, protocol_step, protocol_value, thread};

/// Slots: numbers that may be under way at a time without waiting for each other's slots.
const SLOTS: usize = if cfg!(loom) { 2 } else { 512 };
/// How often an owner looks at its slot before it sleeps, and after how many looks it looks in front of it once more.
const LOOKS: u32 = if cfg!(any(loom, shuttle)) { 0 } else { 128 };
const LOOKS_IN_FRONT: u32 = 16;
/// How many numbers of others a thread passes, if their owners are awake.
const FAVOURS: u64 = if cfg!(loom) { 1 } else { 32 };

/// What a slot says of a number, in the lowest bits of its word: the work is done, and nobody looks at it;
const DONE: u64 = 0;
/// the owner looks at it;
const WATCHED: u64 = 1;
/// the owner sleeps;
const ASLEEP: u64 = 2;
/// all in front are done, too.
const PASSED: u64 = 3;

/// The word of a slot: the number, and what is known of it. Of two words of a slot the later one is the larger, and 0 is
/// none.
const fn word(number: u64, state: u64) -> u64 {
    ((number + 1) << 2) | state
}

/// Lets work that is done in any order take effect in the order of its numbers.
///
/// ```
/// use f2fs_sync::InOrder;
///
/// let order = InOrder::new();
/// std::thread::scope(|scope| {
///     let later = scope.spawn(|| {
///         order.done(1)?;
///         order.finish(2)
///     });
///     assert!(order.finish(0).is_ok());
///     assert!(later.join().is_ok_and(|passed| passed.is_ok()));
/// });
/// ```
pub struct InOrder {
    // The length is a power of two.
    slots: Box<[CachePadded<Slot>]>,
    broken: CachePadded<AtomicBool>,
}

/// Somebody will never be done: what comes behind it does not pass, and nobody waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrokenOff;

struct Slot {
    word: AtomicU64,
    /// Held by an owner that falls asleep, and by who wakes it.
    falling_asleep: Mutex<()>,
    woken: Condvar,
}

impl Default for InOrder {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for InOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InOrder").field("broken", &self.broken).finish_non_exhaustive()
    }
}

impl InOrder {
    /// No number is done. The first one is 0.
    #[must_use]
    pub fn new() -> InOrder {
        let slot = |_| {
            CachePadded::new(Slot { word: AtomicU64::new(0), falling_asleep: Mutex::new(()), woken: Condvar::new() })
        };
        InOrder { slots: (0..SLOTS).map(slot).collect(), broken: CachePadded::new(AtomicBool::new(false)) }
    }

    fn slot(&self, number: u64) -> &Slot {
        &self.slots[number as usize & (SLOTS - 1)]
    }

    fn has_passed(&self, number: u64) -> bool {
        self.slot(number).word.load(Acquire) >= word(number, PASSED)
    }

    /// Whether all in front of a number have passed.
    fn is_next(&self, number: u64) -> bool {
        number.checked_sub(1).is_none_or(|before| self.has_passed(before))
    }

    /// The work of this number is done; its owner has later ones. Waits where a number a lap before has not passed.
    ///
    /// # Errors
    /// [`BrokenOff`].
    pub fn done(&self, number: u64) -> Result<(), BrokenOff> {
        self.say(number, DONE)
    }

    /// The work of this number is done, the last one of its owner: waits until it has passed.
    ///
    /// # Errors
    /// [`BrokenOff`] if a number was given up before this one has passed.
    pub fn finish(&self, number: u64) -> Result<(), BrokenOff> {
        self.say(number, WATCHED)?;
        for look in 0..LOOKS {
            if self.has_passed(number) {
                return Ok(());
            }
            if self.broken.load(Relaxed) {
                return Err(BrokenOff);
            }
            if look % LOOKS_IN_FRONT == LOOKS_IN_FRONT - 1 {
                self.pass_from(number);
            }
            hint::spin_loop();
        }
        self.sleep(number)
    }

    fn say(&self, number: u64, state: u64) -> Result<(), BrokenOff> {
        if let Some(before) = number.checked_sub(SLOTS as u64) {
            while !protocol_value!("in_order_laps", self.has_passed(before), true) {
                if self.broken.load(Acquire) {
                    return Err(BrokenOff);
                }
                thread::yield_now();
            }
        }
        self.slot(number).word.store(word(number, state), Ordering::Release);
        protocol_step!("in_order_done_without_fence", fence(Ordering::SeqCst));
        self.pass_from(number);
        Ok(())
    }

    /// Passes this number, if it is next, and those behind it that are done.
    fn pass_from(&self, number: u64) {
        if !self.is_next(number) {
            return;
        }
        let mut next = number;
        while self.pass(next, next - number > FAVOURS) {
            protocol_step!("in_order_passes_without_fence", fence(Ordering::SeqCst));
            next += 1;
        }
    }

    /// Passes a number that is next: false if it is not done, or has passed; or if it is `left` to its owner, who looks
    /// at it.
    fn pass(&self, number: u64, left: bool) -> bool {
        let slot = self.slot(number);
        let mut found = slot.word.load(Acquire);
        loop {
            let is_done = (word(number, DONE)..=word(number, ASLEEP)).contains(&found);
            if !is_done || (left && found == word(number, WATCHED)) {
                return false;
            }
            match slot.word.compare_exchange(found, word(number, PASSED), AcqRel, Acquire) {
                Ok(_) => break,
                Err(now) => found = now,
            }
        }
        if found == word(number, ASLEEP) {
            drop(protocol_value!("in_order_wakes_between", Some(slot.falling_asleep.lock()), None));
            protocol_step!("in_order_wakes_nobody", slot.woken.notify_one());
        }
        true
    }

    fn sleep(&self, number: u64) -> Result<(), BrokenOff> {
        let slot = self.slot(number);
        if slot.word.compare_exchange(word(number, WATCHED), word(number, ASLEEP), AcqRel, Acquire).is_ok() {
            protocol_step!("in_order_sleeps_without_fence", fence(Ordering::SeqCst));
            protocol_step!("in_order_sleeps_without_a_look", self.pass_from(number));
        }
        let mut falling_asleep = slot.falling_asleep.lock();
        loop {
            if self.has_passed(number) {
                return Ok(());
            }
            if self.broken.load(Acquire) {
                return Err(BrokenOff);
            }
            slot.woken.wait(&mut falling_asleep);
        }
    }

    /// A number will never be done. Who waits, or will wait, for a number that has not passed gets an error.
    pub fn break_off(&self) {
        self.broken.store(true, Ordering::Release);
        for slot in &self.slots {
            drop(slot.falling_asleep.lock());
            protocol_step!("in_order_breaks_silently", slot.woken.notify_one());
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn nobody_passes_before_those_in_front_of_it() {
        const THREADS: u64 = 8;
        const ROUNDS: u64 = 2000;
        let (order, passed) = (InOrder::new(), AtomicU64::new(0));
        let next = Mutex::new(0_u64);
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let (order, passed, next) = (&order, &passed, &next);
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        // Some take several, with others in between.
                        let numbers: Vec<u64> = (0..1 + (thread + round) % 3)
                            .map(|_| {
                                let mut next = next.lock();
                                *next += 1;
                                *next - 1
                            })
                            .collect();
                        if (round + thread) % 64 == 0 {
                            thread::yield_now();
                        }
                        let last = numbers[numbers.len() - 1];
                        for number in &numbers {
                            passed.fetch_add(1, Ordering::SeqCst);
                            let said = if *number == last { order.finish(last) } else { order.done(*number) };
                            assert!(said.is_ok());
                        }
                        assert!(passed.load(Ordering::SeqCst) > last, "some in front of {last} are not done");
                    }
                });
            }
        });
        let last = *next.lock() - 1;
        assert!(order.has_passed(last) && !order.has_passed(last + 1));
    }

    /// More than there are slots, by one owner.
    #[test]
    fn an_owner_may_have_any_number_of_them() {
        let order = InOrder::new();
        let all = 3 * SLOTS as u64;
        (0..all).for_each(|number| assert!(order.done(number).is_ok()));
        assert!(order.finish(all).is_ok());
    }

    #[test]
    fn what_comes_behind_a_number_that_is_given_up_gets_an_error() {
        let order = InOrder::new();
        assert!(order.done(0).is_ok());
        thread::scope(|scope| {
            let waiting = [2, 3].map(|number| {
                let order = &order;
                scope.spawn(move || order.finish(number))
            });
            thread::sleep(std::time::Duration::from_millis(20));
            order.break_off();
            for thread in waiting {
                assert!(thread.join().is_ok_and(|result| result == Err(BrokenOff)));
            }
        });
        assert_eq!(order.finish(4), Err(BrokenOff));
        assert_eq!(order.done(1 + SLOTS as u64), Err(BrokenOff), "its slot is never free");
    }
}
