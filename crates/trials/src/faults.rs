//! A device that fails at one of its requests, for every request of a workload and every way to fail.
//!
//! | Fault | What is promised |
//! |---|---|
//! | `EIO` once, `EIO` for good, `ENOSPC`, short transfer | An operation that succeeds has happened, one that fails gives a typed error and has happened as a whole or not at all. What a checkpoint, an fsync or a close that succeeded covers is there when the volume is opened again, which is consistent. A failed flush or durable write stops the volume. |
//! | flush lost | The same, as long as the power stays on: the device lied. After a power cut on top, the volume opens or says why not; no panic, no hang. |
//! | misdirected write, flipped bit on read | Found by a check, an opening or an operation, or tolerated: data carries no checksums. No panic, no hang, no change of anything once corruption was found. |

use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use f2fs_device::{Fault, FaultDevice, FaultRule, MemoryDevice, RecordingDevice};
use f2fs_files::{FileSystem, FsError, Options};
use f2fs_sync::Arc;
use f2fs_sync::Mutex;
use f2fs_sync::atomic::{AtomicUsize, Ordering};
use f2fs_volume::{OpenOptions, VolumeError};

use crate::base::{Base, BaseKind};
use crate::explore::verdict;
use crate::op::{Op, is_refusal};
use crate::random::Random;
use crate::tree::Tree;
use crate::workload::Steps;

/// Requests that the workload makes at least.
const REQUESTS: u64 = 2000;
/// One run takes a fraction of a second; this is a hang.
const HANG: Duration = Duration::from_secs(60);
const ENOSPC: i32 = 28;
/// How far a misdirected write goes.
const ASTRAY: i64 = 1031;

/// A way to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// `EIO`, once.
    Once,
    /// `EIO` from then on.
    ForGood,
    /// A transfer that stops half-way.
    Short,
    /// `ENOSPC`, once.
    NoSpace,
    /// A flush that is not done.
    FlushLost,
    /// A write that goes somewhere else.
    Misdirected,
    /// A read with a wrong bit.
    Flipped,
}

impl Way {
    /// All of them.
    pub const ALL: [Way; 7] =
        [Way::Once, Way::ForGood, Way::Short, Way::NoSpace, Way::FlushLost, Way::Misdirected, Way::Flipped];

    /// Its name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Way::Once => "EIO once",
            Way::ForGood => "EIO for good",
            Way::Short => "short transfer",
            Way::NoSpace => "ENOSPC",
            Way::FlushLost => "flush lost",
            Way::Misdirected => "misdirected write",
            Way::Flipped => "flipped bit on read",
        }
    }

    /// Whether the device says that it failed.
    fn is_honest(self) -> bool {
        matches!(self, Way::Once | Way::ForGood | Way::Short | Way::NoSpace)
    }

    fn rule(self, index: u64) -> FaultRule {
        use f2fs_device::Operation::{Flush, Read, Write, WriteFua};
        let all = FaultRule::on_all().after(index);
        match self {
            Way::Once => all,
            Way::ForGood => all.for_good(),
            Way::Short => all.fault(Fault::Short(1)),
            Way::NoSpace => all.fault(Fault::Error(ENOSPC)),
            // These count the requests that they can hit.
            Way::FlushLost => FaultRule::on([Flush]).after(index).fault(Fault::Lost),
            Way::Misdirected => FaultRule::on([Write, WriteFua]).after(index).fault(Fault::Misdirected(ASTRAY)),
            Way::Flipped => FaultRule::on([Read]).after(index).fault(Fault::Flipped(index.wrapping_mul(7919))),
        }
    }
}

/// How the runs of one way went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Runs, one for each request that can fail so.
    pub runs: u64,
    /// Runs in which an operation gave an error.
    pub surfaced: u64,
    /// Runs in which no operation did: the request was tried again, or was not needed.
    pub absorbed: u64,
    /// Runs after which the volume refused changes.
    pub stopped: u64,
    /// Runs after which the check finds damage (only where the device lies).
    pub damaged: u64,
    /// Runs after which the volume does not open, and says why (only where the device lies).
    pub refused: u64,
}

/// A promise that was broken.
#[derive(Clone, Debug)]
pub struct Broken {
    /// How the device failed.
    pub way: Way,
    /// At which of the requests that can fail so.
    pub index: u64,
    /// What is wrong.
    pub what: String,
}

