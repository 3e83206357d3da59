//! Looks at the states that a crash of a recorded workload may leave.
//!
//! Each state is checked without a write, opened, and compared with what must and may be there (module `state`). Some
//! are used and closed as well, with a check and a comparison afterwards; what the use wrote, the recovery included, is
//! recorded, and of some of these the states that a crash *in that* leaves are looked at in the same way.

use std::collections::HashSet;

use f2fs_device::MemoryDevice;
use f2fs_device_test::{Cut, CutPlan, Replay};
use serde::{Deserialize, Serialize};

use crate::contents::Contents;
use crate::judge::Expectation;
use crate::pool::caught;
use crate::record::Recording;
use crate::state::{judged_by_fsck, look, look_and_use};
use crate::watch::watched;
use f2fs_device_test::Random;

/// How states are chosen.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Which cuts there are.
    pub cuts: CutPlan,
    /// States of one workload at most, chosen at random.
    pub quota: usize,
    /// One in so many states is used, closed, and looked at again.
    pub used: usize,
    /// One in so many of those that are used is crashed again in its recovery and its use.
    pub again: usize,
    /// States of such a second crash at most.
    pub again_quota: usize,
    /// One in so many of those that are used is given to fsck.f2fs, before and after; 0: none.
    pub fsck: usize,
    /// Cuts before the last operation are made as well. They are those of shorter workloads.
    pub whole: bool,
    /// Violations after which it ends; those before are kept in [`Explorer::findings`].
    pub endured: usize,
}

/// Counts of the states that were looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tally {
    /// Workloads.
    pub workloads: u64,
    /// Epochs of their logs.
    pub epochs: u64,
    /// Cuts that there were.
    pub cuts: u64,
    /// States that were looked at: of one workload, each differs from the others in its content or in what was promised
    /// by then.
    pub states: u64,
    /// Of them: whose content differs from that of all other states, of all workloads.
    pub distinct: u64,
    /// Of them: used, closed and looked at again.
    pub used: u64,
    /// Of them: after a second crash, in the recovery from the first or in the use that followed.
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
            distinct: self.distinct + other.distinct,
            used: self.used + other.used,
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
    /// The fault.
    pub what: String,
    /// The state.
    pub image: MemoryDevice,
}

/// Looks at states of one workload.
#[derive(Debug)]
pub struct Explorer<'a> {
    plan: Plan,
    random: Random,
    /// Of the content that the workload begins with.
    print: u64,
    contents: &'a Contents,
    /// Contents with what was promised, of this workload.
    seen: HashSet<u64>,
    /// The counts so far.
    pub tally: Tally,
    /// Violations that were endured.
    pub findings: Vec<Violation>,
}

/// Where a recording stands among crashes.
struct Level<'a> {
    recording: &'a Recording,
    /// The cuts that led here.
    above: &'a [Cut],
    /// Fingerprint of the content that the log begins with.
    print: u64,
}

