//! Workloads measured on threads of this machine.

use super::{Subject, Workload, prepare};
use crate::report::ascending;
use crate::workers::Team;

/// A workload on one thread and on two.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The workload.
    pub workload: Workload,
    /// Nanoseconds of an operation on one thread: the median of all rounds.
    pub nanoseconds: f64,
    /// Operations a second of two threads over those of one: the median of the rounds' ratios.
    pub ratio: f64,
    /// The lowest and the highest of the ratios.
    pub range: (f64, f64),
}

/// Operations a second. Volumes are made anew each time, since most operations leave less to do.
fn rate(subject: &Subject, threads: usize, laps: u64) -> f64 {
    let work = prepare(subject, threads, laps, &|_, prepare| prepare());
    let run = |core: usize, laps: u64| (0..laps).for_each(|lap| work.operation(core, lap));
    let round = Team::with(threads, run, |team| team.round(laps));
    (laps * threads as u64) as f64 / round.elapsed.as_secs_f64()
}

/// Operations of each thread that take about 60 ms; fewer where each leaves something behind.
fn laps(workload: Workload) -> u64 {
    let most = if workload.leaves_something() { 20_000 } else { u64::MAX };
    (60_000_000 / workload.nanoseconds().max(1)).min(most)
}

/// Measures in so many rounds of one thread and two in turns.
#[must_use]
pub fn measure(workload: Workload, rounds: usize) -> Measured {
    let laps = laps(workload);
    let subject = Subject::new(workload);
    let (mut times, mut ratios) = (Vec::new(), Vec::new());
    for _ in 0..rounds.max(1) {
        let [one, two] = [1, 2].map(|threads| rate(&subject, threads, laps));
        times.push(1e9 / one);
        ratios.push(two / one);
    }
    let median = |values: &[f64]| values[values.len() / 2];
    let (times, ratios) = (ascending(times), ascending(ratios));
    Measured {
        workload,
        nanoseconds: median(&times),
        ratio: median(&ratios),
        range: (ratios[0], ratios[ratios.len() - 1]),
    }
}
