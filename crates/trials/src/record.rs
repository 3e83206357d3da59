//! Runs operations on a recording device, and writes down what was promised when.
//!
//! Operations of one thread form a *lane*; each lane has names of its own. Time is counted twice. Events of the
//! device's log are the places where a cut is made. A clock that ticks at the beginning and the end of each operation
//! orders operations of different lanes. A version of the checkpoint belongs, in each lane, to an interval of its
//! history. A checkpoint holds what had happened when it froze. It is noticed later, by the operation that wrote it and
//! by all that were running then. One of these wrote it. So an operation that ended before any of these began is in the
//! checkpoint, and one that began after one of these ended is not.

pub mod shared;
mod text;

use std::collections::BTreeSet;
use std::time::Duration;

use f2fs_device::MemoryDevice;
use f2fs_device_test::{CrashLog, RecordingDevice};
use f2fs_files::{FileSystem, FsError, Options};
use f2fs_sync::atomic::{AtomicUsize, Ordering};
use f2fs_sync::{Arc, OnceLock};

use crate::op::{Op, is_refusal};
use crate::several;
use crate::tree::{Known, Tree};
use shared::{Deed, Said, Shared};

/// How long a request takes where threads are to meet.
const PAUSE: Duration = Duration::from_micros(20);

/// An operation that was done.
#[derive(Clone, Debug)]
pub struct Step {
    /// The operation.
    pub op: Op,
    /// The file that it made durable without a checkpoint.
    pub fsynced: Option<u32>,
    /// Whether it made names durable, and the files whose names had changed, without a checkpoint: by a record in a
    /// journal. Those of one lane are all that there are; of several lanes, those of the directory that it was about.
    pub names: bool,
    /// Whether there was such a record while it ran, of it or of another lane.
    pub(crate) recorded: bool,
    /// Whether that is certain: another thread's checkpoint may have done it instead.
    pub certain: bool,
    /// The lane's part of the tree afterwards.
    pub tree: Arc<Tree>,
    /// Ticks of the clock around it.
    pub(crate) clock: (usize, usize),
    /// Events in the log before and after.
    pub events: (usize, usize),
    /// Versions of the last checkpoint before and after.
    pub(crate) versions: (u64, u64),
}

impl Step {
    /// Whether its file, or all names, are certain to be durable without a checkpoint when it ends.
    #[must_use]
    pub fn is_synced(&self) -> bool {
        self.is_recovered() && self.certain
    }

    /// Whether what it made durable comes back by roll-forward, or from a journal.
    #[must_use]
    pub fn is_recovered(&self) -> bool {
        self.fsynced.is_some() || self.names
    }
}

#[cfg(test)]
impl Step {
    /// A step that wrote no checkpoint.
    pub(crate) fn without_checkpoint(op: Op, fsynced: Option<u32>, tree: Tree, events: (usize, usize)) -> Step {
        let tree = Arc::new(tree);
        let versions = (1, 1);
        Step { op, fsynced, names: false, recorded: false, certain: true, tree, clock: (0, 0), events, versions }
    }
}

/// One thread's operations.
#[derive(Clone, Debug)]
pub struct Lane {
    /// The directory that the thread keeps to; it changes neither its name nor its links.
    pub dir: String,
    /// Its part of the tree before the first.
    pub first: Arc<Tree>,
    /// Its operations.
    pub steps: Vec<Step>,
    /// What was refused after a checkpoint had been written to make room for it: no operations of the lane's history,
    /// but nobody else may have seen the checkpoint come.
    pub refused: Vec<Step>,
}

impl Lane {
    /// A thread that has done nothing yet.
    pub(crate) fn new(dir: String, first: Arc<Tree>) -> Lane {
        Lane { dir, first, steps: Vec::new(), refused: Vec::new() }
    }

    /// The tree after so many operations.
    #[must_use]
    pub fn history(&self, index: usize) -> &Tree {
        match index {
            0 => &self.first,
            _ => &self.steps[index - 1].tree,
        }
    }
}

/// A checkpoint: from when on it is there, and what it holds.
#[derive(Clone, Debug)]
pub struct Mark {
    /// Its version.
    pub version: u64,
    /// Events in the log when it was known to be durable.
    pub done: usize,
    /// For each lane the first and the last operation (counted from 1, 0: none) that it may end with.
    pub lanes: Vec<(usize, usize)>,
}

/// Who did the operations of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Maker {
    /// This project.
    #[default]
    Library,
    /// Linux: data is written when it likes to, unless it was synced.
    Kernel,
}

