//! A workload on virtual cores.

use f2fs_nat::Policy;
use f2fs_sync::manycore::{self, Machine, Outcome, Pace};

use super::reads;
use crate::scaling::{Subject, Workload, prepare};

impl Subject {
    /// Plays it on so many cores, each of which does so many operations.
    #[must_use]
    pub fn play(&self, machine: &Machine, pace: &Pace, cores: usize, laps: u64) -> Outcome {
        manycore::boot(machine);
        if self.workload == Workload::Tree {
            return reads::play(machine, pace, cores, laps);
        }
        let work = prepare(self, cores, laps, &|core, prepare| manycore::prepare(core, prepare));
        manycore::run(machine, pace, cores, laps / 8, |core| {
            for lap in 0..laps {
                work.operation(core, lap);
                manycore::lap();
            }
        })
    }

    /// The share of the instructions for each access that writes: so that an operation takes on one core of this
    /// project's machine what it takes there.
    #[must_use]
    pub fn pace(&self, laps: u64) -> Pace {
        self.pace_on(&Machine::this(), self.workload.nanoseconds(), laps)
    }

    /// The same for a machine on which an operation takes one core so many nanoseconds.
    #[must_use]
    pub fn pace_on(&self, machine: &Machine, nanoseconds: u64, laps: u64) -> Pace {
        let sharded = self.with(Policy::Sharded);
        let bare = match self.workload {
            Workload::Tree => reads::play_in_cache(machine, &Pace::default(), laps),
            _ => sharded.play(machine, &Pace::default(), 1, laps),
        };
        let (laps, writes) = (bare.laps.max(1), bare.writes.max(1));
        let wanted = (nanoseconds * 1000).saturating_sub((bare.time - bare.spent.device) / laps);
        Pace { per_write: wanted * laps / writes }
    }
}
