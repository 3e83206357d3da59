//! Whether a write has to change the times of its file.
//!
//! The times of a file say when it was written, but not more finely than a tick, as long as nobody looks: a write in the
//! tick of the last one leaves the inode as it is, and writers of one file do not wait for each other's inode. The first
//! write of the next tick changes the times, and others leave that to it: so they may be two ticks late. When somebody
//! has looked, the next write changes the times, so that two looks tell whether the file was written in
//! between. (`inode_needs_update_time` and `current_time` in Linux's `fs/inode.c`, whose tick is the timer's; since
//! Linux 6.13 a look has the same effect there.)
//!
//! # Locking
//!
//! ```text
//!   a write                                                          a look
//!   W1  its blocks are locked exclusively, until all is done         L1  lock the inode's page, shared
//!   W2  word is this tick: the times stay                            L2  word = looked
//!       word is the last tick: the one who makes it this tick goes on,
//!       for all others the times stay
//!   W3  else lock the page, set times, word = tick                   L3  read the times, unlock
//! ```
//!
//! Whoever reads a block behind L3 waits for a writer that has it, or locked it before that writer, or saw that nobody
//! has it (`content.rs`). So a write that is not seen there locks its blocks behind L2, and W2 finds that somebody has
//! looked. A write that reaches W3 before L1 has its times seen. One that reaches it behind L3 sets later ones.

use f2fs_sync::atomic::{AtomicU64, Ordering};
use f2fs_sync::protocol_step;

use crate::stat::Time;

/// Nanoseconds of a tick: that of a Linux with 250 ticks a second.
const TICK: u64 = 4_000_000;
/// Somebody has looked since the times changed, or they were set.
const LOOKED: u64 = 0;

/// When the times of a file changed last.
#[derive(Debug, Default)]
pub(crate) struct Times(AtomicU64);

/// The number of a tick, never [`LOOKED`].
fn tick(now: Time) -> u64 {
    (now.seconds as u64).wrapping_mul(1_000_000_000 / TICK).wrapping_add(u64::from(now.nanoseconds) / TICK) | 1 << 63
}

impl Times {
    /// Whether a write has to change them. The caller has its blocks exclusively.
    #[inline]
    pub(crate) fn must_change(&self, now: Time) -> bool {
        let (seen, now) = (self.0.load(Ordering::SeqCst), tick(now));
        if seen == now {
            return false;
        }
        let claim = || self.0.compare_exchange(seen, now, Ordering::SeqCst, Ordering::SeqCst);
        // Others that are late, or find that somebody has looked, change them as well.
        seen.wrapping_add(1) != now || claim().map_or_else(|other| other != now, |_| true)
    }

    /// A write changed them. The caller has the inode's page locked.
    pub(crate) fn changed(&self, now: Time) {
        self.0.store(tick(now), Ordering::SeqCst);
    }

    /// Somebody is about to read them, or they are set to something else. The caller has the inode's page locked, for
    /// reading at least.
    pub(crate) fn look(&self) {
        if self.0.load(Ordering::Relaxed) != LOOKED {
            protocol_step!("look_is_not_noted", self.0.store(LOOKED, Ordering::SeqCst));
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    fn at(ticks: u64) -> Time {
        Time { seconds: (ticks / 250) as i64, nanoseconds: (ticks % 250 * TICK) as u32 + 7 }
    }

    #[test]
    fn one_write_of_a_tick_changes_the_times() {
        let times = Times::default();
        let write = |ticks| {
            let must = times.must_change(at(ticks));
            if must {
                times.changed(at(ticks));
            }
            must
        };
        assert!(write(1000), "the first one");
        assert!(!write(1000) && write(1001) && !write(1001));
        assert!(write(5000) && !write(5000), "after a while");
        assert!(write(4000), "a clock that was set back");
        times.look();
        assert!(write(4000) && !write(4000), "somebody has looked");
        // Of those who write in the next tick one does it for all; of those who are later each does.
        assert!(times.must_change(at(4001)) && !times.must_change(at(4001)));
        assert!(times.must_change(at(9000)) && times.must_change(at(9000)));
        times.changed(at(9000));
        assert!(!times.must_change(at(9000)));
        times.look();
        assert!(write(0) && !write(0), "the first tick of all");
        assert!(write(250) && write(249) && write(0) && !write(0), "around a second");
    }
}
