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

#[cfg(all(test, not(any(loom, shuttle))))]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests {
    use super::*;

    #[test]
    fn time_goes_on_where_it_was() {
        let clock = Clock::new(7000);
        assert!((7000..7500).contains(&clock.now()));
        assert_eq!(Clock::new(u64::MAX).now(), u64::MAX);
    }
}