/// The whole matrix.
#[derive(Clone, Debug, Default)]
pub struct Matrix {
    /// Requests of the workload.
    pub requests: u64,
    /// Of them: reads, writes, flushes.
    pub kinds: (u64, u64, u64),
    /// By way.
    pub rows: Vec<(Way, Row)>,
    /// Broken promises.
    pub broken: Vec<Broken>,
    /// How long it took.
    pub took: Duration,
}

fn options() -> Options {
    // Hardly any cache: things are read again and again.
    Options::new().volume(OpenOptions::new().node_cache(NonZeroUsize::MIN)).inode_cache(NonZeroUsize::MIN)
}

/// The operations: the same in every run, as long as nothing fails.
#[derive(Debug)]
struct Script {
    ops: Vec<Op>,
    /// Requests and flushes that they make.
    requests: u64,
    /// Of them: reads, writes, flushes.
    kinds: (u64, u64, u64),
}

impl Script {
    /// Chance makes operations until there are requests enough.
    fn new(base: &Base, seed: u64) -> Result<Script, FsError> {
        let inner = Arc::new(RecordingDevice::new(base.device.snapshot()));
        let device = Arc::new(FaultDevice::new(inner.clone()));
        let fs = FileSystem::open(device.clone(), options())?;
        let (mut tree, mut ops) = (base.tree.clone(), Vec::new());
        let mut random = Random::new(seed);
        'enough: loop {
            let mut steps = Steps::new(random.next(), "", base.kind);
            while let Some(op) = steps.next(&tree) {
                let done = match op.perform(&fs, ops.len() as u64) {
                    Ok(done) => done,
                    Err(error) if is_refusal(&error) => continue,
                    Err(error) => return Err(error),
                };
                op.clone().done(&done).apply(&mut tree, ops.len() as u64, done.ino);
                ops.push(op);
                if device.operations() >= REQUESTS {
                    break 'enough;
                }
            }
        }
        fs.close()?;
        let counts = inner.counts();
        let kinds = (counts.reads, counts.writes, counts.flushes);
        Ok(Script { ops, requests: device.operations(), kinds })
    }
}

/// Fails every `sample`-th request in every way. `progress` is told of runs done and of how many.
///
/// # Errors
/// If the workload fails on a healthy device.
pub fn run(
    base: &Base,
    seed: u64,
    sample: u64,
    threads: usize,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<Matrix, FsError> {
    let begun = Instant::now();
    let script = Script::new(base, seed)?;
    let (requests, kinds) = (script.requests, script.kinds);
    let mut jobs = Vec::new();
    for way in Way::ALL {
        let count = match way {
            Way::FlushLost => kinds.2,
            Way::Misdirected => kinds.1,
            Way::Flipped => kinds.0,
            _ => requests,
        };
        // Few flushes are all tried.
        let step = if way == Way::FlushLost { 1.max(sample / 8) } else { sample.max(1) };
        jobs.extend((0..count).step_by(step as usize).map(|index| (way, index)));
    }
    let threads = match threads {
        0 => std::thread::available_parallelism().map_or(1, NonZeroUsize::get),
        threads => threads,
    };
    let next = AtomicUsize::new(0);
    let result = Mutex::new((vec![Row::default(); Way::ALL.len()], Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                crate::alone(|| {
                    while let Some((way, index)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)).copied() {
                        let begun = Instant::now();
                        let run = catch_unwind(AssertUnwindSafe(|| run_one(base, &script, way, index)));
                        let mut result = result.lock();
                        let place = Way::ALL.iter().position(|other| *other == way).unwrap_or(0);
                        match run {
                            Ok(Ok(row)) => {
                                let sum = &mut result.0[place];
                                *sum = sum.plus(row);
                            }
                            Ok(Err(what)) => result.1.push(Broken { way, index, what }),
                            Err(_) => result.1.push(Broken { way, index, what: "a panic".to_owned() }),
                        }
                        if begun.elapsed() > HANG {
                            result.1.push(Broken { way, index, what: format!("took {:?}", begun.elapsed()) });
                        }
                        drop(result);
                        progress(next.load(Ordering::Relaxed).min(jobs.len()) as u64, jobs.len() as u64);
                    }
                });
            });
        }
    });

    let (rows, broken) = result.into_inner();
    let rows = Way::ALL.into_iter().zip(rows).collect();
    Ok(Matrix { requests, kinds, rows, broken, took: begun.elapsed() })
}

