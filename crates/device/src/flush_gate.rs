//! Shared flushes: one flush serves all threads that wait for one, and a failed one poisons the device for good.
//!
//! Locking rules: `state` is held for bookkeeping only, never during a flush. One flush runs at a time. A caller needs
//! a flush that *starts* after its call, because one that runs already may have passed its writes by; so it waits for
//! the running one and then either runs the next one itself or finds that another waiter is running it and joins.
//!
//! ```text
//!  idle --flush: started += 1--> running --ok: finished = started, wake all--> idle
//!                                   |
//!                                   +----error (or panic): cause is set, wake all--> poisoned (for good)
//!  any state --poison--> poisoned
//! ```
//! There is no edge out of poisoned.
//!
//! Flushes never overlap for a reason beyond economy: the kernel reports a lost write-back to one of two concurrent
//! fsyncs of a file, and the other says all is well.

use f2fs_sync::{
    Condvar, Mutex,
    atomic::{AtomicBool, Ordering},
    protocol_step, protocol_value,
};

use crate::{DeviceError, DeviceErrorKind};

/// Lets one flush run at a time, shares it among the threads that wait for one, and remembers a failure for good.
#[derive(Debug, Default)]
pub struct FlushGate {
    /// Mirrors `state.cause.is_some()`, for the check on each write.
    poisoned: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    running: bool,
    /// Flushes begun since the device was opened.
    started: u64,
    /// Flushes that ended well.
    finished: u64,
    cause: Option<DeviceErrorKind>,
}

impl FlushGate {
    /// A gate without poison.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Refuses when a flush has failed before; every write and discard asks.
    ///
    /// # Errors
    /// [`DeviceErrorKind::Poisoned`] with the error of that flush.
    pub fn check(&self) -> Result<(), DeviceErrorKind> {
        if self.poisoned.load(Ordering::Acquire) {
            return Err(self.state.lock().poisoned());
        }
        Ok(())
    }

    /// Poisons the device as a failed flush does; for a durable write that failed. The first cause stays.
    pub fn poison(&self, cause: &DeviceErrorKind) {
        self.poison_locked(&mut self.state.lock(), cause);
    }

    fn poison_locked(&self, state: &mut State, cause: &DeviceErrorKind) {
        state.cause.get_or_insert_with(|| cause.clone());
        self.poisoned.store(true, Ordering::Release);
    }

    /// Returns after a flush that began after this call, run by this thread with `run` or by another one.
    ///
    /// # Errors
    /// The error of `run`; [`DeviceErrorKind::Poisoned`] when a flush of another thread, or an earlier one, failed.
    pub fn flush(&self, run: impl FnOnce() -> Result<(), DeviceErrorKind>) -> Result<(), DeviceError> {
        let mut state = self.state.lock();
        let needed = state.started + protocol_value!("flush_gate_joins_running", 1, u64::from(!state.running));
        while state.running && state.cause.is_none() && state.finished < needed {
            self.changed.wait(&mut state);
        }
        if state.cause.is_some() {
            return Err(DeviceError::flush(state.poisoned()));
        }
        if state.finished >= needed {
            return Ok(());
        }
        state.running = true;
        state.started += 1;
        drop(state);
        let panicked = DeviceErrorKind::Io { errno: None, kind: std::io::ErrorKind::Other };
        let mut running = Running { gate: self, outcome: Err(panicked) };
        running.outcome = run();
        running.outcome.clone().map_err(DeviceError::flush)
    }
}

impl State {
    fn poisoned(&self) -> DeviceErrorKind {
        let unknown = DeviceErrorKind::Io { errno: None, kind: std::io::ErrorKind::Other };
        DeviceErrorKind::Poisoned { cause: Box::new(self.cause.clone().unwrap_or(unknown)) }
    }
}

/// Ends a running flush, also when it panics.
struct Running<'a> {
    gate: &'a FlushGate,
    outcome: Result<(), DeviceErrorKind>,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut state = self.gate.state.lock();
        state.running = false;
        match &self.outcome {
            Ok(()) => state.finished = state.started,
            Err(cause) => protocol_step!("flush_gate_forgets_failure", self.gate.poison_locked(&mut state, cause)),
        }
        drop(state);
        protocol_step!("flush_gate_wakes_waiters", self.gate.changed.notify_all());
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::{
        sync::{
            Barrier,
            atomic::{AtomicU64, AtomicUsize},
        },
        thread,
    };

    use super::*;

    #[test]
    fn a_flush_covers_what_was_written_before_it_and_is_shared() {
        const THREADS: usize = 8;
        const ROUNDS: usize = 50;
        let (gate, runs, barrier) = (FlushGate::new(), AtomicUsize::new(0), Barrier::new(THREADS));
        let (written, durable) = (AtomicU64::new(0), AtomicU64::new(0));
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for _ in 0..ROUNDS {
                        barrier.wait();
                        let mine = written.fetch_add(1, Ordering::SeqCst) + 1;
                        gate.flush(|| {
                            let seen = written.load(Ordering::SeqCst);
                            runs.fetch_add(1, Ordering::SeqCst);
                            thread::sleep(std::time::Duration::from_micros(200));
                            durable.fetch_max(seen, Ordering::SeqCst);
                            Ok(())
                        })
                        .unwrap();
                        assert!(durable.load(Ordering::SeqCst) >= mine);
                    }
                });
            }
        });
        let runs = runs.into_inner();
        assert!((ROUNDS..THREADS * ROUNDS / 2).contains(&runs), "{runs} flushes for {} calls", THREADS * ROUNDS);
    }

    #[test]
    fn a_panicking_flush_poisons() {
        let gate = FlushGate::new();
        gate.check().unwrap();
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| gate.flush(|| panic!("in the flush"))));
        assert!(panicked.is_err());
        assert!(matches!(gate.check(), Err(DeviceErrorKind::Poisoned { .. })));
        assert!(gate.flush(|| Ok(())).is_err());
    }

    #[test]
    fn the_first_cause_stays() {
        let gate = FlushGate::new();
        gate.poison(&DeviceErrorKind::from_errno(5));
        gate.poison(&DeviceErrorKind::from_errno(28));
        let cause = Box::new(DeviceErrorKind::from_errno(5));
        assert_eq!(gate.check(), Err(DeviceErrorKind::Poisoned { cause }));
    }
}
