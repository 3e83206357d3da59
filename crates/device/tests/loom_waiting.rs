//! Models of the flush gate and of the handover.
#![cfg(loom)]

// mutant: flush_gate_joins_running, killed by: a_flush_covers_what_came_before_it
// mutant: flush_gate_wakes_waiters, killed by: three_flushes_end
// mutant: flush_gate_forgets_failure, killed by: a_failed_flush_is_known_to_all
// mutant: handover_no_wake, killed by: each_waiter_gets_its_completion
// mutant: handover_wakes_one, killed by: of_three_waiters_one_reaps_for_all
// mutant: handover_takes_from_reaper, killed by: a_poller_leaves_the_reaper_its_completion

use std::collections::VecDeque;

use f2fs_device::{DeviceErrorKind, FlushGate, Handover};
use f2fs_sync::atomic::{AtomicUsize, Ordering::SeqCst};
use f2fs_sync::{Arc, Condvar, Mutex, model, thread};

/// A disk with a cache: a flush makes durable what had been written when it began.
#[derive(Default)]
struct Disk {
    gate: FlushGate,
    written: AtomicUsize,
    durable: AtomicUsize,
}

impl Disk {
    fn write_and_flush(&self, bit: usize) {
        self.written.fetch_add(bit, SeqCst);
        let flushed = self.gate.flush(|| {
            let covered = self.written.load(SeqCst);
            thread::yield_now();
            self.durable.store(covered, SeqCst);
            Ok(())
        });
        flushed.expect("the disk does not fail");
        assert_ne!(self.durable.load(SeqCst) & bit, 0, "a flush returned before the write was durable");
    }
}

fn flushes(writers: usize) {
    let disk = Arc::new(Disk::default());
    let others: Vec<_> = (1..writers)
        .map(|i| {
            let disk = Arc::clone(&disk);
            thread::spawn(move || disk.write_and_flush(1 << i))
        })
        .collect();
    disk.write_and_flush(1);
    for other in others {
        other.join().expect("the thread does not panic");
    }
}

#[test]
fn a_flush_covers_what_came_before_it() {
    model::exhaustive("a_flush_covers_what_came_before_it", || flushes(2));
}

#[test]
fn three_flushes_end() {
    model::bounded("three_flushes_end", 2, || flushes(3));
}

#[test]
fn a_failed_flush_is_known_to_all() {
    model::exhaustive("a_failed_flush_is_known_to_all", || {
        let gate = Arc::new(FlushGate::new());
        // The kernel tells one caller of a lost write, and then forgets it.
        let told = Arc::new(AtomicUsize::new(0));
        let flush = |gate: &FlushGate, told: &AtomicUsize| {
            gate.flush(|| match told.fetch_add(1, SeqCst) {
                0 => Err(DeviceErrorKind::from_errno(5)),
                _ => Ok(()),
            })
        };
        let other = {
            let (gate, told) = (Arc::clone(&gate), Arc::clone(&told));
            thread::spawn(move || flush(&gate, &told).is_err())
        };
        assert!(flush(&gate, &told).is_err());
        assert!(other.join().expect("the thread does not panic"), "a flush succeeded though a write was lost");
        assert!(gate.check().is_err());
    });
}

/// A completion queue; sleeping on it when nothing will come is a deadlock, which loom reports.
#[derive(Default)]
struct Queue {
    completions: Mutex<VecDeque<usize>>,
    arrived: Condvar,
}

impl Queue {
    fn complete(&self, id: usize) {
        self.completions.lock().push_back(id);
        self.arrived.notify_one();
    }

    fn sleep(&self) {
        let mut completions = self.completions.lock();
        while completions.is_empty() {
            self.arrived.wait(&mut completions);
        }
    }

    fn drain(&self, finished: &mut Vec<usize>) {
        finished.extend(self.completions.lock().drain(..));
    }
}

#[derive(Default)]
struct Ring {
    handover: Handover<Vec<usize>>,
    queue: Queue,
}

fn take(finished: &mut Vec<usize>, id: usize) -> Option<()> {
    let at = finished.iter().position(|&finished| finished == id)?;
    finished.swap_remove(at);
    Some(())
}

impl Ring {
    fn wait(&self, id: usize) {
        self.handover.lock().wait(
            |finished| take(finished, id),
            || self.queue.sleep(),
            |finished| self.queue.drain(finished),
        );
    }
}

#[test]
fn each_waiter_gets_its_completion() {
    model::bounded("each_waiter_gets_its_completion", 3, || {
        let ring = Arc::new(Ring::default());
        // The other thread's request finishes when this one submits: either may have to reap for both.
        let other = {
            let ring = Arc::clone(&ring);
            thread::spawn(move || ring.wait(1))
        };
        ring.queue.complete(2);
        ring.queue.complete(1);
        ring.wait(2);
        other.join().expect("the thread does not panic");
        assert!(ring.handover.lock().is_empty());
    });
}

#[test]
fn of_three_waiters_one_reaps_for_all() {
    // All three completions are there: one drain finds those of two sleepers, none of whom wakes the other.
    model::bounded("of_three_waiters_one_reaps_for_all", 2, || {
        let ring = Arc::new(Ring::default());
        for id in 0..3 {
            ring.queue.complete(id);
        }
        let others = [1, 2].map(|id| {
            let ring = Arc::clone(&ring);
            thread::spawn(move || ring.wait(id))
        });
        ring.wait(0);
        for other in others {
            other.join().expect("the thread does not panic");
        }
        assert!(ring.handover.lock().is_empty());
    });
}

#[test]
fn a_poller_leaves_the_reaper_its_completion() {
    model::exhaustive("a_poller_leaves_the_reaper_its_completion", || {
        let ring = Arc::new(Ring::default());
        ring.queue.complete(1);
        let waiter = {
            let ring = Arc::clone(&ring);
            thread::spawn(move || ring.wait(1))
        };
        let mut table = ring.handover.lock();
        table.try_drain(|finished| ring.queue.drain(finished));
        drop(table);
        waiter.join().expect("the thread does not panic");
    });
}
