//! Which workloads a campaign runs, and how many states of each it looks at.

use serde::{Deserialize, Serialize};

use super::{Bases, Settings};
use crate::base::BaseKind;
use crate::workload::{Workload, broad, cleaning, deep, holes, sequences};
use f2fs_device_test::Random;

/// States of an enumerated workload, at least, unless it has fewer.
const WORTH: u64 = 5;

/// Workloads of several threads and one that cleans.
const CLEANING_THREADS: usize = 16;

/// A sort of workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// All sequences of one operation.
    Ace1,
    /// All sequences of two.
    Ace2,
    /// All sequences of three: by hand.
    Ace3,
    /// Files with direct and indirect nodes.
    Deep,
    /// Files that get holes, and zeros with blocks.
    Holes,
    /// Large directories.
    Broad,
    /// Sections are emptied between syncs.
    Cleaning,
    /// Random operations, on volumes with room, with and without checksums.
    Random,
    /// Random operations on a few names, some of them with a journal for syncs, or for data as well.
    Names,
    /// Random operations where logs fill holes.
    Tight,
    /// Random operations where segments are emptied and used again; every second volume has a journal.
    Full,
    /// Several threads, each with names of its own.
    Threads,
    /// Several threads that share files and directories.
    Shared,
    /// Random operations on a volume on several devices. Each device keeps any part of its writes until it is flushed.
    Several,
    /// Random operations on a volume with a journal for its syncs, on a device of its own.
    Journaled,
    /// The same with data in the journal; every third workload has a page cache, too.
    Absorbed,
    /// Random operations, by one thread and by several, with a page cache.
    Cached,
    /// Random operations on a volume on zones.
    Zoned,
}

impl Class {
    /// The classes that a campaign runs unless it is told.
    pub const USUAL: [Class; 17] = [
        Class::Ace1,
        Class::Ace2,
        Class::Deep,
        Class::Holes,
        Class::Broad,
        Class::Cleaning,
        Class::Random,
        Class::Names,
        Class::Tight,
        Class::Full,
        Class::Threads,
        Class::Shared,
        Class::Several,
        Class::Journaled,
        Class::Absorbed,
        Class::Cached,
        Class::Zoned,
    ];

    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Class::Ace1 => "ace1",
            Class::Ace2 => "ace2",
            Class::Ace3 => "ace3",
            Class::Deep => "deep",
            Class::Holes => "holes",
            Class::Broad => "broad",
            Class::Cleaning => "cleaning",
            Class::Random => "random",
            Class::Names => "names",
            Class::Tight => "tight",
            Class::Full => "full",
            Class::Threads => "threads",
            Class::Shared => "shared",
            Class::Several => "several",
            Class::Journaled => "journaled",
            Class::Absorbed => "absorbed",
            Class::Cached => "cached",
            Class::Zoned => "zoned",
        }
    }

    /// The part of all states that it gets, in percent.
    fn share(self) -> u64 {
        match self {
            Class::Ace1 => 15,
            Class::Ace2 | Class::Ace3 => 35,
            Class::Random => 20,
            Class::Shared | Class::Names => 5,
            Class::Tight | Class::Threads => 7,
            Class::Deep
            | Class::Holes
            | Class::Full
            | Class::Several
            | Class::Journaled
            | Class::Absorbed
            | Class::Cached
            | Class::Zoned => 3,
            Class::Broad | Class::Cleaning => 1,
        }
    }

    /// Whether its workloads are all that there are of a kind.
    fn is_enumerated(self) -> bool {
        matches!(
            self,
            Class::Ace1 | Class::Ace2 | Class::Ace3 | Class::Deep | Class::Holes | Class::Broad | Class::Cleaning
        )
    }

    /// States of one workload that are worth its run, for those that are random.
    fn worth(self) -> u64 {
        match self {
            Class::Full | Class::Zoned | Class::Names => 40,
            _ => 150,
        }
    }
}

/// A workload and how many states of it are looked at.
pub(super) struct Job {
    pub(super) class: Class,
    pub(super) workload: Workload,
    pub(super) quota: usize,
}

