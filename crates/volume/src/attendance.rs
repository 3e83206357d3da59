//! Threads that write checkpoints in place of operations, and how they are called.
//!
//! ```text
//!                   a checkpoint is due               no room or memory for more that is dirty
//!   nobody attends  the next operation writes it      (the same)
//!   somebody does   the next operation calls          the next operation writes it
//! ```
//!
//! # Locking
//!
//! None. Who is called takes the call back before it looks at what is due, so what becomes due later calls again.

use f2fs_sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Who attends to a volume.
#[derive(Debug, Default)]
pub(crate) struct Attendance {
    by: AtomicU32,
    is_called: AtomicBool,
}

impl Attendance {
    /// Somebody attends from now on; or one of those does no more.
    pub(crate) fn change(&self, attends: bool) {
        let changed = |by: u32| if attends { by.checked_add(1) } else { by.checked_sub(1) };
        // That more end than began changes nothing.
        let _ = self.by.fetch_update(Ordering::Relaxed, Ordering::Relaxed, changed);
    }

    /// Whether somebody attends.
    pub(crate) fn is_on(&self) -> bool {
        self.by.load(Ordering::Relaxed) != 0
    }

    /// Something is due: whether to wake who attends. True once until the call is [taken back](Self::answer).
    pub(crate) fn call(&self) -> bool {
        // Most of the time nobody writes.
        self.is_on() && !self.is_called.load(Ordering::Relaxed) && !self.is_called.swap(true, Ordering::AcqRel)
    }

    /// Takes the call back: who attends looks at what is due.
    pub(crate) fn answer(&self) {
        self.is_called.swap(false, Ordering::AcqRel);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn who_attends_is_called_once_until_the_answer() {
        let attendance = Attendance::default();
        assert!(!attendance.call(), "there is nobody");
        attendance.change(true);
        assert!(attendance.is_on() && attendance.call() && !attendance.call());
        attendance.answer();
        assert!(attendance.call());
        attendance.answer();
        attendance.change(false);
        assert!(!attendance.is_on() && !attendance.call());
        attendance.change(false);
        assert!(!attendance.is_on(), "nobody ended");
    }
}
