//! Workloads measured on threads of this machine.
//!
//! Other programs run on it, too. So each measurement is many slices of a few milliseconds, shorter than the time for
//! which a scheduler lets a thread run, and the fastest tenth of them counts: those that nobody interrupted.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{Subject, Workload, prepare};
use crate::report::ascending;
use crate::workers::Team;

/// Nanoseconds of a slice.
const SLICE: u64 = 4_000_000;

/// A workload on one thread and on two.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The workload.
    pub workload: Workload,
    /// Nanoseconds of an operation on one thread.
    pub nanoseconds: f64,
    /// Operations a second of two threads over those of one.
    pub ratio: f64,
}

/// Operations of each thread in a slice, and slices that there may be of them.
fn slices(workload: Workload, wanted: usize) -> (u64, usize) {
    let laps = (SLICE / workload.nanoseconds().max(1)).max(50);
    // There are so many node IDs for each of two threads, and each is freed once.
    let laps = if workload == Workload::NidsShort { laps.min(20_000) } else { laps };
    // Each needs memory, or files that are made before.
    let most = if workload.leaves_something() { 40_000 / laps } else { u64::MAX };
    (laps, wanted.min(most.max(10) as usize))
}

/// Operations a second in the fastest tenth of the slices.
fn rate(subject: &Subject, threads: usize, wanted: usize) -> f64 {
    let (laps, slices) = slices(subject.workload, wanted);
    let work = prepare(subject, threads, laps * slices as u64, &|_, prepare| prepare());
    let done: Vec<AtomicU64> = (0..threads).map(|_| AtomicU64::new(0)).collect();
    let run = |core: usize, laps: u64| {
        let first = done[core].fetch_add(laps, Ordering::Relaxed);
        (first..first + laps).for_each(|lap| work.operation(core, lap));
    };
    let slice = |team: &Team| (laps * threads as u64) as f64 / team.round(laps).elapsed.as_secs_f64();
    let rates = ascending(Team::with(threads, run, |team| (0..slices).map(|_| slice(team)).collect::<Vec<_>>()));
    rates[(rates.len() * 9 / 10).min(rates.len() - 1)]
}

/// Measures so many slices of one thread, and of two.
#[must_use]
pub fn measure(workload: Workload, slices: usize) -> Measured {
    let subject = Subject::new(workload);
    let [one, two] = [1, 2].map(|threads| rate(&subject, threads, slices.max(1)));
    Measured { workload, nanoseconds: 1e9 / one, ratio: two / one }
}
