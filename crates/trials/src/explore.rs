//! Looks at the states that a crash of a recorded workload may leave.
//!
//! Each state is checked without a write, opened, compared with what must and may be there, used and closed; what the use
//! wrote is recorded, and the states that a crash *in that* leaves are looked at in the same way.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use f2fs_device::{Cut, CutPlan, MemoryDevice, RecordingDevice, Replay};
use f2fs_files::FileSystem;
use f2fs_sync::Arc;
use f2fs_volume::check::{CheckOptions, CheckReport, check};

use crate::base::options;
use crate::judge::Expectation;
use crate::op::Op;
use crate::random::Random;
use crate::record::{Recording, Source, record_on};
use crate::tree::Tree;

/// How states are chosen.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Which cuts there are.
    pub cuts: CutPlan,
    /// States of one workload at most, chosen by chance.
    pub quota: usize,
    /// One in so many states is crashed again while it recovers.
    pub again: usize,
    /// States of such a second crash at most.
    pub again_quota: usize,
    /// One in so many states is given to fsck.f2fs as well; 0: none.
    pub fsck: usize,
    /// Cuts before the last operation are made as well. They are those of shorter workloads.
    pub whole: bool,
}

/// What was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Workloads.
    pub workloads: u64,
    /// Epochs of their logs.
    pub epochs: u64,
    /// Cuts that there were.
    pub cuts: u64,
    /// States that were looked at, of different content each.
    pub states: u64,
    /// Of them: after a second crash, during recovery.
    pub again: u64,
    /// Of them: with a request torn.
    pub torn: u64,
    /// Of them: judged by fsck.f2fs too.
    pub fsck: u64,
    /// Cuts that left a content that was seen before.
    pub duplicates: u64,
}

impl Tally {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Tally) -> Tally {
        Tally {
            workloads: self.workloads + other.workloads,
            epochs: self.epochs + other.epochs,
            cuts: self.cuts + other.cuts,
            states: self.states + other.states,
            again: self.again + other.again,
            torn: self.torn + other.torn,
            fsck: self.fsck + other.fsck,
            duplicates: self.duplicates + other.duplicates,
        }
    }
}

/// A state that is not as it must be.
#[derive(Debug)]
pub struct Violation {
    /// The cut, and the one in the recovery from it.
    pub cuts: Vec<Cut>,
    /// What is wrong.
    pub what: String,
    /// The state.
    pub image: MemoryDevice,
}

/// Looks at states of one workload.
#[derive(Debug)]
pub struct Explorer {
    plan: Plan,
    random: Random,
    seen: HashSet<u64>,
    /// What was looked at so far.
    pub tally: Tally,
}

/// Where a recording stands among crashes.
struct Level<'a> {
    recording: &'a Recording,
    /// The cuts that led here.
    above: &'a [Cut],
    /// Fingerprint of the content that the log begins with.
    print: u64,
}

impl Explorer {
    /// Chooses as `plan` says, by chance as `random` gives it.
    #[must_use]
    pub fn new(plan: Plan, random: Random) -> Explorer {
        Explorer { plan, random, seen: HashSet::new(), tally: Tally::default() }
    }

    /// Looks at the states that crashes of a recorded workload leave.
    ///
    /// # Errors
    /// The first state that is not as it must be.
    pub fn explore(&mut self, recording: &Recording) -> Result<(), Box<Violation>> {
        self.tally.workloads += 1;
        let from = if self.plan.whole { 0 } else { recording.last_step };
        let level = Level { recording, above: &[], print: 0 };
        self.explore_level(&level, from, self.plan.quota)
    }