/// A workload that was run.
#[derive(Debug)]
pub struct Recording {
    /// The changes to the device.
    pub log: CrashLog,
    /// The threads.
    pub lanes: Vec<Lane>,
    /// The checkpoints, oldest first; the first one was there before.
    pub marks: Vec<Mark>,
    /// Events before the last operation of the first lane: cuts before are those of a shorter workload.
    pub last_step: usize,
    /// How the volume was opened.
    pub options: Options,
    /// The history of threads that share files; their lanes have no trees of their own then.
    pub shared: Option<Shared>,
    /// Who did it.
    pub maker: Maker,
    /// Whether times of files are left out of account: they are not those of a clock that stands still.
    pub timeless: bool,
    pub(crate) known: OnceLock<Known>,
}

impl Recording {
    /// The positions in the log at which something had been promised that had not been before, in order.
    #[must_use]
    pub fn promises(&self) -> BTreeSet<usize> {
        let steps = self.lanes.iter().flat_map(|lane| &lane.steps);
        let synced = steps.filter(|step| step.is_synced()).map(|step| step.events.1);
        synced.chain(self.marks.iter().map(|mark| mark.done)).collect()
    }

    /// Every inode as it was at some time.
    pub(crate) fn known(&self) -> &Known {
        let trees = || self.lanes.iter().flat_map(|lane| (0..=lane.steps.len()).map(|index| lane.history(index)));
        let shared = || self.shared.iter().flat_map(|shared| shared.histories.values().flatten().map(|tree| &**tree));
        self.known.get_or_init(|| Known::of(trees().chain(shared())).timeless(self.timeless))
    }

    /// The recording of one lane, on a volume that was opened at a version of its checkpoint.
    pub(crate) fn of_lane(log: CrashLog, lane: Lane, first: u64, options: Options) -> Recording {
        let lanes = vec![lane];
        let marks = marks(first, &lanes);
        Recording {
            log,
            marks,
            lanes,
            last_step: 0,
            options,
            shared: None,
            maker: Maker::Library,
            timeless: false,
            known: OnceLock::new(),
        }
    }
}

/// An operation that came out otherwise than the model.
#[derive(Debug, thiserror::Error)]
#[error("operation {index} (`{op}`) of a healthy device failed: {error}")]
pub struct StepError {
    /// Which one, from 0.
    pub index: usize,
    /// The operation.
    pub op: Op,
    /// Its error.
    pub error: Box<FsError>,
}

/// A thread's next operation, given its part of the tree; `None`: it is done.
pub type Source<'a> = Box<dyn FnMut(&Tree) -> Option<Op> + Send + 'a>;

/// Times and versions before an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Before {
    tick: usize,
    event: usize,
    version: u64,
    records: u64,
}

/// Writes down what lanes do.
pub(crate) struct Tape<'a> {
    fs: &'a FileSystem,
    device: &'a RecordingDevice,
    clock: AtomicUsize,
    /// Whether there are several lanes.
    several: bool,
}

