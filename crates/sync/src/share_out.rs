//! Pieces of a long job, done by several threads that end with it.

use crate::atomic::{AtomicU32, Ordering};

/// Does `work` for each number below `pieces`, each once, on up to `threads` threads, the caller's among them: fewer
/// where the system gives no more. They have ended when this returns. After an error no piece is begun any more.
///
/// ```
/// use std::sync::atomic::{AtomicU32, Ordering};
///
/// let sum = AtomicU32::new(0);
/// f2fs_sync::share_out(100, 4, |piece| {
///     sum.fetch_add(piece, Ordering::Relaxed);
///     Ok::<(), std::io::Error>(())
/// })?;
/// assert_eq!(sum.into_inner(), 4950);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// One of the errors of `work`.
///
/// # Panics
/// If `work` does, with its panic.
pub fn share_out<E: Send>(pieces: u32, threads: usize, work: impl Fn(u32) -> Result<(), E> + Sync) -> Result<(), E> {
    let helpers = threads.min(pieces as usize).saturating_sub(1);
    // A virtual core has no threads.
    #[cfg(f2fs_manycore)]
    let helpers = if crate::manycore::running().is_some() { 0 } else { helpers };
    if helpers == 0 {
        return (0..pieces).try_for_each(work);
    }
    let next = AtomicU32::new(0);
    let run = || -> Result<(), E> {
        loop {
            let piece = next.fetch_add(1, Ordering::Relaxed);
            if piece >= pieces {
                return Ok(());
            }
            let result = work(piece);
            if result.is_err() {
                // Other threads need not go on.
                next.store(pieces, Ordering::Relaxed);
                return result;
            }
        }
    };
    std::thread::scope(|scope| {
        let start = |_| std::thread::Builder::new().spawn_scoped(scope, run).ok();
        let helpers: Vec<_> = (0..helpers).map_while(start).collect();
        let mine = run();
        helpers.into_iter().fold(mine, |result, helper| {
            result.and(helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })
    })
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::{Condvar, Mutex};
    use std::time::Duration;

    #[test]
    fn each_piece_is_done_once() {
        for threads in [0, 1, 2, 3, 100] {
            for pieces in [0, 1, 2, 3, 500] {
                let done: Vec<AtomicU32> = (0..pieces).map(|_| AtomicU32::new(0)).collect();
                let result: Result<(), ()> = share_out(pieces, threads, |piece| {
                    done[piece as usize].fetch_add(1, Ordering::Relaxed);
                    Ok(())
                });
                assert_eq!(result, Ok(()));
                let once = done.iter().all(|times| times.load(Ordering::Relaxed) == 1);
                assert!(once, "{pieces} pieces on {threads} threads");
            }
        }
    }

    #[test]
    fn an_error_is_told_whoever_meets_it() {
        for threads in [1, 2, 3] {
            for bad in [0, 49, 99] {
                let result = share_out(100, threads, |piece| if piece == bad { Err(piece) } else { Ok(()) });
                assert_eq!(result, Err(bad), "{threads} threads");
            }
        }
    }

    #[test]
    fn nothing_is_begun_behind_an_error() {
        // More than could be done in the time of a test.
        const PIECES: u32 = 1 << 31;
        let begun = AtomicU32::new(0);
        let result = share_out(PIECES, 2, |piece| {
            begun.fetch_add(1, Ordering::Relaxed);
            if piece == 100 { Err(()) } else { Ok(()) }
        });
        assert_eq!(result, Err(()));
        assert!(begun.into_inner() < PIECES);
    }

    #[test]
    fn threads_work_side_by_side() {
        let (begun, changed) = (Mutex::new(0), Condvar::new());
        let met: Result<(), u32> = share_out(2, 2, |piece| {
            let mut begun = begun.lock();
            *begun += 1;
            changed.notify_all();
            // Either waits until the other one has begun.
            while *begun < 2 {
                if changed.wait_for(&mut begun, Duration::from_secs(20)).timed_out() {
                    return Err(piece);
                }
            }
            Ok(())
        });
        assert_eq!(met, Ok(()));
    }
}
