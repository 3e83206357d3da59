//! The workloads that are crashed.
//!
//! | Text | What it is |
//! |---|---|
//! | `plain: create /A/new; sync /A/new` | operations on a base volume, as the enumeration makes them, or anybody |
//! | `random tight 7` | random operations, from a seed |
//! | `names plain 7` | random operations on a few names that are used again and again |
//! | `threads wide 7` | three threads at once, each in its own directory (in half of the runs with a few names), and a fourth that writes checkpoints |
//! | `shared wide 7` | three threads at once, all in the same files and directories, and the fourth |
//! | `threads tight 7` | the same, and the fourth empties sections too |

mod ace;
mod broad;
mod chance;
mod cleaning;
mod deep;
mod holes;
mod names;
mod shared;

use std::fmt;
use std::str::FromStr;

use f2fs_files::Options;
use f2fs_sync::Arc;
use f2fs_sync::atomic::{AtomicUsize, Ordering};
use f2fs_volume::{Allocation, CostModel, FsyncMode, VolumeOptions};

use crate::base::{Base, BaseKind, LANES, options};
use crate::op::Op;
use crate::record::{Recording, Source, StepError, record, record_sharing};
use crate::tree::Tree;

pub use ace::{alphabet, sequences};
pub use broad::broad;
pub(crate) use chance::Steps;
pub use cleaning::cleaning;
pub use deep::deep;
pub use holes::holes;
use names::Names;
use shared::{Meeting, Sharing};

/// Checkpoints that a workload with several threads writes at most, beside what its operations cause: now and then,
/// with an even seed, and else one after the other, so that one lies between the two halves of whatever has two.
const CHECKPOINTS: [usize; 2] = [12, 100];

/// Bytes of the page cache on [`BaseKind::Cached`].
const CACHES: [u64; 2] = [16 << 20, 128 << 10];

/// Blocks of data that may wait in memory where data goes into the journal: any number, so few that there is often no
/// room, and none, so that every write goes to the device at once.
const WAITING: [u64; 3] = [16 << 10, 8, 0];

/// Threads that share files and directories.
const SHARING: usize = 3;

/// The operations before the crash.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Workload {
    /// These operations, one after the other.
    Sequence(BaseKind, Vec<Op>),
    /// Random operations.
    Random(BaseKind, u64),
    /// Random operations on a few names.
    Names(BaseKind, u64),
    /// Several threads, each with names of its own.
    Threads(BaseKind, u64),
    /// Several threads that share files and directories.
    Shared(BaseKind, u64),
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Workload::Sequence(base, ops) => {
                let texts: Vec<String> = ops.iter().map(Op::to_string).collect();
                write!(f, "{}: {}", base.name(), texts.join("; "))
            }
            Workload::Random(base, seed) => write!(f, "random {} {seed}", base.name()),
            Workload::Names(base, seed) => write!(f, "names {} {seed}", base.name()),
            Workload::Threads(base, seed) => write!(f, "threads {} {seed}", base.name()),
            Workload::Shared(base, seed) => write!(f, "shared {} {seed}", base.name()),
        }
    }
}

/// A text that is not a workload.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a workload")]
pub struct ParseWorkloadError(String);

impl FromStr for Workload {
    type Err = ParseWorkloadError;

