//! The brake on operations: a checkpoint that writes nodes ahead comes to an end, however fast operations change them.
//!
//! Nodes that change during one pass belong to the next, and what is left at the end is written while operations are
//! kept out. So each pass has to be shorter than the one before. As long as operations change fewer nodes than that,
//! they run freely. If not, each of them sleeps a moment before it begins, twice as long from step to step, until they
//! do.
//!
//! ```text
//!   changed during this pass, by written in it:   below half of the allowed   up to the allowed   above
//!   the moment:                                   half of it                  as it is            twice as long
//! ```
//!
//! # Locking
//!
//! None: one number, which operations read and the thread with the turn to write a checkpoint writes.

use core::time::Duration;

use f2fs_sync::atomic::{AtomicU64, Ordering::Relaxed};
use f2fs_sync::thread;

/// The first moment, in microseconds: a system cannot sleep for much less.
const LEAST: u64 = 50;
/// The longest one. An operation waits so long at most for the sake of a checkpoint that is behind.
const MOST: u64 = 4000;
/// In the passes behind the first, up to this one, operations may change three nodes where four are written: the
/// checkpoint takes its time. Behind that, one where two are written.
const PATIENT: u32 = 8;

/// How long an operation waits before it begins, in microseconds.
#[derive(Debug, Default)]
pub(crate) struct Brake(AtomicU64);

impl Brake {
    /// The part of an operation: it waits, if the checkpoint is behind. Called with nothing locked.
    pub(crate) fn wait(&self) {
        match self.0.load(Relaxed) {
            0 => {}
            micros => thread::sleep(Duration::from_micros(micros)),
        }
    }

    /// The checkpoint's part: in this pass, the first of which is 0, so many nodes were written and so many changed.
    pub(crate) fn adjust(&self, pass: u32, written: u64, changed: u64) {
        let allowed = match pass {
            0 => written,
            1..=PATIENT => written / 4 * 3,
            _ => written / 2,
        };
        let now = self.0.load(Relaxed);
        let next = if changed > allowed {
            (now * 2).clamp(LEAST, MOST)
        } else if changed < allowed / 2 && now > LEAST {
            now / 2
        } else if changed < allowed / 2 {
            0
        } else {
            now
        };
        // Every operation reads it: its line is written only if something is new.
        if next != now {
            self.0.store(next, Relaxed);
        }
    }

    /// No operation waits any more.
    pub(crate) fn release(&self) {
        self.0.store(0, Relaxed);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    /// A checkpoint writes 164 nodes in a millisecond, threads change as many as they can: how many are left for the
    /// freeze?
    fn left(threads: u64, each: f64) -> u64 {
        const CHUNK: u64 = 512;
        let brake = Brake::default();
        let mut dirty = 300_000;
        for pass in 0..16 {
            let (mut written, mut changed) = (0, 0.0);
            while written < dirty {
                let chunk = CHUNK.min(dirty - written);
                let micros = brake.0.load(Relaxed) as f64;
                changed += threads as f64 * (chunk as f64 / 0.164) / (each + micros);
                written += chunk;
                brake.adjust(pass, written, changed as u64);
            }
            dirty = changed as u64;
            if dirty <= CHUNK {
                break;
            }
        }
        dirty
    }

    #[test]
    fn few_nodes_are_left_however_many_threads_change_them() {
        for threads in [1, 2, 14, 128] {
            let left = left(threads, 5.0);
            assert!(left <= 2000, "{threads} threads leave {left}");
        }
    }

    #[test]
    fn threads_that_are_slower_than_the_checkpoint_do_not_wait() {
        let brake = Brake::default();
        for pass in 0..16 {
            for written in (512..40_000).step_by(512) {
                brake.adjust(pass, written, written * 2 / 5);
                assert_eq!(brake.0.load(Relaxed), 0, "pass {pass}");
            }
        }
    }

    #[test]
    fn nobody_waits_longer_than_the_most() {
        let brake = Brake::default();
        (0..100).for_each(|written| brake.adjust(1, written, u64::MAX));
        assert_eq!(brake.0.load(Relaxed), MOST);
        brake.adjust(1, 1000, 0);
        assert_eq!(brake.0.load(Relaxed), MOST / 2);
        brake.release();
        assert_eq!(brake.0.load(Relaxed), 0);
    }

    #[test]
    fn the_moment_grows_and_goes_by_half() {
        let brake = Brake::default();
        // In a pass behind the first 750 may change where 1000 are written, and behind many passes 500.
        let adjusted = |pass, changed| {
            brake.adjust(pass, 1000, changed);
            brake.0.load(Relaxed)
        };
        assert_eq!((adjusted(1, 750), adjusted(1, 751), adjusted(1, 751), adjusted(1, 375)), (0, 50, 100, 100));
        assert_eq!((adjusted(1, 374), adjusted(1, 374)), (50, 0));
        assert_eq!((adjusted(8, 750), adjusted(9, 501), adjusted(9, 500), adjusted(9, 249)), (0, 50, 50, 0));
        assert_eq!((adjusted(0, 1000), adjusted(0, 1001), adjusted(0, 500), adjusted(0, 499)), (0, 50, 50, 0));
    }

    #[test]
    fn an_operation_waits_as_long_as_it_is_told() {
        let brake = Brake::default();
        brake.adjust(1, 0, 1);
        let begun = std::time::Instant::now();
        brake.wait();
        assert!(begun.elapsed() >= Duration::from_micros(LEAST));
        brake.release();
        brake.wait();
    }
}
