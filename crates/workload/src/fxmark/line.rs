//! The start line: workers prepare, wait here, and are released together.
//!
//! ```text
//!   worker:   prepare --arrive--> waiting --(released)--> work --> done
//!                       |            |
//!                       | failed     +--(called off)--> done
//! ```
//!
//! # Locking rules
//!
//! One lock over the counts, one condition for both directions. A worker that ends without arriving, because it failed
//! or panicked, is counted by its [`Arrival`]'s drop, so the starter never waits for it.

use f2fs::sync::{Condvar, Mutex};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Preparing,
    Released,
    CalledOff,
}

#[derive(Debug)]
struct Counts {
    arrived: usize,
    failed: bool,
    state: State,
}

/// Where the workers of one measurement wait for each other.
#[derive(Debug)]
pub(crate) struct StartLine {
    counts: Mutex<Counts>,
    changed: Condvar,
}

/// A worker's duty to arrive.
#[derive(Debug)]
pub(crate) struct Arrival<'a> {
    line: &'a StartLine,
    arrived: bool,
}

impl StartLine {
    pub(crate) fn new() -> StartLine {
        let counts = Counts { arrived: 0, failed: false, state: State::Preparing };
        StartLine { counts: Mutex::new(counts), changed: Condvar::new() }
    }

    /// A worker begins to prepare.
    pub(crate) fn worker(&self) -> Arrival<'_> {
        Arrival { line: self, arrived: false }
    }

    /// Waits until so many workers have arrived; tells whether none has failed.
    pub(crate) fn all_ready(&self, workers: usize) -> bool {
        let mut counts = self.counts.lock();
        while counts.arrived < workers {
            self.changed.wait(&mut counts);
        }
        !counts.failed
    }

    /// Lets the workers go: to work, or home.
    pub(crate) fn release(&self, work: bool) {
        self.counts.lock().state = if work { State::Released } else { State::CalledOff };
        self.changed.notify_all();
    }
}

impl Arrival<'_> {
    /// Waits for the release; tells whether there is work to do.
    pub(crate) fn arrive(mut self) -> bool {
        self.arrived = true;
        let mut counts = self.line.counts.lock();
        counts.arrived += 1;
        self.line.changed.notify_all();
        while counts.state == State::Preparing {
            self.line.changed.wait(&mut counts);
        }
        counts.state == State::Released
    }
}

impl Drop for Arrival<'_> {
    fn drop(&mut self) {
        if !self.arrived {
            let mut counts = self.line.counts.lock();
            counts.arrived += 1;
            counts.failed = true;
            self.line.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(failing: usize) -> (bool, usize) {
        let line = StartLine::new();
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..4)
                .map(|worker| {
                    let arrival = line.worker();
                    scope.spawn(move || worker >= failing && arrival.arrive())
                })
                .collect();
            let ready = line.all_ready(4);
            line.release(ready);
            let worked = workers.into_iter().filter_map(|worker| worker.join().ok()).filter(|worked| *worked).count();
            (ready, worked)
        })
    }

    #[test]
    fn all_work_or_none() {
        assert_eq!(run(0), (true, 4));
        assert_eq!(run(1), (false, 0));
        assert_eq!(run(4), (false, 0));
    }
}
