//! The volume's own time: seconds that it was in use (`elapsed_time`), which is what segment ages are counted in.

use std::time::Instant;

/// Seconds in use before this opening, and since.
#[derive(Debug)]
pub(crate) struct Clock {
    base: u64,
    opened: Instant,
}

impl Clock {
    pub(crate) fn new(base: u64) -> Clock {
        Clock { base, opened: Instant::now() }
    }

    pub(crate) fn now(&self) -> u64 {
        self.base.saturating_add(self.opened.elapsed().as_secs())
    }
}
