//! What wakes flushers before their time: many pages became dirty.
//!
//! # Locking
//!
//! One mutex, for the number of alarms; last in every order. Writers take it once in [`EVERY`] pages.

use core::time::Duration;

use f2fs_sync::atomic::{AtomicU64, Ordering};
use f2fs_sync::{Condvar, Mutex, PerCore};

/// Pages that become dirty on one processor between two alarms: 4 MiB.
const EVERY: u64 = 1024;

/// An alarm of one page cache.
#[derive(Debug)]
pub(crate) struct Alarm {
    /// Pages that became dirty since the last alarm. A count that another thread of the processor overwrites only
    /// delays one.
    dirtied: PerCore<AtomicU64>,
    /// Pages between two alarms.
    every: u64,
    rung: Mutex<u64>,
    wake: Condvar,
    /// Flushers that wait for it, or work.
    heard_by: AtomicU64,
}

impl Alarm {
    /// For a cache with so many dirty pages at most.
    pub(super) fn new(most_dirty: u64) -> Alarm {
        Alarm {
            dirtied: PerCore::new(|_| AtomicU64::new(0)),
            every: (most_dirty / 16).clamp(1, EVERY),
            rung: Mutex::new(0),
            wake: Condvar::new(),
            heard_by: AtomicU64::new(0),
        }
    }

    /// Pages became dirty.
    pub(super) fn count(&self, pages: u64) {
        if !self.is_heard() {
            return;
        }
        let dirtied = self.dirtied.slot();
        let sum = dirtied.load(Ordering::Relaxed) + pages;
        if sum < self.every {
            dirtied.store(sum, Ordering::Relaxed);
        } else {
            dirtied.store(0, Ordering::Relaxed);
            self.ring();
        }
    }

    /// Wakes all who wait.
    pub(crate) fn ring(&self) {
        *self.rung.lock() += 1;
        self.wake.notify_all();
    }

    /// Waits for an alarm after those that were `heard`, or until the time is over; whether there was one.
    pub(crate) fn wait(&self, heard: &mut u64, time: Duration) -> bool {
        let mut rung = self.rung.lock();
        if *rung == *heard {
            let _ = self.wake.wait_for(&mut rung, time);
        }
        core::mem::replace(heard, *rung) != *rung
    }

    /// Whether somebody hears it.
    pub(crate) fn is_heard(&self) -> bool {
        self.heard_by.load(Ordering::Relaxed) != 0
    }

    /// Somebody listens from now on.
    pub(crate) fn listen(&self) {
        self.heard_by.fetch_add(1, Ordering::Relaxed);
    }

    /// One who listened stops.
    pub(crate) fn stop_listening(&self) {
        self.heard_by.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn who_waits_knows_an_alarm_from_the_end_of_the_time() {
        let (alarm, mut heard) = (Alarm::new(1 << 20), 0);
        alarm.ring();
        assert!(alarm.wait(&mut heard, Duration::from_secs(3600)));
        assert!(!alarm.wait(&mut heard, Duration::from_millis(1)));
    }

    #[test]
    fn without_an_alarm_it_waits_as_long_as_it_should() {
        let (alarm, mut heard, time) = (Alarm::new(1 << 20), 0, Duration::from_millis(20));
        // A condition variable may wake without a reason, but not always.
        let waits = (0..10).any(|_| {
            let begin = std::time::Instant::now();
            assert!(!alarm.wait(&mut heard, time));
            begin.elapsed() >= time
        });
        assert!(waits);
    }

    /// Many pages make few alarms, and none is lost for good, whichever processors the pages become dirty on.
    #[test]
    fn it_rings_once_in_so_many_pages() {
        let alarm = Alarm::new(800);
        let slots = alarm.dirtied.slots() as u64;
        let rings = || *alarm.rung.lock();
        alarm.count(1000);
        assert_eq!(rings(), 0, "nobody listens");
        alarm.listen();
        alarm.count(49);
        assert_eq!(rings(), 0);
        let (mut pages, calls) = (49, 100 * slots);
        for _ in 0..calls {
            alarm.count(30);
            pages += 30;
        }
        assert!(rings() * 50 <= pages, "{} alarms for {pages} pages", rings());
        assert!(rings() * 60 + slots * 60 >= pages, "{} alarms for {pages} pages", rings());
        let before = rings();
        alarm.count(50);
        assert_eq!(rings(), before + 1);
        alarm.stop_listening();
        alarm.count(1000);
        assert!(!alarm.is_heard() && rings() == before + 1);
    }
}