impl<'a> Tape<'a> {
    /// For one lane.
    pub(crate) fn new(fs: &'a FileSystem, device: &'a RecordingDevice) -> Tape<'a> {
        Tape { fs, device, clock: AtomicUsize::new(0), several: false }
    }

    fn tick(&self) -> usize {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    fn version(&self) -> u64 {
        self.fs.volume().last_checkpoint().version
    }

    /// An operation begins.
    pub(crate) fn before(&self) -> Before {
        let (event, version, records) = (self.device.position(), self.version(), self.records());
        Before { tick: self.tick(), event, version, records }
    }

    /// Records of names in a journal.
    fn records(&self) -> u64 {
        self.fs.statfs().written.name_records
    }

    /// It is over; `tree`: the lane's part of the tree then. One that did not succeed is certain of nothing.
    pub(crate) fn step(&self, before: Before, op: Op, tree: &Tree, succeeded: bool) -> Step {
        let versions = (before.version, self.version());
        let (events, clock) = ((before.event, self.device.position()), (before.tick, self.tick()));
        // A sync that became a checkpoint is in it; a durable write may have made room with a checkpoint first.
        let alone = versions.0 == versions.1 || matches!(op, Op::WriteDurable(..));
        let synced = op.syncs().filter(|_| self.several || alone);
        let fsynced = synced.and_then(|path| tree.names.get(path).copied());
        let certain = succeeded && (!self.several || versions.0 == versions.1);
        let recorded = self.records() > before.records;
        // Where others write records as well: it did, or found its names in one, if there was any.
        let wrote = if self.several { matches!(op, Op::SyncDir(_)) && self.records() > 0 } else { recorded };
        let names = versions.0 == versions.1 && wrote;
        Step { op, fsynced, names, recorded, certain, tree: Arc::new(tree.clone()), clock, events, versions }
    }

    /// An operation was refused. It changed nothing; the checkpoint that was to make room for it is kept.
    fn refuse(&self, lane: &mut Lane, before: Before, tree: &Tree) {
        let step = self.step(before, Op::Checkpoint, tree, false);
        if step.versions.0 != step.versions.1 {
            lane.refused.push(step);
        }
    }

    /// Operations on what other threads change as well: their results tell what they found there.
    fn run_sharing(
        &self,
        first: &Arc<Tree>,
        salt: u64,
        source: &mut Source<'_>,
    ) -> Result<(Lane, Vec<Deed>), StepError> {
        let (mut lane, mut deeds) = (Lane::new("/".into(), Arc::clone(first)), Vec::new());
        while let Some(op) = source(first) {
            let index = lane.steps.len();
            let salt = salt ^ (index as u64 + 1) << 8;
            let before = self.before();
            let (op, said, appended) = match op.perform(self.fs, salt) {
                Ok(done) => (op.done(&done), Said::Done(done.ino), done.offset),
                Err(FsError::NotFound) => (op, Said::NotFound, None),
                Err(FsError::Exists) => (op, Said::Exists, None),
                Err(error) if is_refusal(&error) => {
                    self.refuse(&mut lane, before, first);
                    continue;
                }
                Err(error) => return Err(StepError { index, op, error: Box::new(error) }),
            };
            let deed = Deed { op, said, salt, appended };
            let mut step = self.step(before, deed.op.clone(), first, matches!(said, Said::Done(_)));
            step.fsynced = deed.op.syncs().and(deed.opened());
            step.tree = Arc::clone(first);
            lane.steps.push(step);
            deeds.push(deed);
        }
        Ok((lane, deeds))
    }

    fn run(&self, dir: String, first: Tree, salt: u64, source: &mut Source<'_>) -> Result<Lane, StepError> {
        let mut tree = first.clone();
        let mut lane = Lane::new(dir, Arc::new(first));
        let mut open = Vec::new();
        while let Some(op) = source(&tree) {
            let index = lane.steps.len();
            let salt = salt ^ (index as u64 + 1) << 8;
            let before = self.before();
            let done = match op.perform(self.fs, salt) {
                Ok(done) => done,
                Err(error) if is_refusal(&error) => {
                    self.refuse(&mut lane, before, &tree);
                    continue;
                }
                Err(error) => return Err(StepError { index, op, error: Box::new(error) }),
            };
            let op = op.done(&done);
            op.apply(&mut tree, salt, done.ino);
            open.extend(done.open);
            lane.steps.push(self.step(before, op, &tree, true));
        }
        Ok(lane)
    }
}

