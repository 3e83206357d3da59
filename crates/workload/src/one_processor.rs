//! A thread that stays on one processor for a while.

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// Keeps the running thread on its processor until it is dropped, as far as the system allows it.
///
/// The library keeps stocks of node IDs and heads of logs by processor, so the blocks that one thread writes depend on
/// the processors that it ran on. A model that is to give the same result each time holds one of these.
#[derive(Debug)]
pub(crate) struct OneProcessor {
    /// The processors that the thread might use before.
    before: Option<CpuSet>,
}

impl OneProcessor {
    pub(crate) fn begin() -> OneProcessor {
        let mut here = CpuSet::new();
        let processor = sched_getcpu();
        let before = sched_getaffinity(None).ok().filter(|_| processor < CpuSet::MAX_CPU);
        let before = before.filter(|_| {
            here.set(processor);
            sched_setaffinity(None, &here).is_ok()
        });
        OneProcessor { before }
    }
}

impl Drop for OneProcessor {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // The thread stays where it is then, and works as well.
            let _ = sched_setaffinity(None, before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_stays_and_is_let_go() {
        let before = sched_getaffinity(None).unwrap();
        let stays = OneProcessor::begin();
        let only = sched_getaffinity(None).unwrap();
        assert_eq!(only.count(), 1);
        assert!(only.is_set(sched_getcpu()));
        drop(stays);
        assert_eq!(sched_getaffinity(None).unwrap(), before);
    }
}
