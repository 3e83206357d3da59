//! Volumes in memory for the tests of this crate, and waiting for threads.

use std::time::{Duration, Instant};

use f2fs_device::MemoryDevice;
use f2fs_sync::PlainArc;
use f2fs_volume::format::{FormatOptions, format};

/// A new volume of so many blocks, as it is made where nothing else is asked for.
#[allow(clippy::unwrap_used)] // what fails here is a failed test
pub(crate) fn formatted(blocks: u64) -> PlainArc<MemoryDevice> {
    let device = PlainArc::new(MemoryDevice::new(blocks));
    format(&*device, &FormatOptions::default()).unwrap();
    device
}

/// Waits for what another thread is about to do.
pub(crate) fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::yield_now();
    }
}
