//! One completion queue for many waiting threads, without a thread of its own.
//!
//! Locking rules: one lock holds the requests in flight and whether somebody reaps. It is never held while a thread
//! waits for the device. **While somebody reaps, nobody else takes completions from the queue**: the reaper sleeps
//! until one arrives, and if another thread took that one, it might sleep forever. Submitting needs the lock only to
//! enter requests in the table.
//!
//! ```text
//!  waiter --nobody reaps--> reaper: unlock, sleep for a completion, lock, drain all, stop reaping, wake the others --+
//!    ^  |                                                                                                            |
//!    |  +--somebody reaps--> asleep on the condition --woken--+                                                      |
//!    +---- not ready -----------------------------------------+------------------------------------------------------+
//!    +---- ready: leave with the result
//! ```
//! A thread that stops reaping wakes all others. So as long as a request is not finished, one waiting thread reaps.

use std::{
    fmt,
    ops::{Deref, DerefMut},
};

use f2fs_sync::{Condvar, Mutex, MutexGuard, protocol_step, protocol_value};

/// A table `T` of requests in flight, and the right to take completions for it, which waiting threads hand on.
#[derive(Default)]
pub struct Handover<T> {
    state: Mutex<State<T>>,
    /// Somebody stopped reaping.
    changed: Condvar,
}

#[derive(Default)]
struct State<T> {
    table: T,
    reaping: bool,
    asleep: usize,
}

impl<T> Handover<T> {
    /// Nobody reaps yet.
    pub fn new(table: T) -> Self {
        Self { state: Mutex::new(State { table, reaping: false, asleep: 0 }), changed: Condvar::new() }
    }

    /// Locks the table.
    pub fn lock(&self) -> HandoverGuard<'_, T> {
        HandoverGuard { handover: self, state: self.state.lock() }
    }
}

impl<T> fmt::Debug for Handover<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handover").finish_non_exhaustive()
    }
}

/// The locked table of a [`Handover`].
pub struct HandoverGuard<'a, T> {
    handover: &'a Handover<T>,
    state: MutexGuard<'a, State<T>>,
}

impl<T> HandoverGuard<'_, T> {
    /// Waits until `ready` finds what the caller waits for.
    ///
    /// Without the lock, `sleep` returns when the queue holds a completion (or for no reason at all); with it, `drain`
    /// enters all completions of the queue in the table. Neither may panic.
    pub fn wait<R>(
        mut self,
        mut ready: impl FnMut(&mut T) -> Option<R>,
        mut sleep: impl FnMut(),
        mut drain: impl FnMut(&mut T),
    ) -> R {
        loop {
            if let Some(result) = ready(&mut self.state.table) {
                return result;
            }
            if self.state.reaping {
                self.state.asleep += 1;
                self.handover.changed.wait(&mut self.state);
                self.state.asleep -= 1;
                continue;
            }
            self.state.reaping = true;
            let handover = self.handover;
            drop(self);
            sleep();
            self = handover.lock();
            drain(&mut self.state.table);
            self.state.reaping = false;
            if self.state.asleep > 0 {
                protocol_step!(
                    "handover_no_wake",
                    protocol_value!(
                        "handover_wakes_one",
                        {
                            handover.changed.notify_all();
                        },
                        {
                            handover.changed.notify_one();
                        }
                    )
                );
            }
        }
    }

    /// Drains the queue unless somebody reaps, who will do it.
    pub fn try_drain(&mut self, drain: impl FnOnce(&mut T)) {
        if protocol_value!("handover_takes_from_reaper", !self.state.reaping, true) {
            drain(&mut self.state.table);
        }
    }
}

impl<T> Deref for HandoverGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.state.table
    }
}

impl<T> DerefMut for HandoverGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.state.table
    }
}

impl<T> fmt::Debug for HandoverGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandoverGuard").finish_non_exhaustive()
    }
}
