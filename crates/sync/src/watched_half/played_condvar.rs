//! A condition variable on which virtual cores wait.

use std::panic::Location;
use std::time::{Duration, Instant};

use super::{MutexGuard, Site};
use crate::manycore::core;

/// A condition variable.
#[derive(Debug, Default)]
pub struct Condvar {
    condvar: parking_lot::Condvar,
}

/// Whether a timed wait ended by its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// Whether the time ran out.
    pub fn timed_out(&self) -> bool {
        self.0
    }
}

impl Condvar {
    /// A condition variable with no waiter.
    pub const fn new() -> Self {
        Condvar { condvar: parking_lot::Condvar::new() }
    }

    /// Releases the guard, waits for a notification, and takes the lock again.
    #[track_caller]
    pub fn wait<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>) {
        self.waited(guard, None);
    }

    /// Waits until `condition` says false.
    #[track_caller]
    pub fn wait_while<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>, mut condition: impl FnMut(&mut T) -> bool) {
        while condition(&mut *guard) {
            self.wait(guard);
        }
    }

    /// Waits for a notification, or until so much time is over.
    #[track_caller]
    pub fn wait_for<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>, timeout: Duration) -> WaitTimeoutResult {
        self.waited(guard, Some(timeout))
    }

    /// Waits for a notification, or until then.
    #[track_caller]
    pub fn wait_until<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>, deadline: Instant) -> WaitTimeoutResult {
        self.waited(guard, Some(deadline.saturating_duration_since(Instant::now())))
    }

    #[track_caller]
    fn waited<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>, timeout: Option<Duration>) -> WaitTimeoutResult {
        if core::running().is_none() {
            let guard = guard.guard_mut();
            return WaitTimeoutResult(match timeout {
                Some(timeout) => self.condvar.wait_for(guard, timeout).timed_out(),
                None => {
                    self.condvar.wait(guard);
                    false
                }
            });
        }
        super::written(self, "Condvar");
        // On the queue before the lock is free, so that no notification is missed.
        let ticket = core::enqueue(self.address());
        let at = Location::caller();
        let site = Site { file: at.file(), line: at.line(), what: "Condvar" };
        WaitTimeoutResult(guard.without(|| core::waiting(site, || core::wait(self.address(), ticket, timeout))))
    }

    /// Wakes one waiter; whether there was one.
    #[track_caller]
    pub fn notify_one(&self) -> bool {
        super::read(self, "Condvar");
        if core::running().is_some() { core::notify(self.address(), 1) > 0 } else { self.condvar.notify_one() }
    }

    /// Wakes all waiters; how many there were.
    #[track_caller]
    pub fn notify_all(&self) -> usize {
        super::read(self, "Condvar");
        if core::running().is_some() { core::notify(self.address(), usize::MAX) } else { self.condvar.notify_all() }
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}
