//! A workload on several numbers of cores.

use f2fs_sync::manycore::{Machine, Outcome, Pace};

use super::Subject;

/// One number of cores.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Cores.
    pub cores: usize,
    /// Rate relative to one core.
    pub ratio: f64,
    /// The same with lines and system calls at half of the cost, and at twice the cost.
    pub band: Option<(f64, f64)>,
    /// All that the run told.
    pub outcome: Outcome,
}

/// All numbers of cores.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Operations a second of one core.
    pub one: f64,
    /// By number of cores, as asked.
    pub points: Vec<Point>,
}

impl Curve {
    /// The ratio at a number of cores that was asked for.
    #[must_use]
    pub fn ratio(&self, cores: usize) -> Option<f64> {
        self.points.iter().find(|point| point.cores == cores).map(|point| point.ratio)
    }
}

/// Plays a workload on these numbers of cores of a machine, `laps` operations on each; with the band under other costs,
/// if asked.
#[must_use]
pub fn measure(subject: &Subject, machine: &Machine, cores: &[usize], laps: u64, band: bool) -> Curve {
    measure_at(subject, machine, &subject.pace(laps.max(200)), cores, laps, band)
}

/// The same at another pace.
#[must_use]
pub fn measure_at(subject: &Subject, machine: &Machine, pace: &Pace, cores: &[usize], laps: u64, band: bool) -> Curve {
    let one = one(subject, machine, pace, laps);
    let (half, double) = (machine.with_costs(50), machine.with_costs(200));
    let ends = band.then(|| [&half, &double].map(|machine| self::one(subject, machine, pace, laps)));
    let points = cores
        .iter()
        .map(|cores| {
            let outcome = subject.play(machine, pace, *cores, laps);
            let band = ends.map(|[cheap, dear]| {
                let cheap = subject.play(&half, pace, *cores, laps).rate() / cheap;
                (cheap, subject.play(&double, pace, *cores, laps).rate() / dear)
            });
            Point { cores: *cores, ratio: outcome.rate() / one, band, outcome }
        })
        .collect();
    Curve { one, points }
}

fn one(subject: &Subject, machine: &Machine, pace: &Pace, laps: u64) -> f64 {
    subject.play(machine, pace, 1, laps.max(200)).rate()
}
