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