impl<'a> Explorer<'a> {
    /// Chooses as `plan` says, by chance as `random` gives it. `print` tells the volume that the workload begins on
    /// from others that `contents` knows.
    #[must_use]
    pub fn new(plan: Plan, random: Random, print: u64, contents: &'a Contents) -> Explorer<'a> {
        Explorer { plan, random, print, contents, seen: HashSet::new(), tally: Tally::default(), findings: Vec::new() }
    }

    /// Looks at the states that crashes of a recorded workload leave.
    ///
    /// # Errors
    /// The first state that is not as it must be.
    pub fn explore(&mut self, recording: &Recording) -> Result<(), Box<Violation>> {
        self.tally.workloads += 1;
        let from = if self.plan.whole { 0 } else { recording.last_step };
        let level = Level { recording, above: &[], print: self.print };
        self.explore_level(&level, from, self.plan.quota)
    }

    /// Looks at one state: the cut, and the cuts in the recoveries that follow.
    ///
    /// # Errors
    /// The fault.
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
        let promises = level.recording.promises();
        // Where cuts begin.
        let mut starts = Vec::new();
        loop {
            let (start, end) = (replay.position(), replay.epoch_end());
            let next = replay.epoch_behind(end);
            // The states that the end of an epoch may leave are judged by the promises at its beginning; and by the
            // promises in its middle, what that position may leave. A promise where the next epoch begins is looked at
            // with that.
            let inside = promises.range(start..=end).filter(|at| **at != start && (**at != next || next == events));
            for (start, end) in std::iter::once((start, end)).chain(inside.map(|at| (*at, *at))) {
                replay.advance_to(start);
                starts.push(start);
                if end > from || end == events {
                    let mut random = self.random.clone();
                    all.extend(self.plan.cuts.cuts(&replay, end, || random.next()));
                    self.random = random;
                    self.tally.epochs += 1;
                }
            }
            replay.advance_to(next);
            if start == next || (next >= events && end == events) {
                break;
            }
        }
        self.tally.cuts += all.len() as u64;
        // Writes that overlap in flight are few among the others.
        let (mut late, mut all): (Vec<Cut>, Vec<Cut>) = all.into_iter().partition(|cut| cut.late.is_some());
        self.thin(&mut late, (quota / 4).max(1));
        self.thin(&mut all, quota.saturating_sub(late.len()));
        all.append(&mut late);
        all.sort_unstable_by_key(|cut| cut.start);

        let mut replay = level.recording.log.replay();
        let mut print = level.print;
        let mut cuts = all.iter().peekable();
        for start in starts {
            print = replay.advanced_to(start, print);
            while let Some(cut) = cuts.next_if(|cut| cut.start == start) {
                match self.state(level, &replay, cut, print) {
                    Err(violation) if self.findings.len() < self.plan.endured => self.findings.push(*violation),
                    other => other?,
                }
            }
        }
        Ok(())
    }

    /// Leaves `quota` cuts, chosen at random.
    fn thin(&mut self, cuts: &mut Vec<Cut>, quota: usize) {
        while cuts.len() > quota {
            let index = self.random.below(cuts.len());
            cuts.swap_remove(index);
        }
    }

    fn state(&mut self, level: &Level<'_>, replay: &Replay<'_>, cut: &Cut, print: u64) -> Result<(), Box<Violation>> {
        let (image, print) = replay.cut(cut, print);
        // The same content is another state if more was promised by then.
        let expectation = Expectation { recording: level.recording, start: cut.start, end: cut.end };
        let key = print ^ expectation.due();
        if !self.seen.insert(key) {
            self.tally.duplicates += 1;
            return Ok(());
        }
        self.tally.states += 1;
        self.tally.distinct += u64::from(self.contents.add(print));
        self.tally.torn += u64::from(cut.torn.is_some());
        self.tally.again += u64::from(!level.above.is_empty());
        let path = [level.above, std::slice::from_ref(cut)].concat();
        if !self.random.chance(self.plan.used) {
            let looked = watched(&path, || caught(|| look(&image, &expectation)));
            return looked.map_err(|what| violation(&path, what, &image));
        }
        let fsck = self.plan.fsck != 0 && self.random.chance(self.plan.fsck);
        let next = self.examine(&image, &expectation, &path, fsck)?;
        if level.above.is_empty() && self.random.chance(self.plan.again) {
            let below = Level { recording: &next, above: &path, print };
            self.explore_level(&below, 0, self.plan.again_quota)?;
        }
        Ok(())
    }

    /// Looks at a state and uses it; gives the recording of its recovery and use.
    fn examine(
        &mut self,
        image: &MemoryDevice,
        expectation: &Expectation<'_>,
        cuts: &[Cut],
        fsck: bool,
    ) -> Result<Recording, Box<Violation>> {
        self.tally.used += 1;
        self.tally.fsck += u64::from(fsck);
        let use_it = || {
            let (recording, after) = look_and_use(image, expectation, cuts.len() as u64)?;
            if fsck {
                judged_by_fsck(image, false)?;
                judged_by_fsck(&after, true)?;
            }
            Ok(recording)
        };
        watched(cuts, || caught(use_it)).map_err(|what| violation(cuts, what, image))
    }
}

fn violation(cuts: &[Cut], what: String, image: &MemoryDevice) -> Box<Violation> {
    Box::new(Violation { cuts: cuts.to_vec(), what, image: image.snapshot() })
}

#[cfg(test)]
mod tests;
