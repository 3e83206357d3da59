//! Sharing numbered work among threads.

use f2fs::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::{Observer, QuickstartError};

/// Numbers that a thread takes at a time.
const BATCH: u64 = 64;

/// Does `work` for each number below `count`, on `threads` threads, each with memory of its own; returns the sum of the
/// results of `work`. After the first error no more work is begun.
pub(super) fn share(
    threads: usize,
    count: u64,
    observer: &dyn Observer,
    work: impl Fn(u64, &mut Scratch) -> Result<u64, QuickstartError> + Sync,
) -> Result<u64, QuickstartError> {
    // Short work in batches too large would leave threads without any.
    let batch = BATCH.min(count.div_ceil(threads.max(1) as u64 * 4)).max(1);
    let next = AtomicU64::new(0);
    let failed = AtomicBool::new(false);
    let worker = || {
        let mut scratch = Scratch::default();
        let mut sum = 0;
        while !failed.load(Ordering::Relaxed) {
            let first = next.fetch_add(batch, Ordering::Relaxed);
            if first >= count {
                break;
            }
            let end = (first + batch).min(count);
            for number in first..end {
                sum += work(number, &mut scratch).inspect_err(|_| failed.store(true, Ordering::Relaxed))?;
            }
            observer.advance(end - first);
        }
        Ok(sum)
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(worker)).collect();
        let mut sum = Ok(0);
        for worker in workers {
            let part = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            sum = sum.and_then(|sum| part.map(|part| sum + part));
        }
        sum
    })
}

/// Buffers of a thread: the expected content of a file, and the content that was read.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    pub(super) expected: Vec<u8>,
    pub(super) found: Vec<u8>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_worked_on_once() {
        for (threads, count) in [(1, 0), (1, 1), (3, 1000), (8, 5)] {
            let seen: Vec<_> = (0..count).map(|_| AtomicU64::new(0)).collect();
            let sum = share(threads, count, &(), |number, _| {
                seen[number as usize].fetch_add(1, Ordering::Relaxed);
                Ok(number)
            });
            assert_eq!(sum.unwrap(), count * count.saturating_sub(1) / 2);
            assert!(seen.iter().all(|seen| seen.load(Ordering::Relaxed) == 1));
        }
    }

    #[test]
    fn an_error_ends_it() {
        let begun = AtomicU64::new(0);
        let result = share(2, 1 << 30, &(), |number, _| {
            begun.fetch_add(1, Ordering::Relaxed);
            if number == 100 { Err(QuickstartError::Undead { path: "/x".into() }) } else { Ok(0) }
        });
        assert!(matches!(result, Err(QuickstartError::Undead { .. })));
        assert!(begun.load(Ordering::Relaxed) < 1 << 30);
    }
}