impl Row {
    fn plus(self, other: Row) -> Row {
        Row {
            runs: self.runs + other.runs,
            surfaced: self.surfaced + other.surfaced,
            absorbed: self.absorbed + other.absorbed,
            stopped: self.stopped + other.stopped,
            damaged: self.damaged + other.damaged,
            refused: self.refused + other.refused,
        }
    }
}

/// Whether an error may come from a failing device.
fn is_typed(error: &FsError, way: Way) -> bool {
    let volume = |error: &VolumeError| {
        matches!(
            error,
            VolumeError::Device(_) | VolumeError::Stopped { .. } | VolumeError::Nat(_) | VolumeError::Segment(_)
        )
    };
    match error {
        FsError::Volume(error) if volume(error) => true,
        // What was read may be anything.
        _ => !way.is_honest(),
    }
}

/// One run; the promises that hold for it.
struct Run {
    way: Way,
    /// What every operation so far makes, as far as that is known.
    tree: Tree,
    /// The trees since the last success of what makes things durable, that one's first.
    since: Vec<Tree>,
    row: Row,
    /// Nothing can be said any more about single operations.
    lost: bool,
}

fn run_one(base: &Base, script: &Script, way: Way, index: u64) -> Result<Row, String> {
    let recorder = Arc::new(RecordingDevice::new(base.device.snapshot()));
    let faulty = Arc::new(FaultDevice::new(recorder.clone()));
    faulty.arm(way.rule(index));
    let mut run = Run {
        way,
        tree: base.tree.clone(),
        since: vec![base.tree.clone()],
        row: Row { runs: 1, ..Row::default() },
        lost: false,
    };
    let mut version = None;
    match FileSystem::open(faulty.clone(), options()) {
        Ok(fs) => {
            run.work(&fs, &faulty, script)?;
            version = Some(fs.volume().last_checkpoint().version);
            run.row.stopped = fs.volume().stopped().is_some().into();
        }
        Err(error) if is_typed(&error, way) && faulty.faults() > 0 => run.row.surfaced = 1,
        Err(error) => return Err(format!("it does not open: {error}")),
    }
    run.row.absorbed = 1 - run.row.surfaced;
    run.judge(&recorder.snapshot(), version)?;
    if way == Way::FlushLost {
        // The power goes as well: what was not flushed is gone.
        let log = recorder.log();
        let cut = log.image_at(log.events().len(), |event, _| event % 3 == 0);
        examine(&cut);
    }
    Ok(run.row)
}

/// Opens and reads whatever is there: it may be anything.
fn examine(image: &MemoryDevice) -> (bool, bool) {
    let consistent = verdict(image).is_ok_and(|report| report.is_consistent() && report.complete);
    let opens = FileSystem::open(Arc::new(image.snapshot()), options()).and_then(|fs| {
        let walk = Tree::walk(&fs);
        fs.create_file("/after", 0o644)?.write_at(0, b"after")?;
        fs.close()?;
        walk.map(drop)
    });
    (consistent, opens.is_ok())
}

impl Run {
    fn work(&mut self, fs: &FileSystem, faulty: &FaultDevice, script: &Script) -> Result<(), String> {
        let mut open = Vec::new();
        for (salt, op) in script.ops.iter().enumerate() {
            let before = faulty.faults();
            let result = op.perform(fs, salt as u64);
            let hit = faulty.faults() > before;
            let durable = matches!(op, Op::Checkpoint | Op::Sync(_));
            let mut with = self.tree.clone();
            match result {
                Ok(done) => {
                    op.clone().done(&done).apply(&mut with, salt as u64, done.ino);
                    open.extend(done.open);
                    self.tree = with;
                    if !self.lost {
                        self.since.push(self.tree.clone());
                    }
                    // Found by it: a change that is not there although it was said to be.
                    if hit && !self.lost {
                        self.compare(fs, faulty, None, op)?;
                    }
                    if durable && !self.lost {
                        self.since = vec![self.tree.clone()];
                    }
                }
                Err(error) => {
                    if faulty.faults() == 0 {
                        return Err(format!("`{op}` fails though the device is healthy: {error}"));
                    }
                    // What failed before may be missing here.
                    let follows = self.lost || !op.fits(&self.tree) || is_refusal(&error);
                    if !is_typed(&error, self.way) && !follows {
                        return Err(format!("`{op}` fails with {error}, which is not what the device said"));
                    }
                    self.row.surfaced = 1;
                    if fs.volume().stopped().is_some() {
                        return self.stay_stopped(fs);
                    }
                    if !self.lost {
                        op.apply(&mut with, salt as u64, u32::MAX);
                        self.compare(fs, faulty, Some(&with), op)?;
                    }
                }
            }
        }
        match fs.close() {
            Ok(()) if !self.lost => self.since = vec![self.tree.clone()],
            Ok(()) => {}
            Err(error) if is_typed(&error, self.way) && faulty.faults() > 0 => self.row.surfaced = 1,
            Err(error) => return Err(format!("the close fails with {error}")),
        }
        Ok(())
    }