    fn from_str(text: &str) -> Result<Workload, ParseWorkloadError> {
        parse(text).ok_or_else(|| ParseWorkloadError(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<Workload> {
    let base = |name: &str| BaseKind::ALL.into_iter().find(|kind| kind.name() == name.trim());
    if let Some((name, ops)) = text.split_once(':') {
        let ops = ops.split(';').map(str::trim).filter(|op| !op.is_empty());
        return Some(Workload::Sequence(base(name)?, ops.map(|op| op.parse().ok()).collect::<Option<_>>()?));
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    let (base, seed) = (base(words.get(1)?)?, words.get(2)?.parse().ok()?);
    match *words.first()? {
        "random" => Some(Workload::Random(base, seed)),
        "names" => Some(Workload::Names(base, seed)),
        "threads" => Some(Workload::Threads(base, seed)),
        "shared" => Some(Workload::Shared(base, seed)),
        _ => None,
    }
}

impl Workload {
    /// The volume it begins on.
    #[must_use]
    pub fn base(&self) -> BaseKind {
        match self {
            Workload::Sequence(base, _) | Workload::Random(base, _) => *base,
            Workload::Names(base, _) | Workload::Threads(base, _) | Workload::Shared(base, _) => *base,
        }
    }

    /// How the volume is opened for it, and after its crashes. Enumerated workloads run in a way that does not depend
    /// on the processor they run on; those by chance take turns with the ways to find free NIDs and to use segments
    /// with holes.
    #[must_use]
    pub fn options(&self) -> Options {
        use f2fs_nat::Policy;
        let policies = [Policy::KernelScan, Policy::Sharded, Policy::CLUE];
        let allocations = [
            Allocation::ssr(),
            Allocation::partial(CostModel::nvme()),
            Allocation::selective_greedy(CostModel::nvme()),
            Allocation::selective_optimal(CostModel::nvme()),
        ];
        let options = options(|volume: VolumeOptions| match self {
            Workload::Sequence(..) => volume.nid_policy(Policy::KernelScan).lanes(1).write_behind(WAITING[0]),
            Workload::Random(_, seed) => {
                let seed = *seed as usize;
                let volume = volume.nid_policy(policies[seed % 3]).lanes(1 + seed / 3 % 2);
                let volume = written_ahead(volume, seed as u64).write_behind(WAITING[seed / 2 % 3]);
                let volume = strictly(volume, seed & 64 != 0);
                volume.allocation(allocations[seed / 6 % 4].clone())
            }
            Workload::Names(_, seed) => strictly(volume.nid_policy(policies[*seed as usize % 3]), seed & 4 != 0),
            Workload::Threads(BaseKind::Tight, seed) => {
                let volume = written_ahead(volume.nid_policy(Policy::Sharded).lanes(2), *seed);
                volume.allocation(allocations[*seed as usize / 8 % 4].clone())
            }
            Workload::Threads(base, seed) | Workload::Shared(base, seed) => {
                let volume = written_ahead(volume.nid_policy(Policy::Sharded).lanes(2), *seed);
                let volume = strictly(volume, seed & 16 != 0);
                match base.has_data_in_journal() {
                    true => volume.write_behind(WAITING[*seed as usize / 4 % 3]),
                    false => volume,
                }
            }
        });
        match (self.base(), self) {
            // One that takes all, or one that is always full.
            (BaseKind::Cached, Workload::Random(_, seed) | Workload::Threads(_, seed) | Workload::Shared(_, seed)) => {
                options.page_cache(CACHES[*seed as usize / 5 % 2])
            }
            (BaseKind::Cached, Workload::Sequence(..) | Workload::Names(..)) => options.page_cache(CACHES[0]),
            // Data that write-back sends for several files at once is told to the journal, too.
            (BaseKind::DataJournaled | BaseKind::LineJournaled, Workload::Random(_, seed))
            | (BaseKind::WideDataJournaled, Workload::Threads(_, seed) | Workload::Shared(_, seed))
                if seed % 3 == 2 =>
            {
                options.page_cache(CACHES[*seed as usize / 5 % 2])
            }
            _ => options,
        }
    }

    /// Runs it on a copy of its base.
    ///
    /// # Errors
    /// [`StepError`] if an operation comes out otherwise than the model.
    pub fn run(&self, base: &Base) -> Result<Recording, StepError> {
        let device = base.device.snapshot();
        let options = self.options();
        match self {
            Workload::Sequence(_, ops) => {
                let mut ops = ops.iter().cloned();
                let source: Source<'_> = Box::new(move |_| ops.next());
                record(device, &options, &base.tree, 1, vec![("/".into(), source)], false)
            }
            Workload::Random(kind, seed) => {
                let mut steps = Steps::new(*seed, "", *kind);
                let source: Source<'_> = Box::new(move |tree| steps.next(tree));
                record(device, &options, &base.tree, seed << 16, vec![("/".into(), source)], true)
            }
            Workload::Names(_, seed) => {
                let mut names = Names::new(*seed);
                let source: Source<'_> = Box::new(move |tree| names.next(tree));
                record(device, &options, &base.tree, seed << 16, vec![("/".into(), source)], true)
            }
            Workload::Threads(kind, seed) => {
                record(device, &options, &base.tree, seed << 16, lanes(*kind, *seed), true)
            }
            Workload::Shared(_, seed) => {
                let done = Arc::new(AtomicUsize::new(0));
                let meeting = Meeting::new(SHARING);
                let sources = (0..SHARING as u64).map(|thread| -> Source<'_> {
                    let mut steps = Sharing::new(seed ^ thread << 32, meeting.clone());
                    counted(&done, move |_| steps.next())
                });
                let beside = beside(*seed, done.clone(), SHARING, false);
                record_sharing(device, &options, &base.tree, seed << 16, sources.collect(), beside)
            }
        }
    }
}

/// With every second pair of seeds, checkpoints write all that is dirty before they keep operations out.
fn written_ahead(volume: VolumeOptions, seed: u64) -> VolumeOptions {
    if (seed / 2).is_multiple_of(2) { volume.nodes_left_to_freeze(0) } else { volume }
}

/// With syncs of which a crash leaves no half, or as in Linux.
fn strictly(volume: VolumeOptions, strict: bool) -> VolumeOptions {
    volume.fsync(if strict { FsyncMode::Strict } else { FsyncMode::Posix })
}

/// A lane for each directory that is made for one, and a last one that writes checkpoints. Where sections are worth it,
/// that one empties them as well, and has the files whose blocks move.
fn lanes<'a>(kind: BaseKind, seed: u64) -> Vec<(String, Source<'a>)> {
    let done = Arc::new(AtomicUsize::new(0));
    let mut sources: Vec<(String, Source<'_>)> = Vec::new();
    for (index, dir) in LANES.into_iter().enumerate() {
        let seed = seed ^ (index as u64) << 32;
        let source: Source<'_> = if kind != BaseKind::Tight && seed & 32 != 0 {
            let mut names = Names::in_directory(seed, dir);
            counted(&done, move |tree| names.next(tree))
        } else {
            let mut steps = Steps::new(seed, dir, kind);
            counted(&done, move |tree| steps.next(tree))
        };
        sources.push((dir.to_owned(), source));
    }
    let cleans = kind == BaseKind::Tight;
    sources.push((if cleans { "/fill" } else { "/none" }.into(), beside(seed, done, LANES.len(), cleans)));
    sources
}

/// A thread's operations; `done` counts the threads that have no more.
fn counted<'a>(done: &Arc<AtomicUsize>, mut next: impl FnMut(&Tree) -> Option<Op> + Send + 'a) -> Source<'a> {
    let done = Arc::clone(done);
    Box::new(move |tree| {
        let op = next(tree);
        if op.is_none() {
            done.fetch_add(1, Ordering::Relaxed);
        }
        op
    })
}

/// Checkpoints, and cleaning if that is wanted, until so many threads are done.
fn beside<'a>(seed: u64, done: Arc<AtomicUsize>, threads: usize, cleans: bool) -> Source<'a> {
    let mut left = CHECKPOINTS[(seed % 2) as usize];
    Box::new(move |_| {
        if seed.is_multiple_of(2) {
            std::thread::sleep(std::time::Duration::from_micros(200));
        }
        left -= 1;
        let next = if cleans && !left.is_multiple_of(3) { Op::Clean } else { Op::Checkpoint };
        (left > 0 && done.load(Ordering::Relaxed) < threads).then_some(next)
    })
}

#[cfg(test)]
mod tests {
    use f2fs_device_test::Event;
    use f2fs_files::FsError;

