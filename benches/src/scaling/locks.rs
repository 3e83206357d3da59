//! Counters and locks whose behaviour on several cores is known.

use f2fs_sync::atomic::AtomicBool;
use f2fs_sync::atomic::AtomicU64;
use f2fs_sync::atomic::Ordering::{Acquire, Relaxed, Release};
use f2fs_sync::{CachePadded, Mutex, PerCore, RwLock, hint};

use super::{Work, Workload};

/// One of each.
pub(super) struct Locks {
    workload: Workload,
    counter: CachePadded<AtomicU64>,
    padded: PerCore<AtomicU64>,
    spin: CachePadded<AtomicBool>,
    mutex: CachePadded<Mutex<u64>>,
    lock: CachePadded<RwLock<u64>>,
}

impl Locks {
    pub(super) fn new(workload: Workload) -> Locks {
        Locks {
            workload,
            counter: CachePadded::default(),
            padded: PerCore::with_slots(128, |_| AtomicU64::new(0)),
            spin: CachePadded::default(),
            mutex: CachePadded::default(),
            lock: CachePadded::default(),
        }
    }
}

impl Work for Locks {
    fn operation(&self, core: usize, _: u64) {
        match self.workload {
            Workload::Counter => _ = self.counter.fetch_add(1, Relaxed),
            Workload::Padded => _ = self.padded.get(core).map(|own| own.fetch_add(1, Relaxed)),
            Workload::Spin => {
                while self.spin.swap(true, Acquire) {
                    while self.spin.load(Relaxed) {
                        hint::spin_loop();
                    }
                }
                self.counter.fetch_add(1, Relaxed);
                self.spin.store(false, Release);
            }
            Workload::Mutex => *self.mutex.lock() += 1,
            _ => assert_eq!(*self.lock.read(), 0),
        }
    }
}
