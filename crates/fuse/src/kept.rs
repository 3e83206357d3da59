//! The pages of files that the kernel keeps and has not handed over: asking for them, and waiting until they are here.
//!
//! # Locking rules
//!
//! None: two counters, each a line for each processor, so that requests share none. The ends are summed before the
//! beginnings: a request that comes between is under way.

use std::time::{Duration, Instant};

use f2fs_sync::{ShardedCounter, thread};

/// Kernels do not wait for the answers to what they hand over with `syncfs`; when no request came for so long, the last
/// of them is answered.
const SILENCE: Duration = Duration::from_millis(250);
/// How often is looked.
const STEP: Duration = Duration::from_millis(10);

/// Requests that hand over pages which the kernel has kept.
#[derive(Debug, Default)]
pub(crate) struct KeptPages {
    begun: ShardedCounter,
    ended: ShardedCounter,
}

/// Such a request, until it is dropped.
#[derive(Debug)]
pub(crate) struct HandedOver<'a>(&'a KeptPages);

impl KeptPages {
    /// A request has come.
    pub(crate) fn begin(&self) -> HandedOver<'_> {
        self.begun.add(1);
        HandedOver(self)
    }

    /// Waits until no request has come for a while and all are answered, but no longer than `limit`. Whether it was so.
    pub(crate) fn wait(&self, limit: Duration) -> bool {
        let began = Instant::now();
        let (mut seen, mut since) = (self.begun.sum(), began);
        loop {
            let (ended, begun) = (self.ended.sum(), self.begun.sum());
            if begun != seen || ended != begun {
                (seen, since) = (begun, Instant::now());
            } else if since.elapsed() >= SILENCE {
                return true;
            }
            if began.elapsed() >= limit {
                return false;
            }
            thread::sleep(STEP);
        }
    }
}

impl Drop for HandedOver<'_> {
    fn drop(&mut self) {
        self.0.ended.add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_under_way_are_waited_for() {
        let kept = KeptPages::default();
        assert!(kept.wait(SILENCE * 100));
        let request = kept.begin();
        assert!(!kept.wait(SILENCE * 2), "one is not answered");
        drop(request);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..8 {
                    drop(kept.begin());
                    std::thread::sleep(SILENCE / 4);
                }
            });
            std::thread::sleep(SILENCE / 4);
            assert!(kept.wait(SILENCE * 100));
            assert!(kept.begun.sum() >= 8, "more came");
        });
    }
}
