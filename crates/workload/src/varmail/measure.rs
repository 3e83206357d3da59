//! Varmail on real devices.

use std::panic::resume_unwind;
use std::time::{Duration, Instant};

use f2fs::sync::atomic::{AtomicBool, Ordering};

use super::{Mails, Measured, Names, Work, Worker};

/// Runs so many threads for so long.
///
/// # Errors
/// The first of any thread; the others end then.
///
/// # Panics
/// If a thread did.
pub fn measure<M: Mails>(mails: &M, names: &Names, threads: usize, time: Duration) -> Result<Measured, M::Error> {
    let stops = AtomicBool::new(false);
    let before = mails.checkpoints();
    let begun = Instant::now();
    let run = |number: usize| {
        let mut worker = Worker::new(mails, names, number as u64);
        let mut syncs = Duration::ZERO;
        // A clock may cost as much as an operation: it is asked once in a round, and for syncs.
        while !(worker.is_to_begin() && begun.elapsed() >= time || stops.load(Ordering::Relaxed)) {
            let started = worker.is_to_sync().then(Instant::now);
            if let Err(error) = worker.step() {
                stops.store(true, Ordering::Relaxed);
                return Err(error);
            }
            syncs += started.map_or(Duration::ZERO, |started| started.elapsed());
        }
        Ok((worker.work, syncs))
    };
    let ended: Result<Vec<(Work, Duration)>, M::Error> = std::thread::scope(|scope| {
        let run = &run;
        let threads: Vec<_> = (0..threads.max(1)).map(|number| scope.spawn(move || run(number))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    });
    let elapsed = begun.elapsed();
    let (mut work, mut syncs) = (Work::default(), Duration::ZERO);
    for (of_thread, of_syncs) in ended? {
        work = work.plus(of_thread);
        syncs += of_syncs;
    }
    let sync = syncs / u32::try_from(work.syncs.max(1)).unwrap_or(u32::MAX);
    Ok(Measured { work, time: elapsed, sync, checkpoints: mails.checkpoints() - before })
}
