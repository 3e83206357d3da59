//! The gate that operations pass through and a checkpoint closes.
//!
//! # Rules
//!
//! - An operation *enters*; any number are inside at once. A thread that *closes* the gate waits until all have left,
//!   and is then alone until it opens the gate again. Entrants wait meanwhile.
//! - Entering and leaving an open gate writes one line, the reader count of this processor's slot, and reads one that
//!   is written only when a gate closes or opens.
//! - `state` is held while the gate changes hands, never while anybody is inside. Nothing else is locked under it. The
//!   flag `closed` is written only with it held.
//! - Entrants of a closed gate wait in `rooms`, with `state` released, for the opening that follows.
//!
//! # States
//!
//! ```text
//!             close                      last leave
//!   ┌──────┐ ───────────► ┌──────────┐ ───────────► ┌────────┐
//!   │ open │              │ draining │              │ closed │
//!   └──────┘              └──────────┘              └────────┘
//!      ▲  enter, leave       leave (enter waits)        │ (enter and close wait)
//!      └────────────────────────────────────────────────┘
//!                        drop of ClosedGate
//! ```
//!
//! There is no edge from draining back to open, and none from closed to draining: a second closer takes the way through
//! open, and only after everybody who waited to enter is inside. So neither closers nor entrants starve: an entrant
//! waits for the one closer that it met. A closer waits for the entrants that are inside, and for those that are let in
//! before it.
//!
//! # Why it is right
//!
//! Entering: *count up, fence, look at `closed`*. Closing: *set `closed`, fence, look at the counts*. Whichever fence
//! comes second sees the other's store: either the closer sees the count and waits, or the entrant sees the flag and
//! turns back. Leaving is the same pair: *count down, fence, look at `closed`*; either the closer's look sees the lower
//! count, or the leaver sees the flag and wakes the closer. It takes `state` before it does, so that the closer is not
//! between its look and its sleep. A slot that a closer has seen at zero stays without a guard: new ones turn back.
//!
//! # Nesting
//!
//! A thread that enters a gate it is already inside of deadlocks when a closer waits in between: the closer waits for
//! the first guard, the second entry for the closer. [`GateGuard::again`] is the way to have a second guard. Debug
//! builds panic instead of waiting, where the thread's own record shows the deadlock.

mod held;
mod rooms;

use std::fmt;

use crate::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use crate::atomic::{AtomicBool, AtomicUsize, fence};
use crate::{CachePadded, Condvar, Mutex, PerCore, protocol_step, protocol_value};
use held::Held;
use rooms::Rooms;

/// A gate: many inside, or one that closed it.
///
/// ```
/// use f2fs_sync::Gate;
///
/// let gate = Gate::new();
/// let operation = gate.enter();
/// drop(operation);
///
/// let checkpoint = gate.close();
/// assert!(gate.try_enter().is_none());
/// drop(checkpoint);
/// assert!(gate.try_enter().is_some());
/// ```
pub struct Gate {
    /// How many guards each slot has out.
    inside: PerCore<AtomicUsize>,
    /// A copy of `state.closed` that is read without the lock.
    closed: CachePadded<AtomicBool>,
    state: Mutex<State>,
    /// Entrants wait here until the gate is open.
    rooms: Rooms,
    /// How many of those who waited for the last closer are not inside yet. Closers wait until there are none.
    admitted: CachePadded<AtomicUsize>,
    /// The closer waits here until the counts are zero.
    drained: Condvar,
    /// Further closers wait here.
    turn: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// A closer drains the gate or has it.
    closed: bool,
    /// How many entrants wait for this closer to open.
    waiting: usize,
    /// How often the gate was opened.
    openings: u64,
}

impl Gate {
    /// An open gate with nobody inside.
    #[must_use]
    pub fn new() -> Self {
        Gate {
            inside: PerCore::new(|_| AtomicUsize::new(0)),
            closed: CachePadded::new(AtomicBool::new(false)),
            state: Mutex::new(State::default()),
            rooms: Rooms::new(),
            admitted: CachePadded::new(AtomicUsize::new(0)),
            drained: Condvar::new(),
            turn: Condvar::new(),
        }
    }

