//! How much of the threads' time goes into scans for free NIDs.

use std::time::{Duration, Instant};

use f2fs_sync::atomic::{AtomicU64, Ordering};
#[cfg(feature = "baselines")]
use f2fs_sync::{Mutex, MutexGuard};

/// Counts of a table's work so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct NatStats {
    /// Blocks of entries in memory.
    pub cached_blocks: usize,
    /// Entries in memory: all of those blocks; where a policy counts as Linux does, those that were looked up, changed
    /// or handed out.
    pub cached_entries: usize,
    /// NIDs in the list of free NIDs (under `sharded`, which has none: 0).
    pub listed: usize,
    /// Scans for free NIDs (under `sharded`: refills of a lane).
    pub scans: u64,
    /// Free NIDs to which no hint of `sharded` led, so that a look at every block had to find them. That is slow, not
    /// wrong: a hint may be out of sight for the moment in which another thread moves it. Among threads that do not
    /// meet, 0.
    pub missed_hints: u64,
    /// Time that threads spent in scans, or waiting for one to end, added up over all threads.
    pub scan_time: Duration,
}

/// The counters. Written by scans only, so they cost nothing where no scan is.
#[derive(Debug)]
pub(crate) struct ScanStats {
    scans: AtomicU64,
    missed: AtomicU64,
    nanoseconds: AtomicU64,
}

impl ScanStats {
    pub(crate) fn new() -> ScanStats {
        ScanStats { scans: AtomicU64::new(0), missed: AtomicU64::new(0), nanoseconds: AtomicU64::new(0) }
    }

    /// Locks; if that means waiting, the time counts.
    #[cfg(feature = "baselines")]
    pub(crate) fn wait<'a, T>(&self, lock: &'a Mutex<T>) -> MutexGuard<'a, T> {
        if let Some(guard) = lock.try_lock() {
            return guard;
        }
        let start = Instant::now();
        let guard = lock.lock();
        self.add(start);
        guard
    }

    /// A scan begins, or the wait for it; it ends when the guard is dropped.
    pub(crate) fn scan(&self) -> Scan<'_> {
        self.scans.fetch_add(1, Ordering::Relaxed);
        self.time()
    }

    /// A search found a NID to which no hint led.
    pub(crate) fn missed(&self) {
        self.missed.fetch_add(1, Ordering::Relaxed);
    }

    /// Another stage of a scan begins, or the wait for it.
    pub(crate) fn time(&self) -> Scan<'_> {
        Scan { stats: self, start: Instant::now() }
    }

    fn add(&self, start: Instant) {
        let spent = start.elapsed().as_nanos() as u64;
        self.nanoseconds.fetch_add(spent, Ordering::Relaxed);
    }

    pub(crate) fn read(&self, cached_blocks: usize, cached_entries: usize, listed: usize) -> NatStats {
        NatStats {
            cached_blocks,
            cached_entries,
            listed,
            scans: self.scans.load(Ordering::Relaxed),
            missed_hints: self.missed.load(Ordering::Relaxed),
            scan_time: Duration::from_nanos(self.nanoseconds.load(Ordering::Relaxed)),
        }
    }
}

/// A scan that runs.
#[derive(Debug)]
pub(crate) struct Scan<'a> {
    stats: &'a ScanStats,
    start: Instant,
}

impl Drop for Scan<'_> {
    fn drop(&mut self) {
        self.stats.add(self.start);
    }
}