/// Runs lanes at the same time on a copy of `device`, which holds `tree`, and records them. `closed`: the volume is
/// closed at the end, which is a checkpoint more.
///
/// # Errors
/// [`StepError`] if an operation fails that the model says succeeds.
pub fn record(
    device: MemoryDevice,
    options: &Options,
    tree: &Tree,
    salt: u64,
    mut sources: Vec<(String, Source<'_>)>,
    closed: bool,
) -> Result<Recording, StepError> {
    let device = Arc::new(RecordingDevice::new(device));
    let failed = |index, error| StepError { index, op: Op::Checkpoint, error: Box::new(error) };
    let on = several::laid_out(&device).map_err(|error| failed(0, FsError::Invalid(error)))?;
    let with_journal = several::with_journal(&device, options).map_err(|error| failed(0, FsError::Invalid(error)))?;
    let fs = FileSystem::open(on, with_journal).map_err(|error| failed(0, error))?;
    // The first sync after an opening is a checkpoint: it is behind us, and those of the workload are written to the
    // log.
    fs.checkpoint().map_err(|error| failed(0, error))?;
    device.restart();
    let recording = record_on(&device, &fs, tree, salt, &mut sources, closed)?;
    Ok(Recording { options: options.clone(), ..recording })
}

/// [`record`], on a file system that is open.
///
/// # Errors
/// As there.
pub fn record_on(
    device: &RecordingDevice,
    fs: &FileSystem,
    tree: &Tree,
    salt: u64,
    sources: &mut [(String, Source<'_>)],
    closed: bool,
) -> Result<Recording, StepError> {
    let failed = |index, error| StepError { index, op: Op::Checkpoint, error: Box::new(error) };
    let first = fs.volume().last_checkpoint().version;
    let tape = Tape { several: sources.len() > 1, ..Tape::new(fs, device) };
    let mut lanes = if let [(dir, source)] = sources {
        vec![tape.run(dir.clone(), tree.below(dir), salt, source)?]
    } else {
        std::thread::scope(|scope| {
            let threads: Vec<_> = sources
                .iter_mut()
                .enumerate()
                .map(|(index, (dir, source))| {
                    let (tape, salt) = (&tape, salt ^ (index as u64 + 1) << 40);
                    scope.spawn(move || tape.run(dir.clone(), tree.below(dir), salt, source))
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect::<Result<Vec<_>, _>>()
        })?
    };
    if closed {
        let before = tape.before();
        fs.close().map_err(|error| failed(lanes[0].steps.len(), error))?;
        let tree = lanes[0].history(lanes[0].steps.len()).clone();
        lanes[0].steps.push(tape.step(before, Op::Checkpoint, &tree, true));
    }
    let marks = marks(first, &lanes);
    let last_step =
        lanes[0].steps.iter().rev().find(|step| !matches!(step.op, Op::Checkpoint | Op::Sync(_) | Op::SyncDir(_)));
    let last_step = last_step.map_or(0, |step| step.events.0);
    let whole = Recording::of_lane(device.log(), lanes[0].clone(), first, Options::default());
    Ok(Recording { lanes, marks, last_step, ..whole })
}

/// Runs threads that change the same files on a copy of `device`, which holds `tree`, and one more that changes
/// nothing; the volume is closed at the end.
///
/// # Errors
/// [`StepError`] if an operation fails otherwise than by a name, or no order of the operations explains what they said.
pub fn record_sharing(
    device: MemoryDevice,
    options: &Options,
    tree: &Tree,
    salt: u64,
    sources: Vec<Source<'_>>,
    mut beside: Source<'_>,
) -> Result<Recording, StepError> {
    let device = Arc::new(RecordingDevice::new(device).with_pause(PAUSE));
    let failed = |op, error| StepError { index: 0, op, error: Box::new(error) };
    let on = several::laid_out(&device).map_err(|error| failed(Op::Checkpoint, FsError::Invalid(error)))?;
    let with_journal = several::with_journal(&device, options);
    let with_journal = with_journal.map_err(|error| failed(Op::Checkpoint, FsError::Invalid(error)))?;
    let fs = FileSystem::open(on, with_journal).map_err(|error| failed(Op::Checkpoint, error))?;
    fs.checkpoint().map_err(|error| failed(Op::Checkpoint, error))?;
    device.restart();
    let version = fs.volume().last_checkpoint().version;
    let first = Arc::new(tree.clone());
    let tape = Tape { several: true, ..Tape::new(&fs, &device) };
    let (first, tape) = (&first, &tape);
    let (ran, mut last) = std::thread::scope(|scope| {
        let salts = (1..).map(|index: u64| salt ^ index << 40);
        let threads: Vec<_> = sources
            .into_iter()
            .zip(salts)
            .map(|(mut source, salt)| scope.spawn(move || tape.run_sharing(first, salt, &mut source)))
            .collect();
        let last = tape.run_sharing(first, 0, &mut beside).map(|(lane, _)| lane);
        let ended =
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        Ok::<_, StepError>((ended.collect::<Result<Vec<_>, _>>()?, last?))
    })?;
    let before = tape.before();
    fs.close().map_err(|error| failed(Op::Checkpoint, error))?;
    last.steps.push(tape.step(before, Op::Checkpoint, first, true));
    let (mut lanes, deeds): (Vec<Lane>, Vec<Vec<Deed>>) = ran.into_iter().unzip();
    let unexplained = || {
        let text = |deeds: &Vec<Deed>| {
            deeds.iter().map(|deed| format!("{} ({:?})", deed.op, deed.said)).collect::<Vec<_>>().join("; ")
        };
        eprintln!("no order explains: {}", deeds.iter().map(text).collect::<Vec<_>>().join(" | "));
        failed(Op::Checkpoint, FsError::Invalid("no order of the operations explains what they said"))
    };
    let shared = Shared::new(first, &lanes, deeds.clone()).ok_or_else(unexplained)?;
    lanes.push(last);
    let marks = marks(version, &lanes);
    let (log, options) = (device.log(), options.clone());
    let whole = Recording::of_lane(log, lanes[0].clone(), version, options);
    Ok(Recording { lanes, marks, shared: Some(shared), ..whole })
}

fn marks(first: u64, lanes: &[Lane]) -> Vec<Mark> {
    let mut marks = vec![Mark { version: first, done: 0, lanes: vec![(0, 0); lanes.len()] }];
    let steps = || lanes.iter().flat_map(|lane| lane.steps.iter().chain(&lane.refused));
    let last = steps().map(|step| step.versions.1).max().unwrap_or(first);
    for version in first + 1..=last {
        let mut mark = Mark { version, done: usize::MAX, lanes: vec![(usize::MAX, usize::MAX); lanes.len()] };
        for seen in steps().filter(|step| step.versions.1 >= version) {
            mark.done = mark.done.min(seen.events.1);
            if seen.versions.0 >= version {
                continue;
            }
            for (lane, interval) in lanes.iter().zip(&mut mark.lanes) {
                let ended = lane.steps.iter().take_while(|step| step.clock.1 < seen.clock.0).count();
                let begun = lane.steps.iter().take_while(|step| step.clock.0 < seen.clock.1).count();
                *interval = (interval.0.min(ended), interval.1.min(begun));
            }
        }
        marks.push(mark);
    }
    marks
}
