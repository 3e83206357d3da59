//! Condition variables in the builds of the fuzz targets.
//!
//! Locking rules: none of its own.

use std::time::{Duration, Instant};

use parking_lot::{MutexGuard, WaitTimeoutResult};

use super::standing;

/// `parking_lot`'s, and the other thread of a meeting is told who waits here: else it would wait for a thread that
/// waits, until its time is over.
#[derive(Debug, Default)]
pub struct Condvar(parking_lot::Condvar);

impl Condvar {
    /// Nobody waits.
    pub const fn new() -> Condvar {
        Condvar(parking_lot::Condvar::new())
    }

    /// Wakes one that waits; says whether there was one.
    pub fn notify_one(&self) -> bool {
        self.0.notify_one()
    }

    /// Wakes all that wait; says how many there were.
    pub fn notify_all(&self) -> usize {
        self.0.notify_all()
    }

    /// Waits until it is woken, with the lock released meanwhile.
    pub fn wait<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>) {
        standing(|| self.0.wait(guard));
    }

    /// Waits as long as this holds of the value.
    pub fn wait_while<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>, holds: impl FnMut(&mut T) -> bool) {
        standing(|| self.0.wait_while(guard, holds));
    }

    /// Waits until it is woken, for so long at most.
    pub fn wait_for<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>, time: Duration) -> WaitTimeoutResult {
        standing(|| self.0.wait_for(guard, time))
    }

    /// Waits until it is woken, until then at most.
    pub fn wait_until<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>, end: Instant) -> WaitTimeoutResult {
        standing(|| self.0.wait_until(guard, end))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Mutex, point, two};
    use super::*;

    #[test]
    fn nobody_waits_for_one_that_waits_to_be_woken() {
        let (lock, woken) = (Mutex::new(false), Condvar::new());
        let wait = || {
            let mut is_done = lock.lock();
            while !*is_done {
                woken.wait(&mut is_done);
            }
        };
        let start = Instant::now();
        // The second one waits at each of its points for points of the first one, which passes none meanwhile.
        let wake = || {
            (0..500).for_each(|_| point());
            *lock.lock() = true;
            woken.notify_all();
        };
        two(&[200; 2000], wait, wake);
        assert!(start.elapsed() < Duration::from_secs(60));
    }
}
