//! The workloads, and how long their operations take.

use f2fs_nat::Policy;
use f2fs_sync::manycore::{Machine, Outcome, Pace};

use super::{nids, reads, volume};

/// The operations that are played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Unlink in private directories, with no free node ID left.
    Mwul,
    /// Unlink in a shared directory, with no free node ID left.
    Mwum,
    /// Create in private directories.
    Mwcl,
    /// Create in a shared directory, and write 4 KiB.
    Mwcm,
    /// Read a block of a private file.
    Drbl,
    /// Read a block of one's own in a shared file.
    Drbm,
    /// Read the same block of a shared file.
    Drbh,
    /// Overwrite a block of a private file.
    Dwol,
    /// Overwrite a block of one's own in a shared file.
    Dwom,
    /// Allocate, bind and free a node ID, with both balances.
    Nids,
    /// Free a node ID and balance, while few are free.
    NidsShort,
    /// Random reads of one file through a tree of ranges under one lock, on a device.
    Tree,
}

/// The kind of measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subject {
    /// The workload.
    pub workload: Workload,
    /// How free node IDs are found.
    pub policy: Policy,
    /// Names are changed under one lock for the directory, as in Linux.
    pub whole_directory: bool,
}

impl Workload {
    /// All of them.
    pub const ALL: [Workload; 12] = [
        Workload::Mwul,
        Workload::Mwum,
        Workload::Mwcl,
        Workload::Mwcm,
        Workload::Drbl,
        Workload::Drbm,
        Workload::Drbh,
        Workload::Dwol,
        Workload::Dwom,
        Workload::Nids,
        Workload::NidsShort,
        Workload::Tree,
    ];

    /// Its name in commands and tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Workload::Mwul => "mwul",
            Workload::Mwum => "mwum",
            Workload::Mwcl => "mwcl",
            Workload::Mwcm => "mwcm",
            Workload::Drbl => "drbl",
            Workload::Drbm => "drbm",
            Workload::Drbh => "drbh",
            Workload::Dwol => "dwol",
            Workload::Dwom => "dwom",
            Workload::Nids => "nids",
            Workload::NidsShort => "nids-short",
            Workload::Tree => "tree",
        }
    }

    /// The workload with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Workload> {
        Workload::ALL.into_iter().find(|workload| workload.name() == name)
    }

    /// Nanoseconds of an operation on one thread of this project's machine, for `sharded`: estimates, not
    /// measurements. The part that the model's accesses do not explain is instructions.
    #[must_use]
    pub fn nanoseconds(self) -> u64 {
        match self {
            Workload::Mwul | Workload::Mwum => 3_000,
            Workload::Mwcl => 3_000,
            Workload::Mwcm => 6_500,
            Workload::Drbl | Workload::Drbm | Workload::Drbh => 450,
            Workload::Dwol | Workload::Dwom => 2_000,
            Workload::Nids => 250,
            Workload::NidsShort => 120,
            Workload::Tree => 1_500,
        }
    }
}

impl Subject {
    /// A workload with the library's defaults.
    #[must_use]
    pub fn new(workload: Workload) -> Subject {
        Subject { workload, policy: Policy::Sharded, whole_directory: false }
    }

    /// The same with another policy.
    #[must_use]
    pub fn with(self, policy: Policy) -> Subject {
        Subject { policy, ..self }
    }

    /// Plays it on so many cores, each of which does so many operations.
    #[must_use]
    pub fn play(&self, machine: &Machine, pace: &Pace, cores: usize, laps: u64) -> Outcome {
        match self.workload {
            Workload::Nids | Workload::NidsShort => nids::play(self, machine, pace, cores, laps),
            Workload::Tree => reads::play(machine, pace, cores, laps),
            _ => volume::play(self, machine, pace, cores, laps),
        }
    }

    /// The share of the instructions for each access that writes: so that an operation takes on one core of this
    /// project's machine what it takes there.
    #[must_use]
    pub fn pace(&self, laps: u64) -> Pace {
        let sharded = self.with(Policy::Sharded);
        let bare = sharded.play(&Machine::this(), &Pace::default(), 1, laps);
        let (laps, writes) = (bare.laps.max(1), bare.writes.max(1));
        let wanted = (self.workload.nanoseconds() * 1000).saturating_sub((bare.time - bare.spent.device) / laps);
        Pace { per_write: wanted * laps / writes }
    }
}
