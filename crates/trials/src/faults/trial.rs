//! One run: an episode on a device that fails once, the results of its operations, and the state afterwards.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use f2fs_device::MemoryDevice;
use f2fs_device_test::{Event, FaultDevice, RecordingDevice};
use f2fs_files::{FileSystem, FsError};
use f2fs_sync::Arc;
use f2fs_volume::{JournalTrouble, VolumeError};

use super::matrix::Row;
use super::script::Episode;
use super::way::{Way, is_of_device};
use super::{Faulty, options};
use crate::judge::Expectation;
use crate::op::{Op, is_refusal};
use crate::record::{Lane, Mark, Recording, Tape};
use crate::several;
use crate::state::{Opened, consistent, look, look_and_use, open};
use crate::tree::{Known, Tree};

/// How an operation failed.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Error(#[from] FsError),
    /// The panic of the device came through it.
    #[error("a panic of the device")]
    Panic,
}

impl Failure {
    /// See [`is_typed`].
    fn is_typed(&self, way: Way) -> bool {
        match self {
            Failure::Error(error) => is_typed(error, way),
            Failure::Panic => way == Way::Panic,
        }
    }

    fn is_refusal(&self) -> bool {
        matches!(self, Failure::Error(error) if is_refusal(error))
    }
}

/// Does an operation during which the device may panic. Any other panic goes on.
fn met<T>(work: impl FnOnce() -> Result<T, FsError>) -> Result<T, Failure> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => Ok(result?),
        Err(panic) if is_of_device(&*panic) => Err(Failure::Panic),
        Err(panic) => resume_unwind(panic),
    }
}

/// Whether an error may come from a failing device: it says what the device said, or that the volume stopped for it.
fn is_typed(error: &FsError, way: Way) -> bool {
    let stopped = matches!(error, FsError::Volume(VolumeError::Stopped { .. }));
    // Where the device lies, what was read may be anything.
    stopped || error.device().is_some() || !way.is_honest()
}

/// The same names with the same contents.
fn same_but_numbers(a: &Tree, b: &Tree) -> bool {
    a.names.len() == b.names.len() && a.names.keys().all(|path| a.node(path) == b.node(path))
}

/// A run, and what is known of the volume.
struct Trial<'a> {
    way: Way,
    recorder: &'a RecordingDevice,
    faulty: &'a FaultDevice,
    /// The tree that the operations so far make.
    tree: Tree,
    /// The operations so far.
    lane: Lane,
    row: Row,
    /// Nothing can be said any more about single operations: the device is gone, or what it gave cannot be read.
    lost: bool,
    /// Names that were changed since the device was gone.
    unsaved: BTreeSet<String>,
    /// Events when the fault had happened and the operation that met it was over.
    hit: Option<usize>,
}

/// Runs an episode with a fault at number `index` of the requests that can fail so.
///
/// # Errors
/// The promise that was broken.
pub(super) fn run(episode: &Episode, way: Way, index: u64) -> Result<Row, String> {
    let recorder = Arc::new(RecordingDevice::new(episode.start.snapshot()));
    let opening = Faulty::new(&recorder)?;
    let faulty = &opening.volume;
    faulty.arm(way.rule(index));
    let lane = Lane::new("/".to_owned(), Arc::new(episode.tree.clone()));
    let mut trial = Trial {
        way,
        recorder: &recorder,
        faulty,
        tree: episode.tree.clone(),
        lane,
        row: Row { runs: 1, ..Row::default() },
        lost: false,
        unsaved: BTreeSet::new(),
        hit: None,
    };
    let mut versions = None;
    match met(|| opening.open()) {
        Ok(fs) => {
            let first = fs.volume().last_checkpoint().version;
            trial.note_hit();
            trial.work(&fs, episode)?;
            versions = Some((first, fs.volume().last_checkpoint().version));
        }
        Err(error) if error.is_typed(way) && faulty.faults() > 0 => trial.row.surfaced = 1,
        Err(error) => return Err(format!("the opening fails with {error}")),
    }
    trial.note_hit();
    trial.row.reached = u64::from(faulty.faults() > 0);
    trial.row.absorbed = 1 - trial.row.surfaced;
    let (hit, mut row) = (trial.hit, trial.row);
    let lane = trial.lane;
    let recording = recording(episode, &recorder, lane, versions)?;
    let judged = Judged { recording: &recording, journal_failed: opening.has_failing_journal() };
    judge(way, judged, &recorder.snapshot(), hit, &mut row)?;
    Ok(row)
}

/// The operations as the judge of crashes knows them. `versions`: of the checkpoint that was found and of the last one.
fn recording(
    episode: &Episode,
    recorder: &RecordingDevice,
    lane: Lane,
    versions: Option<(u64, u64)>,
) -> Result<Recording, String> {
    let (first, last) = match versions {
        Some(versions) => versions,
        None => {
            let version = opened(&episode.start, &Known::default())?.version;
            (version, version)
        }
    };
    let steps = lane.steps.len();
    let mut recording = Recording::of_lane(recorder.log(), lane, first, options());
    // A checkpoint that failed may be there all the same.
    recording.marks.push(Mark { version: last + 1, done: usize::MAX, lanes: vec![(steps.saturating_sub(1), steps)] });
    Ok(recording)
}

