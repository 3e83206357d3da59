//! Workloads measured on threads of this machine.
//!
//! Other programs run on it, too. So each measurement is many slices of a few milliseconds, shorter than the time for
//! which a scheduler lets a thread run, and the fastest tenth of them counts: those that nobody interrupted. The median
//! stands beside it.
//!
//! What the processors share without the library's doing (their clock, the units of two threads on one core, memory)
//! slows threads down, too. [`Volumes::Apart`] measures that alone: each thread has a volume of its own.

use std::sync::atomic::{AtomicU64, Ordering};

use super::files::{BYTES, BYTES_ALONE};
use super::{Subject, Work, Workload, prepare};
use crate::report::ascending;
use crate::workers::Team;

/// Nanoseconds of a slice.
const SLICE: u64 = 4_000_000;
/// Operations of all threads together, where each needs memory or a file that is made before.
const MOST: u64 = 240_000;

/// What the threads work on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Volumes {
    /// One for all.
    Shared,
    /// One for each thread.
    Apart,
}

/// Operations a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// In the fastest tenth of the slices.
    pub best: f64,
    /// In the median slice.
    pub median: f64,
}

/// Operations of each thread in a slice, and slices that there may be of them.
fn slices(workload: Workload, threads: usize, wanted: usize) -> (u64, usize) {
    let laps = (SLICE / workload.nanoseconds().max(1)).max(50);
    // There are 455,000 node IDs, and each is freed once.
    let laps = if matches!(workload, Workload::Nids | Workload::NidsShort) {
        laps.min(400_000 / (10 * threads as u64))
    } else {
        laps
    };
    let each = (MOST / threads.max(1) as u64).min(40_000);
    let most = if workload.leaves_something() { each / laps } else { u64::MAX };
    (laps, wanted.min(most.max(10) as usize))
}

/// Bytes of memory that devices take for so many threads, measured one after the other: those of the volume for all and
/// of one for each thread stay, to be used again.
#[must_use]
pub fn memory(threads: usize) -> u64 {
    BYTES as u64 + threads as u64 * BYTES_ALONE as u64
}

/// Each thread on its own.
struct Alone(Vec<Box<dyn Work>>);

impl Work for Alone {
    fn operation(&self, core: usize, lap: u64) {
        self.0[core].operation(0, lap);
    }
}

/// Measures so many slices of so many threads.
#[must_use]
pub fn measure(subject: &Subject, volumes: Volumes, threads: usize, wanted: usize) -> Rate {
    let (laps, slices) = slices(subject.workload, threads, wanted.max(1));
    let prepared = |cores: usize| prepare(subject, cores, laps * slices as u64, &|_, prepare| prepare());
    let work = match volumes {
        Volumes::Shared => prepared(threads),
        Volumes::Apart => Box::new(std::thread::scope(|scope| {
            let alone: Vec<_> = (0..threads).map(|_| scope.spawn(|| prepared(1))).collect();
            Alone(alone.into_iter().map(|alone| alone.join().expect("preparing works")).collect())
        })),
    };
    let done: Vec<AtomicU64> = (0..threads).map(|_| AtomicU64::new(0)).collect();
    let run = |core: usize, laps: u64| {
        let first = done[core].fetch_add(laps, Ordering::Relaxed);
        (first..first + laps).for_each(|lap| work.operation(core, lap));
    };
    let slice = |team: &Team| (laps * threads as u64) as f64 / team.round(laps).elapsed.as_secs_f64();
    let rates = ascending(Team::with(threads, run, |team| (0..slices).map(|_| slice(team)).collect::<Vec<_>>()));
    Rate { best: rates[(rates.len() * 9 / 10).min(rates.len() - 1)], median: rates[rates.len() / 2] }
}
