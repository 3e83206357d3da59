//! Many workloads, on all processors, until so many states were looked at.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use f2fs_device::Cut;
use f2fs_files::FsError;
use f2fs_sync::Mutex;
use f2fs_sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use crate::base::{Base, BaseKind};
use crate::explore::{Explorer, Plan, Tally, Violation};
use crate::random::Random;
use crate::workload::{Workload, sequences};

/// Violations after which a campaign ends.
const ENOUGH: usize = 5;
/// States of an enumerated workload, at least, unless it has fewer.
const WORTH: u64 = 5;

/// A sort of workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, clap::ValueEnum)]
pub enum Class {
    /// All sequences of one operation.
    Ace1,
    /// All sequences of two.
    Ace2,
    /// All sequences of three: by hand.
    Ace3,
    /// Operations by chance, on volumes with room, with and without checksums.
    Random,
    /// Operations by chance where logs fill holes.
    Tight,
    /// Operations by chance where segments are emptied and used again.
    Full,
    /// Several threads.
    Threads,
}

impl Class {
    /// What a campaign runs unless it is told.
    pub const USUAL: [Class; 6] = [Class::Ace1, Class::Ace2, Class::Random, Class::Tight, Class::Full, Class::Threads];

    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Class::Ace1 => "ace1",
            Class::Ace2 => "ace2",
            Class::Ace3 => "ace3",
            Class::Random => "random",
            Class::Tight => "tight",
            Class::Full => "full",
            Class::Threads => "threads",
        }
    }

    /// The part of all states that it gets, in percent.
    fn share(self) -> u64 {
        match self {
            Class::Ace1 => 15,
            Class::Ace2 | Class::Ace3 => 45,
            Class::Random => 20,
            Class::Tight | Class::Threads => 8,
            Class::Full => 4,
        }
    }

    /// States of one workload that are worth its run, for those that are made by chance.
    fn worth(self) -> u64 {
        match self {
            Class::Full => 40,
            _ => 150,
        }
    }
}

/// What a campaign does.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Which workloads.
    pub classes: Vec<Class>,
    /// How many states, about.
    pub states: u64,
    /// Where chance begins.
    pub seed: u64,
    /// How states of one workload are chosen; the quota is set by the campaign.
    pub plan: Plan,
    /// Every state of the enumerated workloads, however many that are.
    pub exhaustive: bool,
    /// When to stop, done or not.
    pub limit: Option<Duration>,
    /// Threads; 0: as many as processors.
    pub threads: usize,
    /// Where states are kept that are not as they must be.
    pub keep: PathBuf,
}

/// A state that is not as it must be, with the way to it.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The workload.
    pub workload: String,
    /// The cuts, those of recoveries behind.
    pub cuts: Vec<String>,
    /// What is wrong.
    pub what: String,
    /// Where the state was kept.
    pub image: Option<PathBuf>,
}

/// How a campaign went.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// What was looked at, by class.
    pub tallies: BTreeMap<Class, Tally>,
    /// What is wrong, a few of them at most.
    pub faults: Vec<Fault>,
    /// How long it took.
    pub took: Duration,
    /// Whether it ended because its time was over.
    pub cut_short: bool,
}

impl Outcome {
    /// All classes together.
    #[must_use]
    pub fn total(&self) -> Tally {
        self.tallies.values().fold(Tally::default(), |sum, tally| sum.plus(*tally))
    }
}

/// All base volumes, made once.
#[derive(Debug)]
pub struct Bases(Vec<Base>);

impl Bases {
    /// Makes them.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn new() -> Result<Bases, FsError> {
        Ok(Bases(BaseKind::ALL.into_iter().map(Base::new).collect::<Result<_, _>>()?))
    }

    /// The one of a kind.
    #[must_use]
    pub fn get(&self, kind: BaseKind) -> &Base {
        self.0.iter().find(|base| base.kind == kind).unwrap_or(&self.0[0])
    }
}

/// A workload and how many states of it are looked at.
type Job = (Class, Workload, usize);