    /// Compares with what the file system shows, on a device that works again. After a failed operation either tree is
    /// right; inodes are not compared where the operation would have made one.
    fn compare(&mut self, fs: &FileSystem, faulty: &FaultDevice, with: Option<&Tree>, op: &Op) -> Result<(), String> {
        if self.way == Way::ForGood {
            self.lost = true;
            return Ok(());
        }
        faulty.disarm();
        let found = match Tree::walk(fs) {
            Ok(found) => found,
            Err(error) if !self.way.is_honest() && error.is_corruption() => {
                self.row.surfaced = 1;
                self.lost = true;
                return Ok(());
            }
            Err(error) => return Err(format!("after `{op}` the tree cannot be read: {error}")),
        };
        if found == self.tree {
            return Ok(());
        }
        if self.way.is_honest() && !with.is_some_and(|with| same_but_numbers(&found, with)) {
            return Err(format!("after `{op}` the tree is neither old nor new:\n{}", found.difference(&self.tree)));
        }
        self.tree = found.clone();
        self.since.push(found);
        Ok(())
    }

    /// A volume that stopped refuses every change, with the reason.
    fn stay_stopped(&mut self, fs: &FileSystem) -> Result<(), String> {
        self.lost = true;
        for result in [fs.create_file("/never", 0o644).map(drop), fs.checkpoint().map(drop), fs.close()] {
            match result {
                Err(FsError::Volume(VolumeError::Stopped { .. } | VolumeError::Device(_))) => {}
                Err(error) if is_typed(&error, self.way) => {}
                Err(error) => return Err(format!("a stopped volume says {error}")),
                Ok(()) => return Err("a stopped volume takes a change".to_owned()),
            }
        }
        Ok(())
    }

    /// What is there when the volume is opened again.
    fn judge(&mut self, image: &MemoryDevice, version: Option<u64>) -> Result<(), String> {
        if !self.way.is_honest() && self.way != Way::FlushLost {
            let (consistent, opens) = examine(image);
            self.row.damaged = (!consistent).into();
            self.row.refused = (!opens).into();
            return Ok(());
        }
        let report = verdict(image)?;
        if !report.is_consistent() || !report.complete {
            return Err(format!("it is not consistent afterwards:\n{report}"));
        }
        let fs = FileSystem::open(Arc::new(image.snapshot()), options())
            .map_err(|error| format!("it does not open afterwards: {error}"))?;
        let found = Tree::walk(&fs).map_err(|error| format!("it cannot be read afterwards: {error}"))?;
        let newer = version.is_some_and(|version| fs.volume().last_checkpoint().version > version);
        let same = |tree: &Tree| *tree == found;
        // What failed at its end may have become durable all the same; then it is one of the later trees.
        if same(&self.since[0]) || self.since.iter().any(same) || (newer && same_but_numbers(&found, &self.tree)) {
            return Ok(());
        }
        Err(format!("afterwards it holds something else:\n{}", found.difference(&self.since[0])))
    }
}

/// The same names with the same contents.
fn same_but_numbers(a: &Tree, b: &Tree) -> bool {
    a.names.len() == b.names.len() && a.names.keys().all(|path| a.node(path) == b.node(path))
}

/// The base that the matrix runs on.
pub const BASE: BaseKind = BaseKind::Checksums;