/// Opens a volume, with its journal if it has one, on devices that work.
fn opened(image: &MemoryDevice, known: &Known) -> Result<Opened, String> {
    let faulty = Faulty::new(&Arc::new(RecordingDevice::new(image.snapshot())))?;
    open(faulty.volume, faulty.options, known)
}

/// What a run left to be judged.
#[derive(Clone, Copy)]
struct Judged<'a> {
    recording: &'a Recording,
    journal_failed: bool,
}

impl Judged<'_> {
    /// Looks at a volume that is ahead of its journal, since the journal's device failed, without that journal. `what`
    /// is the result if that is not so.
    fn look_without_journal(
        self,
        image: &MemoryDevice,
        expectation: &Expectation<'_>,
        what: String,
    ) -> Result<(), String> {
        let recorder = || Arc::new(RecordingDevice::new(image.snapshot()));
        let is_behind = |error| {
            matches!(error, FsError::Volume(VolumeError::Journal(JournalTrouble::OtherCheckpoint { base, found, .. }))
                if (base as u32) < found as u32)
        };
        if !(self.journal_failed && Faulty::new(&recorder())?.open().is_err_and(is_behind)) {
            return Err(what);
        }
        let without = || options().without_journal(true);
        let opened = open(several::laid_out(&recorder())?, without().read_only(true), self.recording.known())?;
        expectation.judge(opened.version, &opened.tree)?;
        drop(opened);
        let fs = FileSystem::open(several::laid_out(&recorder())?, without());
        fs.and_then(|fs| fs.close()).map_err(|error| format!("without its journal: {error}"))
    }
}

/// The contents when the volume is opened again: with the power on, and after it went.
fn judge(way: Way, judged: Judged<'_>, image: &MemoryDevice, hit: Option<usize>, row: &mut Row) -> Result<(), String> {
    let recording = judged.recording;
    let log = &recording.log;
    let end = log.events().len();
    let expectation = Expectation { recording, start: end, end };
    if !way.is_honest() && way != Way::FlushLost {
        row.damaged = consistent(image).is_err().into();
        match opened(image, recording.known()) {
            Err(_) => row.refused = 1,
            Ok(opened) if expectation.judge(opened.version, &opened.tree).is_ok() => {
                row.kept = 1 - row.damaged;
            }
            Ok(_) => row.silent = u64::from(row.damaged == 0 && row.surfaced == 0),
        }
        return Ok(());
    }
    look_and_use(image, &expectation, 0)
        .map(drop)
        .or_else(|what| judged.look_without_journal(image, &expectation, what))
        .map_err(|what| format!("opened again: {what}"))?;
    // Of two devices, which one lied is not known.
    let parts = if several::journal_start(image).is_some() { 2 } else { 1 };
    let flushed_since = |hit: usize| {
        let flushes = log.events()[hit..].iter().filter(|event| event.is_flush());
        flushes.map(Event::flushed).map(|blocks| blocks.start).collect::<BTreeSet<u64>>().len() == parts
    };
    let cut = log.image_at(end, |_, _| false);
    match hit {
        // The device lied, and never flushed again: what it had not flushed is gone.
        Some(hit) if way == Way::FlushLost && !flushed_since(hit) => {
            let lied = log.image_at(hit, |event, block| !(event as u64 + block).is_multiple_of(3));
            row.damaged = consistent(&lied).is_err().into();
            match opened(&lied, recording.known()) {
                Ok(_) => row.kept = 1 - row.damaged,
                Err(_) => row.refused = 1,
            }
        }
        _ => {
            look(&cut, &expectation)
                .or_else(|what| judged.look_without_journal(&cut, &expectation, what))
                .map_err(|what| format!("opened again after a power cut: {what}"))?;
            row.kept = 1;
        }
    }
    Ok(())
}

