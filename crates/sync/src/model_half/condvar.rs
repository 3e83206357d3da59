//! A condition variable that the backend schedules.

use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::{MutexGuard, backend};

/// A condition variable.
#[derive(Debug, Default)]
pub struct Condvar {
    model: backend::sync::Condvar,
    // How many wait, which the backend does not tell. Not an object of it: only one thread runs at a time.
    waiting: AtomicUsize,
}

impl Condvar {
    /// A condition variable with no waiter.
    pub fn new() -> Self {
        Condvar::default()
    }

    /// Releases the guard, waits for a notification, and takes the lock again.
    pub fn wait<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>) {
        guard.wait_with(|model| {
            self.waiting.fetch_add(1, Ordering::Relaxed);
            self.model.wait(model).unwrap_or_else(PoisonError::into_inner)
        });
    }

    /// Waits until `condition` says false.
    pub fn wait_while<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>, mut condition: impl FnMut(&mut T) -> bool) {
        while condition(&mut *guard) {
            self.wait(guard);
        }
    }

    /// Waits for a notification. Time does not pass in a model: it times out only if the timeout is zero, after others
    /// had the occasion to run.
    pub fn wait_for<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>, timeout: Duration) -> WaitTimeoutResult {
        if timeout.is_zero() {
            guard.step_aside();
            return WaitTimeoutResult(true);
        }
        self.wait(guard);
        WaitTimeoutResult(false)
    }

    /// Waits for a notification. Time does not pass in a model: it never times out.
    pub fn wait_until<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>, _deadline: Instant) -> WaitTimeoutResult {
        self.wait(guard);
        WaitTimeoutResult(false)
    }

    /// Wakes one waiter; whether there was one.
    pub fn notify_one(&self) -> bool {
        // Counted after the backend's own scheduling point, at which other threads may start to wait.
        self.model.notify_one();
        self.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |waiting| waiting.checked_sub(1)).is_ok()
    }

    /// Wakes all waiters; how many there were.
    pub fn notify_all(&self) -> usize {
        self.model.notify_all();
        self.waiting.swap(0, Ordering::Relaxed)
    }
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
