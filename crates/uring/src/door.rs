//! The way into a ring that threads share, which is shut for good when the kernel refuses it.
//!
//! ```text
//!  open --go_in--> somebody is in --go_out--> open
//!    |                   |
//!    +------ shut -------+--> shut: nobody goes in; those that are in come out
//! ```
//! Entries that the kernel has not taken can be taken back only when nobody is in: another thread's call may be about
//! to hand them over, because a filter of system calls may be one thread's only.
//!
//! Locking rules: no locks. The error number is stored before the state says that the door is shut.

use std::thread;

use f2fs_sync::atomic::{AtomicI32, AtomicUsize, Ordering};

use crate::ring::{PAUSE, Refused};

/// In the state: the door is shut. Above it: how many are in.
const SHUT: usize = 1;
const ONE: usize = 2;

#[derive(Debug, Default)]
pub(crate) struct Door {
    state: AtomicUsize,
    errno: AtomicI32,
}

impl Door {
    /// Goes in, unless the door is shut.
    pub(crate) fn go_in(&self) -> bool {
        // Acquire: whoever finds it shut sees the error number.
        let is_open = self.state.fetch_add(ONE, Ordering::Acquire) & SHUT == 0;
        if !is_open {
            self.go_out();
        }
        is_open
    }

    /// Comes out.
    pub(crate) fn go_out(&self) {
        // Release: what the kernel took meanwhile is seen to be taken by whoever sees that nobody is in.
        self.state.fetch_sub(ONE, Ordering::Release);
    }

    /// Shuts the door.
    #[cold]
    pub(crate) fn shut(&self, refused: Refused) {
        self.errno.store(refused.errno, Ordering::Relaxed);
        self.state.fetch_or(SHUT, Ordering::Release);
    }

    /// Why the door is shut, if it is.
    pub(crate) fn refused(&self) -> Option<Refused> {
        let is_shut = self.state.load(Ordering::Acquire) & SHUT != 0;
        is_shut.then(|| Refused { errno: self.errno.load(Ordering::Relaxed) })
    }

    /// Waits, with the door shut, for those that are in.
    pub(crate) fn wait_until_nobody_is_in(&self) {
        while self.state.load(Ordering::Acquire) >= ONE {
            thread::sleep(PAUSE);
        }
    }
}