impl Trial<'_> {
    fn note_hit(&mut self) {
        if self.hit.is_none() && self.faulty.faults() > 0 {
            self.hit = Some(self.recorder.position());
        }
    }

    fn work(&mut self, fs: &FileSystem, episode: &Episode) -> Result<(), String> {
        let tape = Tape::new(fs, self.recorder);
        let mut open = Vec::new();
        for (index, op) in episode.ops.iter().enumerate() {
            let (faults, before) = (self.faulty.faults(), tape.before());
            let result = met(|| op.perform(fs, Episode::salt(index)));
            let hit = self.faulty.faults() > faults;
            self.note_hit();
            match result {
                Ok(done) => {
                    let op = op.clone().done(&done);
                    open.extend(done.open);
                    self.unsaved(&op, fs)?;
                    if self.lost {
                        continue;
                    }
                    op.apply(&mut self.tree, Episode::salt(index), done.ino);
                    // Found by it: a change that is not there although it was said to be.
                    if hit {
                        self.compare(fs, None, &op)?;
                    }
                    self.lane.steps.push(tape.step(before, op, &self.tree, true));
                }
                Err(error) => {
                    self.failed(op, &error)?;
                    if !self.lost {
                        let mut with = self.tree.clone();
                        op.apply(&mut with, Episode::salt(index), u32::MAX);
                        if fs.volume().stopped().is_some() {
                            self.tree = with;
                        } else {
                            self.compare(fs, Some(&with), op)?;
                        }
                        self.lane.steps.push(tape.step(before, op.clone(), &self.tree, false));
                    }
                    if fs.volume().stopped().is_some() {
                        return self.stay_stopped(fs);
                    }
                }
            }
        }
        if !episode.closed {
            // Handles that close free files without a name, as the next opening would.
            let closed = met(move || {
                drop(open);
                Ok(())
            });
            if closed.is_err() {
                self.row.surfaced = 1;
                return self.stay_stopped(fs);
            }
            return Ok(());
        }
        let before = tape.before();
        match met(|| fs.close()) {
            Ok(()) if !self.lost => self.lane.steps.push(tape.step(before, Op::Checkpoint, &self.tree, true)),
            Ok(()) if self.way == Way::ForGood => return Err("the close succeeds on a device that is gone".to_owned()),
            Ok(()) => {}
            Err(error) => {
                self.failed(&Op::Checkpoint, &error)?;
                self.lane.steps.push(tape.step(before, Op::Checkpoint, &self.tree, false));
            }
        }
        Ok(())
    }

    /// An operation failed: it must have a reason, and the right one.
    fn failed(&mut self, op: &Op, error: &Failure) -> Result<(), String> {
        if self.faulty.faults() == 0 {
            return Err(format!("`{op}` fails though the device is healthy: {error}"));
        }
        // The effects of a failed operation may be missing here.
        let follows = self.lost || !op.fits(&self.tree) || error.is_refusal();
        if !error.is_typed(self.way) && !follows {
            return Err(format!("`{op}` fails with {error}, which is not what the device said"));
        }
        self.row.surfaced = 1;
        Ok(())
    }

    /// On a device that is gone nothing becomes durable any more: a success would be a lie.
    fn unsaved(&mut self, op: &Op, fs: &FileSystem) -> Result<(), String> {
        if self.way != Way::ForGood || self.faulty.faults() == 0 {
            return Ok(());
        }
        match op {
            Op::WriteDurable(..) => {
                return Err(format!("`{op}` succeeds on a device that is gone (stopped: {:?})", fs.volume().stopped()));
            }
            Op::Sync(path) if self.unsaved.contains(path) => {
                return Err(format!("`{op}` succeeds on a device that is gone (stopped: {:?})", fs.volume().stopped()));
            }
            // It writes a record of the names that changed: perhaps there are none.
            Op::SyncDir(_) => {}
            Op::Checkpoint if !self.unsaved.is_empty() => {
                return Err(format!("a checkpoint of {:?} succeeds on a device that is gone", self.unsaved));
            }
            op => self.unsaved.extend(op.subject().map(str::to_owned)),
        }
        Ok(())
    }

    /// Compares with what the file system shows, on a device that works again. After a failed operation either tree is
    /// right; inodes are not compared where the operation would have made one.
    fn compare(&mut self, fs: &FileSystem, with: Option<&Tree>, op: &Op) -> Result<(), String> {
        if self.way == Way::ForGood {
            self.lost = true;
            return Ok(());
        }
        self.faulty.disarm();
        let found = match Tree::walk(fs) {
            Ok(found) => found,
            Err(_) if !self.way.is_honest() => {
                self.row.surfaced = 1;
                self.lost = true;
                return Ok(());
            }
            Err(error) => return Err(format!("after `{op}` the tree cannot be read: {error}")),
        };
        if found != self.tree && self.way.is_honest() && !with.is_some_and(|with| same_but_numbers(&found, with)) {
            return Err(format!("after `{op}` the tree is neither old nor new:\n{}", found.difference(&self.tree)));
        }
        // If the device lied, its effect on the tree stays in the model only if it was reported.
        if with.is_some() || self.way.is_honest() {
            self.tree = found;
        }
        Ok(())
    }

    /// A volume that stopped refuses every change, with the reason.
    fn stay_stopped(&mut self, fs: &FileSystem) -> Result<(), String> {
        self.row.stopped = 1;
        for result in [fs.create_file("/never", 0o644).map(drop), fs.checkpoint().map(drop), fs.close()] {
            match result {
                Err(error) if is_typed(&error, self.way) => {}
                Err(error) => return Err(format!("a stopped volume says {error}")),
                Ok(()) => return Err("a stopped volume takes a change".to_owned()),
            }
        }
        Ok(())
    }
}
