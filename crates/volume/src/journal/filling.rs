//! How full a journal is, and who writes the checkpoint that makes room.
//!
//! ```text
//!   a lane is used by   half                     seven eighths             all
//!   nobody attends      the next operation's     (the same)                the sync is a checkpoint
//!   somebody attends    a call to whoever does   the next operation's      the sync is a checkpoint
//! ```
//!
//! # Locking
//!
//! None. A sync that finds that its lane is fuller than was known says so; a checkpoint begins again, while syncs wait.

use f2fs_sync::atomic::{AtomicBool, AtomicU32, Ordering};

const ROOMY: u32 = 0;
const HALF: u32 = 1;
const NEARLY_FULL: u32 = 2;

/// How full the lanes are, as far as syncs told since the last checkpoint.
#[derive(Debug, Default)]
pub(crate) struct Filling {
    level: AtomicU32,
    /// Somebody was called.
    is_called: AtomicBool,
    /// Those who write checkpoints in the background.
    attended_by: AtomicU32,
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
        self.is_called.store(false, Ordering::Relaxed);
    }

    /// Whether a checkpoint is due.
    pub(crate) fn is_due(&self) -> bool {
        self.level.load(Ordering::Relaxed) >= HALF
    }

    /// Whether the next operation has to write it.
    pub(crate) fn is_short(&self) -> bool {
        let level = self.level.load(Ordering::Relaxed);
        level >= NEARLY_FULL || level == HALF && self.attended_by.load(Ordering::Relaxed) == 0
    }

    /// Whether to call who writes it. True once for each time that it is due.
    pub(crate) fn calls(&self) -> bool {
        self.is_due() && !self.is_called.load(Ordering::Relaxed) && !self.is_called.swap(true, Ordering::Relaxed)
    }

    /// Somebody writes checkpoints when called, from now on; or one of those does no more.
    pub(crate) fn attend(&self, does: bool) {
        if does {
            self.attended_by.fetch_add(1, Ordering::Relaxed);
        } else {
            self.attended_by.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn operations_leave_it_to_whoever_attends_until_it_is_nearly_full() {
        let filling = Filling::default();
        let state = || (filling.is_due(), filling.is_short());
        filling.tell(500, 1000);
        assert_eq!((state(), filling.calls()), ((false, false), false));
        filling.tell(499, 1000);
        assert_eq!(state(), (true, true));
        filling.attend(true);
        assert_eq!(state(), (true, false));
        assert!(filling.calls() && !filling.calls(), "once");
        filling.tell(124, 1000);
        // Another lane is not as full.
        filling.tell(499, 1000);
        assert_eq!(state(), (true, true));
        filling.clear();
        assert_eq!(state(), (false, false));
        filling.tell(499, 1000);
        assert!(filling.calls());
        filling.attend(false);
        assert_eq!(state(), (true, true));
    }
}