/// The workloads of `round`, for so many states in all, about. Those of enumerated classes are all of round 0; those by
/// chance are others in every round.
pub(super) fn jobs(bases: &Bases, settings: &Settings, states: u64, round: u64) -> Vec<Job> {
    let classes: Vec<Class> =
        settings.classes.iter().copied().filter(|class| round == 0 || !class.is_enumerated()).collect();
    let shares: u64 = classes.iter().map(|class| class.share()).sum::<u64>().max(1);
    let mut random = Random::new(settings.seed.wrapping_add(round << 32));
    let mut all = Vec::new();
    for class in classes {
        let states = (states * class.share()).div_ceil(shares);
        let mut workloads = class.workloads(bases, states, &mut random);
        let exhaustive = class.is_enumerated() && (settings.exhaustive || class == Class::Ace1);
        // A workload is worth its run with a few states at least.
        let most = (states / WORTH).max(1) as usize;
        if class.is_enumerated() && !exhaustive && workloads.len() > most {
            shuffle(&mut workloads, &mut Random::new(settings.seed));
            workloads.truncate(most);
        }
        let quota = states.div_ceil(workloads.len().max(1) as u64).max(1);
        let quota = if exhaustive { usize::MAX } else { quota as usize };
        all.extend(workloads.into_iter().map(|workload| Job { class, workload, quota }));
    }
    // Classes mixed, so that a campaign that is cut short has seen something of each.
    shuffle(&mut all, &mut random);
    all
}

fn shuffle<T>(all: &mut [T], random: &mut Random) {
    for last in (1..all.len()).rev() {
        all.swap(last, random.below(last + 1));
    }
}

impl Class {
    fn workloads(self, bases: &Bases, states: u64, random: &mut Random) -> Vec<Workload> {
        let count = states.div_ceil(self.worth());
        let plain = bases.get(BaseKind::Plain);
        let mut seeds = |make: &dyn Fn(u64) -> Workload| (0..count).map(|_| make(random.next() >> 32)).collect();
        match self {
            Class::Ace1 => {
                let bases = [plain, bases.get(BaseKind::Checksums)];
                bases.into_iter().flat_map(|base| sequences(base, 1)).collect()
            }
            Class::Ace2 => sequences(plain, 2),
            Class::Ace3 => sequences(plain, 3),
            Class::Deep => deep(),
            Class::Holes => holes(),
            Class::Broad => broad(),
            Class::Cleaning => {
                let threads = (0..CLEANING_THREADS).map(|_| Workload::Threads(BaseKind::Tight, random.next() >> 32));
                cleaning().into_iter().chain(threads).collect()
            }
            Class::Random => {
                let kinds = [BaseKind::Plain, BaseKind::Checksums];
                seeds(&|seed| match seed % 16 {
                    15 => Workload::Random(BaseKind::Broad, seed),
                    _ => Workload::Random(kinds[seed as usize % 2], seed),
                })
            }
            Class::Names => seeds(&|seed| match seed % 8 {
                7 => Workload::Names(BaseKind::DataJournaled, seed),
                6 => Workload::Names(BaseKind::Journaled, seed),
                5 => Workload::Names(BaseKind::Checksums, seed),
                _ => Workload::Names(BaseKind::Plain, seed),
            }),
            Class::Tight => seeds(&|seed| Workload::Random(BaseKind::Tight, seed)),
            Class::Full => seeds(&|seed| match seed % 2 {
                1 => Workload::Random(BaseKind::FullJournaled, seed),
                _ => Workload::Random(BaseKind::Full, seed),
            }),
            Class::Several => seeds(&|seed| match seed % 8 {
                7 => Workload::Shared(BaseKind::Several, seed),
                6 => Workload::Threads(BaseKind::Several, seed),
                _ => Workload::Random(BaseKind::Several, seed),
            }),
            Class::Journaled => seeds(&|seed| match seed % 4 {
                3 => Workload::Threads(BaseKind::WideJournaled, seed),
                _ => Workload::Random(BaseKind::Journaled, seed),
            }),
            Class::Absorbed => seeds(&|seed| match seed % 4 {
                3 => Workload::Threads(BaseKind::WideDataJournaled, seed),
                _ => Workload::Random(BaseKind::DataJournaled, seed),
            }),
            Class::Cached => seeds(&|seed| match seed % 8 {
                7 => Workload::Threads(BaseKind::Cached, seed),
                6 => Workload::Shared(BaseKind::Cached, seed),
                _ => Workload::Random(BaseKind::Cached, seed),
            }),
            Class::Zoned => {
                let kinds = [BaseKind::Zoned, BaseKind::ZonedInPart];
                seeds(&|seed| match seed % 8 {
                    4 => Workload::Shared(kinds[seed as usize / 8 % 2], seed),
                    5.. => Workload::Threads(kinds[seed as usize % 2], seed),
                    _ => Workload::Random(kinds[seed as usize % 2], seed),
                })
            }
            Class::Shared => seeds(&|seed| match seed % 8 {
                7 => Workload::Shared(BaseKind::WideDataJournaled, seed),
                6 => Workload::Shared(BaseKind::WideJournaled, seed),
                _ => Workload::Shared(BaseKind::Wide, seed),
            }),
            Class::Threads => seeds(&|seed| match seed % 8 {
                7 => Workload::Threads(BaseKind::Tight, seed),
                _ => Workload::Threads(BaseKind::Wide, seed),
            }),
        }
    }
}
