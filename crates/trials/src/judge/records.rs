//! Records of names in a journal: which of them an inode is in.

use std::ops::Range;

use super::Expectation;
use crate::op::Op;
use crate::record::shared::before;
use crate::record::{Lane, Step};

/// An inode is durable by an operation of its lane, as it was after another one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recorded {
    /// The operation, counted from 1.
    pub(super) by: usize,
    /// The one after which it was so, at the latest this one.
    pub(super) as_of: usize,
}

impl Expectation<'_> {
    /// The records of names behind `base` operations that have an inode for certain, since its names had changed.
    ///
    /// Where there are several lanes, a sync of a directory may find what changed there in the record of another lane:
    /// so it has the inode as it was after the last such change, or later.
    pub(super) fn records_of(&self, lane: &Lane, base: usize, begun: usize, ino: u32) -> Vec<Recorded> {
        let several = self.recording.lanes.len() > 1;
        let mut before = base;
        let mut records = Vec::new();
        for by in (base + 1..=begun).filter(|at| lane.steps[at - 1].names) {
            let as_of = match (&lane.steps[by - 1].op, several) {
                (Op::SyncDir(path), true) => last_change_in(lane, base..by, ino, path),
                _ => last_change(lane, before..by, ino).map(|_| by),
            };
            records.extend(as_of.map(|as_of| Recorded { by, as_of }));
            before = by;
        }
        records
    }

    /// The records that lanes may have written beside this one, as the operations of this lane that they may end
    /// with.
    pub(super) fn records_beside(&self, lane: &Lane) -> Vec<Range<usize>> {
        let lanes = &self.recording.lanes;
        if lanes.len() == 1 {
            return Vec::new();
        }
        let writes =
            |step: &&Step| step.recorded && matches!(step.op, Op::Sync(_) | Op::SyncDir(_) | Op::WriteDurable(..));
        let begun = |step: &&Step| step.events.0 <= self.end;
        let beside = |step: &Step| {
            let [ended] = before(std::slice::from_ref(lane), 1, step.clock.0)[..] else { return 0..0 };
            ended..lane.steps.iter().take_while(|own| own.clock.0 < step.clock.1).count()
        };
        lanes.iter().flat_map(|lane| &lane.steps).filter(writes).filter(begun).map(beside).collect()
    }
}

/// The first of the lane's operations that a record of another lane may end with which has an inode.
pub(super) fn recorded_beside(lane: &Lane, base: usize, records: &[Range<usize>], ino: u32) -> Option<usize> {
    let of = records.iter().filter(|record| record.end > base && last_change(lane, base..record.end, ino).is_some());
    of.map(|record| record.start.max(base)).min()
}

/// The last of these operations that changed the names of an inode.
fn last_change(lane: &Lane, steps: Range<usize>, ino: u32) -> Option<usize> {
    let entries = |at: usize| lane.history(at).entries_of(ino);
    (steps.start + 1..=steps.end).rfind(|at| entries(at - 1) != entries(*at))
}

/// The last one that changed those in one directory.
fn last_change_in(lane: &Lane, steps: Range<usize>, ino: u32, path: &str) -> Option<usize> {
    let dir = *lane.history(steps.end).names.get(path)?;
    let entries = |at: usize| {
        let mut all = lane.history(at).entries_of(ino);
        all.retain(|(parent, _)| *parent == dir);
        all
    };
    (steps.start + 1..=steps.end).rfind(|at| entries(at - 1) != entries(*at))
}