    /// Enters; waits while the gate is closed or somebody waits to have it.
    ///
    /// Everything that the last closer wrote is visible on return.
    ///
    /// # Deadlock
    ///
    /// The thread must not be inside already: see [`GateGuard::again`]. Debug builds panic if it would wait then.
    #[inline]
    pub fn enter(&self) -> GateGuard<'_> {
        let slot = self.inside.slot_index();
        self.count(slot).fetch_add(1, Relaxed);
        protocol_step!("gate_enter_fence", fence(SeqCst));
        if self.closed.load(Acquire) {
            self.wait_to_enter(slot);
        }
        GateGuard { gate: self, slot, held: Held::new(self) }
    }

    /// Enters if the gate is open and nobody waits to have it.
    #[inline]
    pub fn try_enter(&self) -> Option<GateGuard<'_>> {
        // Keeps a caller that tries again and again from disturbing the closer's counts.
        if self.closed.load(Relaxed) {
            return None;
        }
        let slot = self.inside.slot_index();
        self.count(slot).fetch_add(1, Relaxed);
        protocol_step!("gate_try_enter_fence", fence(SeqCst));
        if self.closed.load(protocol_value!("gate_try_enter_acquires", Acquire, Relaxed)) {
            self.leave(slot);
            return None;
        }
        Some(GateGuard { gate: self, slot, held: Held::new(self) })
    }

    /// Closes the gate: waits for its turn among closers, keeps new entrants out, and waits until everybody has left.
    ///
    /// Everything that was done inside is visible on return. Dropping what is returned opens the gate.
    ///
    /// # Deadlock
    ///
    /// The thread must not be inside. Debug builds panic if it is.
    pub fn close(&self) -> ClosedGate<'_> {
        Held::assert_none(self, "close a gate");
        let mut state = self.state.lock();
        while state.closed || self.admitted.load(Acquire) > 0 {
            self.turn.wait(&mut state);
        }
        state.closed = true;
        self.closed.store(true, Relaxed);
        protocol_step!("gate_close_fence", fence(SeqCst));
        for count in self.inside.iter() {
            while count.load(Acquire) != 0 {
                self.drained.wait(&mut state);
            }
        }
        ClosedGate { gate: self }
    }

    /// Whether somebody has closed the gate or waits to: a hint, it may have changed on return.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed.load(Relaxed)
    }

    fn count(&self, slot: usize) -> &AtomicUsize {
        // Slot indices come from `slot_index` of the same table.
        self.inside.get(slot).expect("a guard's slot is one of the gate's")
    }

    /// Counts down and wakes the closer, if there is one.
    #[inline]
    fn leave(&self, slot: usize) {
        let order = protocol_value!("gate_leave_releases", Release, Relaxed);
        self.count(slot).fetch_sub(1, order);
        protocol_step!("gate_leave_fence", fence(SeqCst));
        if self.closed.load(Relaxed) {
            self.wake_closer();
        }
    }

    #[cold]
    fn wake_closer(&self) {
        protocol_step!("gate_leave_wakes_under_lock", drop(self.state.lock()));
        self.drained.notify_one();
    }

    /// The rest of entering, for one who counted up and then saw the flag. The count is up on return, and the gate
    /// open.
    #[cold]
    fn wait_to_enter(&self, slot: usize) {
        let mut state = self.state.lock();
        if !state.closed {
            // It was opened meanwhile, and the next closer will see our count.
            return;
        }
        protocol_step!("gate_turn_back_counts_down", self.count(slot).fetch_sub(1, Relaxed));
        self.drained.notify_one();
        Held::assert_none(self, "wait at a gate");
        state.waiting += 1;
        let opening = state.openings + 1;
        drop(state);
        self.rooms.wait_for(opening);
        // A closer that sees this one admitted sees its count.
        self.count(slot).fetch_add(1, Relaxed);
        let order = protocol_value!("gate_admitted_without_its_count", AcqRel, Relaxed);
        if self.admitted.fetch_sub(1, order) == 1 {
            // A closer is not between its look and its sleep.
            protocol_step!("gate_turn_passed_without_lock", drop(self.state.lock()));
            protocol_step!("gate_turn_not_passed", self.turn.notify_one());
        }
    }

    fn open(&self) {
        let mut state = self.state.lock();
        state.closed = false;
        let order = protocol_value!("gate_open_releases", Release, Relaxed);
        self.closed.store(false, order);
        state.openings += 1;
        let (opening, admitted) = (state.openings, std::mem::take(&mut state.waiting));
        // Those who waited for the closer before have come in: this one waited for them.
        self.admitted.store(admitted, Relaxed);
        drop(state);
        if admitted > 0 {
            self.rooms.tell(opening);
        } else {
            self.turn.notify_one();
        }
    }
}