    /// Looks at one state: the cut, and the cuts in the recoveries that follow.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn repeat(&mut self, recording: &Recording, cuts: &[Cut]) -> Result<(), Box<Violation>> {
        self.repeat_level(recording, &[], cuts)
    }

    fn repeat_level(&mut self, recording: &Recording, above: &[Cut], cuts: &[Cut]) -> Result<(), Box<Violation>> {
        let Some((cut, rest)) = cuts.split_first() else { return Ok(()) };
        let mut replay = recording.log.replay();
        while replay.position() < cut.start && replay.advance().is_some() {}
        let image = replay.cut(cut, 0).0;
        let path = [above, std::slice::from_ref(cut)].concat();
        let expectation = Expectation { recording, start: cut.start, end: cut.end };
        let next = self.examine(&image, &expectation, &path, true)?;
        self.repeat_level(&next, &path, rest)
    }

    fn explore_level(&mut self, level: &Level<'_>, from: usize, quota: usize) -> Result<(), Box<Violation>> {
        let mut all: Vec<Cut> = Vec::new();
        let mut replay = level.recording.log.replay();
        let events = level.recording.log.events().len();
        let mut epochs = Vec::new();
        loop {
            let (start, end) = (replay.position(), replay.epoch_end());
            if end > from || end == events {
                let mut random = self.random.clone();
                all.extend(self.plan.cuts.cuts(&replay, end, || random.next()));
                self.random = random;
                self.tally.epochs += 1;
            }
            epochs.push((start, end));
            replay.advance_epoch(end);
            if start == replay.position() || (replay.position() >= events && end == events) {
                break;
            }
        }
        self.tally.cuts += all.len() as u64;
        while all.len() > quota {
            let index = self.random.below(all.len());
            all.swap_remove(index);
        }
        all.sort_unstable_by_key(|cut| cut.start);

        let mut replay = level.recording.log.replay();
        let mut print = level.print;
        let mut cuts = all.iter().peekable();
        for (start, end) in epochs {
            while let Some(cut) = cuts.next_if(|cut| cut.start == start) {
                self.state(level, &replay, cut, print)?;
            }
            print = replay.advanced(end, print);
        }
        Ok(())
    }

    fn state(&mut self, level: &Level<'_>, replay: &Replay<'_>, cut: &Cut, print: u64) -> Result<(), Box<Violation>> {
        let (image, print) = replay.cut(cut, print);
        // The same content is another state if more was promised by then.
        let expectation = Expectation { recording: level.recording, start: cut.start, end: cut.end };
        let key = print ^ expectation.oldest().version.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        if !self.seen.insert(key) {
            self.tally.duplicates += 1;
            return Ok(());
        }
        self.tally.states += 1;
        self.tally.torn += u64::from(cut.torn.is_some());
        self.tally.again += u64::from(!level.above.is_empty());
        let path = [level.above, std::slice::from_ref(cut)].concat();
        let fsck = self.plan.fsck != 0 && self.random.chance(self.plan.fsck);
        let next = self.examine(&image, &expectation, &path, fsck)?;
        if level.above.is_empty() && self.random.chance(self.plan.again) {
            let below = Level { recording: &next, above: &path, print };
            self.explore_level(&below, 0, self.plan.again_quota)?;
        }
        Ok(())
    }

    /// Looks at a state; gives the recording of its recovery and use.
    fn examine(
        &mut self,
        image: &MemoryDevice,
        expectation: &Expectation<'_>,
        cuts: &[Cut],
        fsck: bool,
    ) -> Result<Recording, Box<Violation>> {
        let violation = |what| Box::new(Violation { cuts: cuts.to_vec(), what, image: image.snapshot() });
        let examined = catch_unwind(AssertUnwindSafe(|| examine(image, expectation, cuts.len() as u64)));
        let (recording, after) = examined
            .unwrap_or_else(|panic| {
                let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
                Err(format!("a panic: {}", text.unwrap_or("of an unknown kind")))
            })
            .map_err(violation)?;
        if fsck {
            self.tally.fsck += 1;
            for (image, closed) in [(image, false), (&after, true)] {
                judged_by_fsck(image, closed).map_err(violation)?;
            }
        }
        Ok(recording)
    }
}

/// The verdict of a check on the caller's own pool of threads.
pub(crate) fn verdict(image: &MemoryDevice) -> Result<CheckReport, String> {
    let options = CheckOptions { threads: Some(0), ..CheckOptions::default() };
    check(image, &options).map_err(|error| format!("the check gives no verdict: {error}"))
}

fn examine(
    image: &MemoryDevice,
    expectation: &Expectation<'_>,
    depth: u64,
) -> Result<(Recording, MemoryDevice), String> {
    let report = verdict(image)?;
    if !report.is_consistent() || !report.complete {
        return Err(format!("the check finds, before anything is opened:\n{report}"));
    }
    let device = Arc::new(RecordingDevice::new(image.snapshot()));
    let fs = FileSystem::open(device.clone(), options()).map_err(|error| format!("it does not open: {error}"))?;
    let version = fs.volume().last_checkpoint().version;
    let tree = Tree::walk(&fs).map_err(|error| format!("it cannot be read: {error}"))?;
    expectation.judge(version, &tree)?;

    // It goes on: a new file, a change of an old one, a file made durable, a close.
    let mut ops = after_crash(depth).into_iter();
    let source: Source<'_> = Box::new(move |tree| ops.find(|op| op.fits(tree)));
    let recording = record_on(&device, &fs, &tree, 0x5eed << 20, &mut [("/".to_owned(), source)], true)
        .map_err(|error| format!("used after the crash: {error}"))?;
    drop(fs);
    let after = device.snapshot();
    let report = verdict(&after)?;
    if !report.is_clean() {
        return Err(format!("the check finds, after it was used and closed:\n{report}"));
    }
    let last = recording.lanes[0].history(recording.lanes[0].steps.len());
    let fs = FileSystem::open(Arc::new(after.snapshot()), options().read_only(true))
        .map_err(|error| format!("it does not open after it was used and closed: {error}"))?;
    let found = Tree::walk(&fs).map_err(|error| format!("it cannot be read after it was used: {error}"))?;
    if found != *last {
        return Err(format!("used and closed, it holds something else:\n{}", found.difference(last)));
    }
    Ok((recording, after))
}

fn after_crash(depth: u64) -> Vec<Op> {
    let new = format!("/after-{depth}");
    vec![
        Op::Create(new.clone()),
        Op::Write(new.clone(), 0, 5000),
        Op::Write("/A/foo".into(), 1000, 9000),
        Op::Rename("/B/baz".into(), format!("/A/moved-{depth}")),
        Op::Sync(new.clone()),
        Op::Unlink("/A/bar".into()),
        Op::Truncate(new, 100),
    ]
}

fn judged_by_fsck(image: &MemoryDevice, closed: bool) -> Result<(), String> {
    let file = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
    image.save(file.path()).map_err(|error| error.to_string())?;
    let report = f2fs_oracle::fsck(file.path()).map_err(|error| error.to_string())?;
    let good = if closed { report.is_clean() } else { report.is_accepted() };
    if good { Ok(()) } else { Err(format!("fsck.f2fs finds{}:\n{report}", if closed { " after the use" } else { "" })) }
}
