//! How full a journal is.
//!
//! ```text
//!   a lane is used by   half                  seven eighths                               all
//!                       a checkpoint is due   the next operation writes it in any case    a sync is a checkpoint
//! ```
//!
//! # Locking
//!
//! None. A sync that finds that its lane is fuller than was known says so; a checkpoint begins again, while syncs wait.

use f2fs_sync::atomic::{AtomicU32, Ordering};

const ROOMY: u32 = 0;
const HALF: u32 = 1;
const NEARLY_FULL: u32 = 2;

/// How full the lanes are, as far as syncs told since the last checkpoint.
#[derive(Debug, Default)]
pub(crate) struct Filling {
    level: AtomicU32,
}

impl Filling {
    /// A record was appended to a lane of so many bytes, of which so many are free.
    pub(crate) fn tell(&self, free: u64, lane: u64) {
        let level = match free {
            free if free < lane / 8 => NEARLY_FULL,
            free if free < lane / 2 => HALF,
            _ => return,
        };
        // Most of the time it is known, and nobody writes.
        if self.level.load(Ordering::Relaxed) < level {
            self.level.fetch_max(level, Ordering::Relaxed);
        }
    }

    /// A checkpoint took the space back.
    pub(crate) fn clear(&self) {
        self.level.store(ROOMY, Ordering::Relaxed);
    }

    /// Whether a checkpoint is due.
    pub(crate) fn is_due(&self) -> bool {
        self.level.load(Ordering::Relaxed) >= HALF
    }

    /// Whether it cannot wait.
    pub(crate) fn is_nearly_full(&self) -> bool {
        self.level.load(Ordering::Relaxed) >= NEARLY_FULL
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn the_fullest_lane_counts_until_a_checkpoint() {
        let filling = Filling::default();
        let state = || (filling.is_due(), filling.is_nearly_full());
        filling.tell(500, 1000);
        assert_eq!(state(), (false, false));
        filling.tell(499, 1000);
        assert_eq!(state(), (true, false));
        filling.tell(125, 1000);
        assert_eq!(state(), (true, false));
        filling.tell(124, 1000);
        // Another lane is not as full.
        filling.tell(499, 1000);
        assert_eq!(state(), (true, true));
        filling.clear();
        assert_eq!(state(), (false, false));
    }
}
