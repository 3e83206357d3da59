//! A condition variable whose word is on record.

use std::time::{Duration, Instant};

use super::{MutexGuard, WaitTimeoutResult, Word};

/// A condition variable.
#[derive(Debug, Default)]
pub struct Condvar {
    condvar: parking_lot::Condvar,
}

impl Condvar {
    /// A condition variable with no waiter.
    pub const fn new() -> Self {
        Condvar { condvar: parking_lot::Condvar::new() }
    }

    /// Releases the guard, waits for a notification, and takes the lock again.
    #[track_caller]
    pub fn wait<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>) {
        let _word = self.written();
        self.condvar.wait(guard.guard_mut());
    }

    /// Waits until `condition` says false.
    #[track_caller]
    pub fn wait_while<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>, condition: impl FnMut(&mut T) -> bool) {
        let _word = self.written();
        self.condvar.wait_while(guard.guard_mut(), condition);
    }

    /// Waits for a notification, or until so much time is over.
    #[track_caller]
    pub fn wait_for<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>, timeout: Duration) -> WaitTimeoutResult {
        let _word = self.written();
        self.condvar.wait_for(guard.guard_mut(), timeout)
    }

    /// Waits for a notification, or until then.
    #[track_caller]
    pub fn wait_until<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>, deadline: Instant) -> WaitTimeoutResult {
        let _word = self.written();
        self.condvar.wait_until(guard.guard_mut(), deadline)
    }

    /// Wakes one waiter; whether there was one. Without one nothing is written.
    #[track_caller]
    pub fn notify_one(&self) -> bool {
        let woken = self.condvar.notify_one();
        if woken {
            drop(self.written());
        }
        woken
    }

    /// Wakes all waiters; how many there were. Without one nothing is written.
    #[track_caller]
    pub fn notify_all(&self) -> usize {
        let woken = self.condvar.notify_all();
        if woken > 0 {
            drop(self.written());
        }
        woken
    }

    #[track_caller]
    fn written(&self) -> Word {
        Word::written(self, "Condvar")
    }
}
