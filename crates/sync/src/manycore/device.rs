//! A device with a rate and a latency.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::core;

/// A device that serves requests one after the other at a rate, and each after a latency.
#[derive(Debug)]
pub struct Device {
    /// Picoseconds from one request to the next.
    interval: u64,
    /// Picoseconds of a request that comes alone.
    latency: u64,
    /// When the next one can be served.
    next: AtomicU64,
}

impl Device {
    /// A device of so many requests a second.
    #[must_use]
    pub fn new(rate: u64, latency: Duration) -> Device {
        let latency = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX).saturating_mul(super::PICOSECONDS);
        Device { interval: 1_000_000_000_000 / rate.max(1), latency, next: AtomicU64::new(0) }
    }

    /// A request: the core waits for its end. Outside of a run nothing is waited for.
    pub fn request(&self) {
        let Some(now) = core::now_if_running() else { return };
        let start = self.next.load(Ordering::Relaxed).max(now);
        self.next.store(start + self.interval, Ordering::Relaxed);
        core::wait_for_device(start + self.latency - now);
    }

    /// Forgets what was before, for another run.
    pub fn rest(&self) {
        self.next.store(0, Ordering::Relaxed);
    }
}
