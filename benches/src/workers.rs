//! Persistent workers that do fixed work, released together.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Barrier, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Tells the workers that there is no more work.
const STOP: u64 = u64::MAX;

/// When a worker began and ended, and the processor time that it took in between.
#[derive(Clone, Copy, Debug)]
struct Times {
    start: Instant,
    end: Instant,
    processor: Duration,
}

/// A team of threads that wait for work.
#[derive(Debug)]
pub struct Team {
    barrier: Barrier,
    operations: AtomicU64,
    times: Vec<Mutex<Option<Times>>>,
}

/// How one round went.
#[derive(Clone, Copy, Debug, Default)]
pub struct Round {
    /// From the first start to the last end.
    pub elapsed: Duration,
    /// The fastest worker's time divided by the slowest's: 1 if all were equally fast.
    pub slowest_share: f64,
    /// Processor time of all workers: what other programs take of the machine is not in it.
    pub processor: Duration,
}

/// Processor time of this thread.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

/// Ends the process if a worker panics: the others would wait for it for ever.
struct EndsProcess;

impl Drop for EndsProcess {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::process::exit(101);
        }
    }
}

impl Team {
    /// Starts `threads` workers, runs `body`, and ends them. A worker does `work(worker, operations)` in each round.
    pub fn with<R>(threads: usize, work: impl Fn(usize, u64) + Sync, body: impl FnOnce(&Team) -> R) -> R {
        let team = Team {
            barrier: Barrier::new(threads + 1),
            operations: AtomicU64::new(0),
            times: (0..threads).map(|_| Mutex::new(None)).collect(),
        };
        std::thread::scope(|scope| {
            for worker in 0..threads {
                let (team, work) = (&team, &work);
                scope.spawn(move || {
                    let _ends = EndsProcess;
                    loop {
                        team.barrier.wait();
                        let operations = team.operations.load(Ordering::Relaxed);
                        if operations == STOP {
                            return;
                        }
                        let (start, before) = (Instant::now(), processor_time());
                        work(worker, operations);
                        let times = Times { start, end: Instant::now(), processor: processor_time() - before };
                        *team.times[worker].lock().unwrap_or_else(PoisonError::into_inner) = Some(times);
                        team.barrier.wait();
                    }
                });
            }
            let result = body(&team);
            team.operations.store(STOP, Ordering::Relaxed);
            team.barrier.wait();
            result
        })
    }

    /// Workers.
    pub fn threads(&self) -> usize {
        self.times.len()
    }

    /// Every worker does so many operations.
    pub fn round(&self, operations: u64) -> Round {
        self.operations.store(operations, Ordering::Relaxed);
        self.barrier.wait();
        self.barrier.wait();
        let times: Vec<Times> =
            self.times.iter().filter_map(|time| time.lock().unwrap_or_else(PoisonError::into_inner).take()).collect();
        let first = times.iter().map(|times| times.start).min();
        let last = times.iter().map(|times| times.end).max();
        let spent = || times.iter().map(|times| times.end - times.start);
        let share = match (spent().min(), spent().max()) {
            (Some(fastest), Some(slowest)) if !slowest.is_zero() => fastest.as_secs_f64() / slowest.as_secs_f64(),
            _ => 1.0,
        };
        let elapsed = first.zip(last).map_or(Duration::ZERO, |(first, last)| last - first);
        Round { elapsed, slowest_share: share, processor: times.iter().map(|times| times.processor).sum() }
    }
}

/// The thread counts that are measured: those in `F2FS_BENCH_THREADS` (separated by commas), else 1 to 128.
pub fn thread_counts() -> Vec<usize> {
    let chosen = std::env::var("F2FS_BENCH_THREADS").unwrap_or_default();
    let chosen: Vec<usize> = chosen.split(',').filter_map(|n| n.trim().parse().ok()).collect();
    if chosen.is_empty() { vec![1, 2, 4, 8, 16, 32, 64, 120, 128] } else { chosen }
}
