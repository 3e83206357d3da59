//! Many workloads, on all processors, until so many states were looked at.

mod diary;
mod jobs;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use f2fs_device_test::Cut;
use f2fs_files::FsError;
use f2fs_sync::Mutex;
use f2fs_sync::atomic::{AtomicU64, Ordering};

use crate::base::{Base, BaseKind};
use crate::contents::Contents;
use crate::explore::{Explorer, Plan, Tally, Violation};
use crate::pool;
use crate::record::Recording;
use crate::watch::{self, Look};
use crate::workload::Workload;
use f2fs_device_test::Random;

pub use diary::{Diary, DiaryError};
pub use jobs::Class;

/// How often the diary is written while a campaign goes on.
const SAVED: Duration = Duration::from_secs(300);

/// The settings of a campaign.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Which workloads.
    pub classes: Vec<Class>,
    /// How many distinct states at least, if the classes have so many.
    pub states: u64,
    /// Where chance begins.
    pub seed: u64,
    /// How states of one workload are chosen; the quota is set by the campaign.
    pub plan: Plan,
    /// Every state of the enumerated workloads, however many that are.
    pub exhaustive: bool,
    /// When to stop, done or not.
    pub limit: Option<Duration>,
    /// Violations after which it ends.
    pub enough: usize,
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
    /// The fault.
    pub what: String,
    /// Where the state was kept.
    pub image: Option<PathBuf>,
}

/// How a campaign went.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The counts by class, with those of earlier campaigns of the diary.
    pub tallies: BTreeMap<Class, Tally>,
    /// The faults, a few of them at most.
    pub faults: Vec<Fault>,
    /// How long it took, earlier campaigns of the diary included.
    pub took: Duration,
    /// Threads that worked.
    pub threads: usize,
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

/// Runs a campaign, after those of the diary. `progress` is told of workloads done, of how many, and of distinct
/// states. `hangs` is told how it went until then when the look at a state does not end: nor will the campaign.
///
/// # Errors
/// The diary cannot be written.
pub fn run(
    bases: &Bases,
    settings: &Settings,
    diary: &Diary,
    progress: &(dyn Fn(u64, u64, u64) + Sync),
    hangs: &(dyn Fn(&Outcome) + Sync),
) -> Result<Outcome, DiaryError> {
    let begun = Instant::now();
    let threads = pool::threads(settings.threads);
    let first = Outcome { tallies: diary.tallies.clone(), threads, ..Outcome::default() };
    let (done, distinct) = (AtomicU64::new(0), AtomicU64::new(first.total().distinct));
    let settings = &Settings { seed: settings.seed.wrapping_add(diary.campaigns), ..settings.clone() };
    let outcome = Mutex::new(first);
    let saved = Mutex::new((begun, Ok(())));
    let hang = |look: Look| {
        let Look { workload, cuts } = look;
        let mut outcome = outcome.lock().clone();
        outcome.took = diary.took + begun.elapsed();
        outcome.faults.push(Fault { workload, cuts, what: "it does not end".to_owned(), image: None });
        hangs(&outcome);
    };
    let (mut all, mut round, mut going) = (0, 0, true);
    // Further workloads make up for those that chance chose twice.
    while going {
        let missing = settings.states.saturating_sub(distinct.load(Ordering::Relaxed));
        let jobs = jobs::jobs(bases, settings, missing + missing / 8, round);
        if round > 0 && (missing == 0 || jobs.is_empty()) {
            break;
        }
        all += jobs.len() as u64;
        let explore_one = |index: usize, job: &jobs::Job| {
            let whole = !matches!(job.workload, Workload::Sequence(..));
            let plan = Plan { quota: job.quota, whole, ..settings.plan };
            let random = Random::new(settings.seed ^ round << 48 ^ (index as u64) << 20);
            let base = bases.get(job.workload.base());
            let mut explorer = Explorer::new(plan, random, base.print(), &diary.contents);
            let fault = explore(base, &job.workload, &mut explorer, &settings.keep);
            let distinct = distinct.fetch_add(explorer.tally.distinct, Ordering::Relaxed) + explorer.tally.distinct;
            progress(done.fetch_add(1, Ordering::Relaxed) + 1, all, distinct);
            let mut outcome = outcome.lock();
            let tally = outcome.tallies.entry(job.class).or_default();
            *tally = tally.plus(explorer.tally);
            outcome.faults.extend(fault);
            outcome.took = diary.took + begun.elapsed();
            outcome.cut_short = settings.limit.is_some_and(|limit| begun.elapsed() > limit);
            let going = outcome.faults.len() < settings.enough && !outcome.cut_short;
            // Other threads look on meanwhile: what they find is written the next time.
            let now = outcome.clone();
            drop(outcome);
            let mut saved = saved.lock();
            if saved.0.elapsed() > SAVED {
                *saved = (Instant::now(), diary.save(&now));
            }
            going && saved.1.is_ok()
        };
        watch::during(&hang, || pool::each(&jobs, settings.threads, explore_one));
        if saved.lock().1.is_err() {
            break;
        }
        let outcome = outcome.lock();
        going = outcome.faults.len() < settings.enough && !outcome.cut_short;
        round += 1;
    }
    saved.into_inner().1?;
    let outcome = Outcome { took: diary.took + begun.elapsed(), ..outcome.into_inner() };
    diary.save(&outcome)?;
    Ok(outcome)
}

