//! Many jobs on all processors, each on a thread of its own with a rayon pool of one.

use std::panic::{AssertUnwindSafe, catch_unwind};

use f2fs_sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Threads that `asked` stands for; 0: as many as processors.
#[must_use]
pub fn threads(asked: usize) -> usize {
    match asked {
        0 => f2fs_sync::processors(),
        asked => asked,
    }
}

/// Does the jobs on so many threads (0: as many as processors), in order as threads become free. `work` is told the
/// number of jobs begun before, and says whether to go on. A check within it runs on its thread, and nothing else runs
/// on that meanwhile.
pub(crate) fn each<T: Sync>(jobs: &[T], asked: usize, work: impl Fn(usize, &T) -> bool + Sync) {
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let run = || {
        while !stop.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(index) else { return };
            if !work(index, job) {
                stop.store(true, Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads(asked) {
            scope.spawn(|| match rayon::ThreadPoolBuilder::new().num_threads(1).build() {
                Ok(pool) => pool.install(run),
                // The pool that all share does as well, a little slower.
                Err(_) => run(),
            });
        }
    });
}

/// The result of `work`; a panic is an error like any other.
pub(crate) fn caught<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        Err(format!("a panic: {}", text.unwrap_or("of an unknown kind")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_job_is_done_once_until_one_says_stop() {
        let jobs: Vec<usize> = (0..100).collect();
        let sum = AtomicUsize::new(0);
        each(&jobs, 3, |index, job| {
            assert_eq!(index, *job);
            sum.fetch_add(job + 1, Ordering::Relaxed);
            true
        });
        assert_eq!(sum.load(Ordering::Relaxed), 5050);
        let done = AtomicUsize::new(0);
        each(&jobs, 1, |index, _| {
            done.fetch_add(1, Ordering::Relaxed);
            index < 9
        });
        assert_eq!(done.load(Ordering::Relaxed), 10);
    }

    #[test]
    fn a_panic_is_an_error() {
        std::panic::set_hook(Box::new(|_| {}));
        assert_eq!(caught::<()>(|| panic!("text {}", 1)), Err("a panic: text 1".to_owned()));
        drop(std::panic::take_hook());
    }
}