    use super::*;

    #[test]
    fn the_same_operations_leave_the_same_images() -> Result<(), Box<dyn std::error::Error>> {
        let base = Base::new(BaseKind::Plain)?;
        let text = "plain: create /A/new; write /A/new 0 6000; sync /A/new; rename /A/foo /B/bar; checkpoint";
        let workload: Workload = text.parse()?;
        let run = || workload.run(&base);
        let (one, other) = (run()?, run()?);
        assert!(one.log.events().len() > 5, "{}", one.log.events().len());
        assert_eq!(one.log.events().len(), other.log.events().len());
        for (one, other) in one.log.events().iter().zip(other.log.events()) {
            assert_eq!(one.range(), other.range());
            if let (Event::Write { data: one, .. }, Event::Write { data: other, .. }) = (one, other) {
                assert!(one.as_bytes() == other.as_bytes(), "{:?}", (one.blocks(), other.blocks()));
            }
        }
        Ok(())
    }

    #[test]
    fn deep_files_have_direct_nodes() -> Result<(), Box<dyn std::error::Error>> {
        let base = Base::new(BaseKind::Plain)?;
        let all = deep();
        assert_eq!(all.len(), 2 * 34, "each text is a workload");
        for workload in all.iter().filter(|workload| workload.base() == BaseKind::Plain) {
            let recording = workload.run(&base)?;
            let steps = &recording.lanes[0].steps;
            let promised = |step: &crate::record::Step| step.is_synced() || step.versions.0 < step.versions.1;
            assert!(steps.iter().any(promised), "{workload}");
        }
        Ok(())
    }

    #[test]
    fn holes_are_made_and_made_durable() -> Result<(), Box<dyn std::error::Error>> {
        let base = Base::new(BaseKind::Plain)?;
        let all = holes();
        assert_eq!(all.len(), 2 * (3 * 3 * 10 + 3), "each text is a workload");
        for workload in all.iter().filter(|workload| workload.base() == BaseKind::Plain) {
            let recording = workload.run(&base)?;
            let steps = &recording.lanes[0].steps;
            assert!(steps.iter().any(|step| matches!(step.op, Op::Punch(..) | Op::Zero(..))), "{workload}");
            assert!(steps.iter().any(crate::record::Step::is_synced), "{workload}");
        }
        Ok(())
    }