fn explore(base: &Base, workload: &Workload, explorer: &mut Explorer<'_>, keep: &Path) -> Option<Fault> {
    let fault = |cuts, what, image| Fault { workload: workload.to_string(), cuts, what, image };
    watch::explores(&workload.to_string());
    let recording = match pool::caught(|| workload.run(base).map_err(|error| error.to_string())) {
        Ok(recording) => recording,
        Err(what) => return Some(fault(Vec::new(), format!("the workload fails: {what}"), None)),
    };
    let violation = explorer.explore(&recording).err()?;
    let image = save(&violation, &recording, keep);
    // Hours may pass until the campaign ends.
    eprintln!("a violation in `{workload}`: {}", violation.what.lines().next().unwrap_or_default());
    Some(fault(violation.cuts.iter().map(Cut::to_string).collect(), violation.what, image))
}

/// Repeats one state of a workload.
///
/// # Errors
/// The fault.
pub fn repeat(bases: &Bases, workload: &Workload, cuts: &[Cut], settings: &Settings) -> Result<Tally, Fault> {
    let fault = |cuts: &[Cut], what: String, image| Fault {
        workload: workload.to_string(),
        cuts: cuts.iter().map(Cut::to_string).collect(),
        what,
        image,
    };
    let base = bases.get(workload.base());
    let recording = workload.run(base).map_err(|error| fault(&[], error.to_string(), None))?;
    let plan = Plan { quota: usize::MAX, whole: true, ..settings.plan };
    let contents = Contents::default();
    let mut explorer = Explorer::new(plan, Random::new(settings.seed), base.print(), &contents);
    let result = if cuts.is_empty() { explorer.explore(&recording) } else { explorer.repeat(&recording, cuts) };
    match result {
        Ok(()) => Ok(explorer.tally),
        Err(violation) => {
            let image = save(&violation, &recording, &settings.keep);
            Err(fault(&violation.cuts, violation.what, image))
        }
    }
}

/// Keeps the state, and beside it what was done: threads do not do the same a second time.
fn save(violation: &Violation, recording: &Recording, keep: &Path) -> Option<PathBuf> {
    let names: Vec<String> = violation.cuts.iter().map(|cut| format!("{}-{}", cut.start, cut.end)).collect();
    let path = keep.join(format!("state-{}-{:x}.img", names.join("-"), std::process::id()));
    std::fs::create_dir_all(keep).ok()?;
    violation.image.save(&path).ok()?;
    std::fs::write(path.with_extension("txt"), recording.to_string()).ok()?;
    Some(path)
}