fn jobs(bases: &Bases, settings: &Settings) -> Vec<Job> {
    let shares: u64 = settings.classes.iter().map(|class| class.share()).sum::<u64>().max(1);
    let mut random = Random::new(settings.seed);
    let mut all = Vec::new();
    for &class in &settings.classes {
        let states = (settings.states * class.share()).div_ceil(shares);
        let mut add = |mut workloads: Vec<Workload>, whole: bool| {
            // A workload is worth its run with a few states at least.
            let most = (states / WORTH).max(1) as usize;
            if whole && !settings.exhaustive && workloads.len() > most {
                let mut random = Random::new(settings.seed);
                (1..workloads.len()).rev().for_each(|last| workloads.swap(last, random.below(last + 1)));
                workloads.truncate(most);
            }
            let quota = states.div_ceil(workloads.len().max(1) as u64).max(1);
            let quota = if whole && settings.exhaustive { usize::MAX } else { quota as usize };
            all.extend(workloads.into_iter().map(|workload| (class, workload, quota)));
        };
        let plain = bases.get(BaseKind::Plain);
        let count = states.div_ceil(class.worth());
        let mut seeds = |make: &dyn Fn(u64) -> Workload| (0..count).map(|_| make(random.next() >> 32)).collect();
        match class {
            Class::Ace1 => {
                let bases = [plain, bases.get(BaseKind::Checksums)];
                add(bases.into_iter().flat_map(|base| sequences(base, 1)).collect(), true);
            }
            Class::Ace2 => add(sequences(plain, 2), true),
            Class::Ace3 => add(sequences(plain, 3), true),
            Class::Random => {
                let kinds = [BaseKind::Plain, BaseKind::Checksums];
                add(seeds(&|seed| Workload::Random(kinds[seed as usize % 2], seed)), false);
            }
            Class::Tight => add(seeds(&|seed| Workload::Random(BaseKind::Tight, seed)), false),
            Class::Full => add(seeds(&|seed| Workload::Random(BaseKind::Full, seed)), false),
            Class::Threads => add(seeds(&|seed| Workload::Threads(BaseKind::Plain, seed)), false),
        }
    }
    // Classes mixed, so that a campaign that is cut short has seen something of each.
    for last in (1..all.len()).rev() {
        all.swap(last, random.below(last + 1));
    }
    all
}

/// Runs a campaign. `progress` is told of workloads done, of how many, and of states.
pub fn run(bases: &Bases, settings: &Settings, progress: &(dyn Fn(u64, u64, u64) + Sync)) -> Outcome {
    let threads = match settings.threads {
        0 => std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get),
        threads => threads,
    };
    let begun = Instant::now();
    let jobs = jobs(bases, settings);
    let outcome = Mutex::new(Outcome::default());
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (done, states) = (AtomicU64::new(0), AtomicU64::new(0));
    // One pool a thread: one that waits for a check must not take up another workload meanwhile.
    let work = || {
        while let Some((class, workload, quota)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            let index = done.load(Ordering::Relaxed);
            let whole = !matches!(workload, Workload::Sequence(..));
            let plan = Plan { quota: *quota, whole, ..settings.plan };
            let mut explorer = Explorer::new(plan, Random::new(settings.seed ^ index << 20));
            let fault = explore(bases.get(workload.base()), workload, &mut explorer, &settings.keep);
            let states = states.fetch_add(explorer.tally.states, Ordering::Relaxed) + explorer.tally.states;
            progress(done.fetch_add(1, Ordering::Relaxed) + 1, jobs.len() as u64, states);
            let mut outcome = outcome.lock();
            let tally = outcome.tallies.entry(*class).or_default();
            *tally = tally.plus(explorer.tally);
            outcome.faults.extend(fault);
            outcome.cut_short = settings.limit.is_some_and(|limit| begun.elapsed() > limit);
            if outcome.faults.len() >= ENOUGH || outcome.cut_short {
                stop.store(true, Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| crate::alone(work));
        }
    });
    let mut outcome = outcome.into_inner();
    outcome.took = begun.elapsed();
    outcome
}

fn explore(base: &Base, workload: &Workload, explorer: &mut Explorer, keep: &Path) -> Option<Fault> {
    let fault = |cuts, what, image| Fault { workload: workload.to_string(), cuts, what, image };
    let run = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| workload.run(base)));
    let recording = match run {
        Ok(Ok(recording)) => recording,
        Ok(Err(error)) => return Some(fault(Vec::new(), error.to_string(), None)),
        Err(_) => return Some(fault(Vec::new(), "the workload panics".to_owned(), None)),
    };
    let violation = explorer.explore(&recording).err()?;
    let image = save(&violation, keep);
    Some(fault(violation.cuts.iter().map(Cut::to_string).collect(), violation.what, image))
}

/// Repeats one state of a workload.
///
/// # Errors
/// What is wrong with it.
pub fn repeat(bases: &Bases, workload: &Workload, cuts: &[Cut], settings: &Settings) -> Result<Tally, Fault> {
    let fault = |cuts: &[Cut], what: String, image| Fault {
        workload: workload.to_string(),
        cuts: cuts.iter().map(Cut::to_string).collect(),
        what,
        image,
    };
    let recording = workload.run(bases.get(workload.base())).map_err(|error| fault(&[], error.to_string(), None))?;
    let plan = Plan { quota: usize::MAX, whole: true, ..settings.plan };
    let mut explorer = Explorer::new(plan, Random::new(settings.seed));
    let result = if cuts.is_empty() { explorer.explore(&recording) } else { explorer.repeat(&recording, cuts) };
    match result {
        Ok(()) => Ok(explorer.tally),
        Err(violation) => {
            let image = save(&violation, &settings.keep);
            Err(fault(&violation.cuts, violation.what, image))
        }
    }
}

fn save(violation: &Violation, keep: &Path) -> Option<PathBuf> {
    let names: Vec<String> = violation.cuts.iter().map(|cut| format!("{}-{}", cut.start, cut.end)).collect();
    let path = keep.join(format!("state-{}-{:x}.img", names.join("-"), std::process::id()));
    std::fs::create_dir_all(keep).ok()?;
    violation.image.save(&path).ok()?;
    Some(path)
}