    #[test]
    fn large_directories_have_several_levels_and_change_in_all_of_them() -> Result<(), Box<dyn std::error::Error>> {
        let base = Base::new(BaseKind::Broad)?;
        let all = broad();
        assert_eq!(all.len(), 3 * 22, "each text is a workload");
        let fs = f2fs_files::FileSystem::open(Arc::new(base.device.snapshot()), options(|volume| volume))?;
        let blocks = |dir: &str| fs.metadata(dir).map(|stat| (stat.inline, stat.size / 4096));
        // Two blocks of the first level, four of the second, eight of the third.
        assert!(matches!(blocks("/D")?, (false, 7..=14)), "{:?}", blocks("/D"));
        assert_eq!((blocks("/E")?.0, blocks("/F")?), (true, (false, 2)));
        drop(fs);
        for workload in &all {
            let recording = workload.run(&base)?;
            let last = recording.lanes[0].history(recording.lanes[0].steps.len());
            assert!(*last != base.tree || recording.marks.len() > 1, "{workload}");
        }
        Ok(())
    }

    /// The operations of several runs that came out as they were meant.
    fn done(workloads: impl Iterator<Item = Workload>) -> Result<Vec<Op>, Box<dyn std::error::Error>> {
        use crate::record::shared::Said;
        let mut all = Vec::new();
        for workload in workloads {
            let recording = workload.run(&Base::new(workload.base())?)?;
            match &recording.shared {
                None => all.extend(recording.lanes.iter().flat_map(|lane| &lane.steps).map(|step| step.op.clone())),
                Some(shared) => {
                    let deeds = shared.deeds.iter().flatten();
                    all.extend(deeds.filter(|deed| matches!(deed.said, Said::Done(_))).map(|deed| deed.op.clone()));
                }
            }
        }
        Ok(all)
    }

    #[test]
    fn threads_link_and_exchange_the_names_of_shared_files_with_a_journal() -> Result<(), Box<dyn std::error::Error>> {
        let all = done((0..6).map(|run| Workload::Shared(BaseKind::WideJournaled, 8 + run * 16)))?;
        let count = |is: fn(&Op) -> bool| all.iter().filter(|op| is(op)).count();
        let counts = [
            count(|op| matches!(op, Op::Link(..))),
            count(|op| matches!(op, Op::Exchange(..))),
            count(|op| matches!(op, Op::Replace(..))),
            count(|op| matches!(op, Op::SyncDir(_))),
        ];
        assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
        let none = done((0..2).map(|run| Workload::Shared(BaseKind::Wide, run * 16)))?;
        assert!(!none.iter().any(|op| matches!(op, Op::Link(..) | Op::Exchange(..) | Op::Replace(..))), "{none:?}");
        Ok(())
    }

    #[test]
    fn threads_with_few_names_use_them_again() -> Result<(), Box<dyn std::error::Error>> {
        let all = done((0..3).map(|run| Workload::Threads(BaseKind::WideDataJournaled, 32 + run * 64)))?;
        let made = |name: &str| all.iter().filter(|op| op.makes() == Some(name)).count();
        let again = LANES.iter().flat_map(|dir| ["foo", "bar", "new"].map(|name| made(&format!("{dir}/{name}"))));
        assert!(again.filter(|made| *made > 3).count() > 3, "{all:?}");
        Ok(())
    }

    #[test]
    fn cleaning_moves_blocks() -> Result<(), Box<dyn std::error::Error>> {
        let all = cleaning();
        assert_eq!(all.len(), 2 * 9 + 3 * 6, "each text is a workload");
        for kind in [BaseKind::Full, BaseKind::Tight] {
            let base = Base::new(kind)?;
            let mut moving = 0;
            for workload in all.iter().filter(|workload| workload.base() == kind) {
                let recording = workload.run(&base)?;
                let steps = &recording.lanes[0].steps;
                moving += usize::from(steps.iter().any(|step| step.op == Op::Clean && step.events.1 > step.events.0));
            }
            assert!(moving > 8, "{kind:?}: {moving}");
        }
        Ok(())
    }

    #[test]
    fn the_enumeration_has_every_operation_alone_and_every_pair_that_fits() -> Result<(), FsError> {
        let base = Base::new(BaseKind::Plain)?;
        let fitting = alphabet().iter().filter(|op| op.fits(&base.tree)).count();
        let one = sequences(&base, 1);
        assert!(
            one.len() > fitting && one.len() <= 2 * fitting,
            "{fitting}: each with a checkpoint, most with an fsync"
        );
        let two = sequences(&base, 2);
        assert!(two.len() > one.len() * fitting, "{} after {}", two.len(), one.len());
        Ok(())
    }
}