impl Default for Gate {
    fn default() -> Self {
        Gate::new()
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").field("closed", &self.is_closed()).finish_non_exhaustive()
    }
}

/// Being inside a [`Gate`]; dropping it leaves. It may be sent to another thread and dropped there: see
/// [`unbind`](GateGuard::unbind).
#[must_use = "dropping the guard leaves the gate at once"]
pub struct GateGuard<'a> {
    gate: &'a Gate,
    slot: usize,
    held: Held,
}

impl<'a> GateGuard<'a> {
    /// A second guard of the same gate. Never waits: while this one is out, the gate cannot be had by a closer.
    pub fn again(&self) -> GateGuard<'a> {
        // In this guard's slot. A closer may have looked at another one already.
        let slot = protocol_value!("gate_again_same_slot", self.slot, self.slot ^ 1);
        self.gate.count(slot).fetch_add(1, Relaxed);
        GateGuard { gate: self.gate, slot, held: Held::new(self.gate) }
    }

    /// Takes the guard out of this thread's record of the gates it is inside of, for one that goes to another thread.
    ///
    /// Only debug builds keep the record. A guard that leaves its thread without this call makes them panic wrongly if
    /// the thread then waits at the gate.
    pub fn unbind(mut self) -> Self {
        self.held.forget(self.gate);
        self
    }
}

impl Drop for GateGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.held.forget(self.gate);
        self.gate.leave(self.slot);
    }
}

impl fmt::Debug for GateGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GateGuard").field("slot", &self.slot).finish_non_exhaustive()
    }
}

/// Having a [`Gate`] closed, with nobody inside; dropping it opens the gate. It may be dropped on another thread.
#[must_use = "dropping this opens the gate at once"]
pub struct ClosedGate<'a> {
    gate: &'a Gate,
}

impl Drop for ClosedGate<'_> {
    fn drop(&mut self) {
        self.gate.open();
    }
}

impl fmt::Debug for ClosedGate<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClosedGate").finish_non_exhaustive()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn every_guard_is_counted_until_it_goes() {
        let gate = Gate::new();
        let count = || gate.inside.iter().map(|count| count.load(Relaxed)).sum::<usize>();
        let guards = [gate.enter(), gate.try_enter().expect("it is open")];
        let again = guards[1].again();
        assert_eq!(count(), 3);
        drop(guards);
        assert_eq!(count(), 1);
        drop(again);
        assert_eq!(count(), 0);
        let closed = gate.close();
        assert!(gate.try_enter().is_none());
        assert_eq!(count(), 0, "who turns back is not inside");
        drop(closed);
    }

    /// Between its look at the flag and the lock, the gate was opened.
    #[test]
    fn who_finds_the_gate_open_after_all_is_inside() {
        let gate = Gate::new();
        gate.count(0).fetch_add(1, Relaxed);
        gate.wait_to_enter(0);
        assert_eq!(gate.count(0).load(Relaxed), 1);
        assert_eq!(gate.state.lock().waiting, 0);
    }

    /// The closer had seen its count.
    #[test]
    fn who_turns_back_wakes_the_closer() {
        let gate = Gate::new();
        gate.count(0).fetch_add(1, Relaxed);
        std::thread::scope(|scope| {
            scope.spawn(|| drop(gate.close()));
            // From then on the closer has the lock until it waits.
            while !gate.is_closed() {
                std::thread::yield_now();
            }
            gate.wait_to_enter(0);
        });
        assert_eq!(gate.count(0).load(Relaxed), 1);
    }
}
