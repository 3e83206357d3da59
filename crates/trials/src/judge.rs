//! The contents that a volume may have after a crash, and those that it must have.
//!
//! - The checkpoint that is found is the last one that had completed, or a later one. Whatever lies between is no
//!   state.
//! - Each lane's part of the tree is exactly what the lane had done when that checkpoint was taken.
//! - Unless files were made durable by themselves after it (`fsync` and roll-forward): then such a file has a content
//!   that it had at its last completed `fsync` or later, under names that it had then or later; a file whose `fsync`
//!   had begun has the old or a new content; every other file has the content of the checkpoint, and names that it had
//!   at the checkpoint or since; no file is there that was neither in the checkpoint nor made durable. A name is an
//!   entry in a directory: where that directory is by then, its own `fsync` or a checkpoint decides.
//! - A record of names in a journal is an `fsync` of each file whose names changed since the last one, or since the
//!   checkpoint: of those that went as well. Where several lanes write such records, each lane is promised what its own
//!   syncs of directories name, and may find what the records of the others do.
//! - A content is bytes, mode, owner, times and extended attributes together.
//! - As in the kernel, an `fsync` that had not completed promises nothing of the blocks that it was to make durable:
//!   its node may be on the device, and the data, which no flush came before, may not. Blocks that were not written are
//!   as they were. In mode `Strict` each block has a content that it had at some time.

mod kernel;
mod records;
mod shared;
#[cfg(test)]
mod tests;
mod torn;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hasher};
use std::ops::Range;

use f2fs_sync::Arc;

use crate::op::Op;
use crate::record::{Lane, Maker, Mark, Recording, Step};
use crate::tree::{Content, Node, Tree};
use records::{Recorded, recorded_beside};
use torn::written;

/// Bytes that are written together.
const BLOCK: usize = f2fs_device::BLOCK_SIZE;

/// The judge's yardstick: a workload, cut between two positions of its log.
#[derive(Clone, Copy, Debug)]
pub struct Expectation<'a> {
    /// The workload.
    pub recording: &'a Recording,
    /// Events before the epoch of the cut, or before the cut itself: what was promised by then must be there.
    pub start: usize,
    /// Events up to its end: what had not begun by then cannot be there.
    pub end: usize,
}

impl<'a> Expectation<'a> {
    /// The oldest checkpoint that may be found.
    #[must_use]
    pub fn oldest(&self) -> &'a Mark {
        let marks = &self.recording.marks;
        let done = marks.iter().rposition(|mark| mark.done <= self.start).unwrap_or(0);
        &marks[done]
    }

    /// Identifies what is due: states of the same content are different ones if more was promised by then.
    #[must_use]
    pub fn due(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.oldest().version);
        for lane in &self.recording.lanes {
            hasher
                .write_usize(lane.steps.iter().filter(|step| step.is_synced() && step.events.1 <= self.start).count());
        }
        hasher.finish()
    }

    /// Judges what was found: the version of the checkpoint, and the tree.
    ///
    /// # Errors
    /// The fault, for people.
    pub fn judge(&self, version: u64, found: &Tree) -> Result<(), String> {
        let marks = &self.recording.marks;
        let oldest = self.oldest();
        let first = &marks[0];
        let fits = |mark: &&Mark| {
            let same = mark.version == version || (version < first.version && mark.version == first.version);
            mark.version >= oldest.version && same
        };
        let mut complaints = Vec::new();
        for mark in marks.iter().rev().filter(fits) {
            match self.judge_mark(mark, found) {
                Ok(()) => return Ok(()),
                Err(wrong) => complaints.push((mark, wrong)),
            }
        }
        if complaints.is_empty() {
            let (oldest, newest) = (oldest.version, marks[marks.len() - 1].version);
            return Err(format!(
                "checkpoint {version:#x} was found; {oldest:#x} had completed ({newest:#x} is the last)"
            ));
        }
        let text = |(mark, wrong): &(&Mark, Wrong<'_>)| {
            format!("as checkpoint {:#x}: {}", mark.version, wrong.describe(found))
        };
        Err(complaints.iter().map(text).collect::<Vec<_>>().join("  or "))
    }

    fn judge_mark(&self, mark: &Mark, found: &Tree) -> Result<(), Wrong<'a>> {
        if let Some(shared) = &self.recording.shared {
            return self.judge_shared(shared, mark, found);
        }
        for (lane, (low, high)) in self.recording.lanes.iter().zip(&mark.lanes) {
            let part = if lane.dir == "/" { Cow::Borrowed(found) } else { Cow::Owned(found.below(&lane.dir)) };
            self.judge_lane(lane, (*low, (*high).min(lane.steps.len())), &part)?;
        }
        Ok(())
    }

    fn judge_lane(&self, lane: &'a Lane, (low, high): (usize, usize), found: &Tree) -> Result<(), Wrong<'a>> {
        let others = self.records_beside(lane);
        let rolled = |base: usize| {
            let begun = |step: &Step| step.is_recovered() && step.events.0 <= self.end;
            lane.steps.iter().skip(base).any(begun) || others.iter().any(|record| record.end > base)
        };
        let mut complaint = Fault::Tree;
        for base in low..=high {
            if self.recording.maker == Maker::Kernel {
                match self.judge_kernel(lane, base, rolled(base), found) {
                    Ok(()) => return Ok(()),
                    Err(fault) => complaint = fault,
                }
            } else if rolled(base) {
                match self.judge_rolled(lane, base, &others, found) {
                    Ok(()) => return Ok(()),
                    Err(fault) => complaint = fault,
                }
            } else if found == lane.history(base) || base < high && is_half_written(lane, base, found) {
                return Ok(());
            } else {
                complaint = Fault::Tree;
            }
        }
        let steps = match complaint {
            Fault::Tree => high,
            Fault::Names { from, .. } | Fault::Content { from, .. } => from,
        };
        Err(Wrong { dir: &lane.dir, tree: lane.history(steps), steps, fault: complaint })
    }

    /// The tree after a checkpoint with `base` operations, and a roll-forward.
    fn judge_rolled(&self, lane: &Lane, base: usize, others: &[Range<usize>], found: &Tree) -> Result<(), Fault> {
        let begun = lane.steps.iter().take_while(|step| step.events.0 <= self.end).count().max(base);
        let mut inos: BTreeSet<u32> = found.nodes.keys().copied().collect();
        for index in base..=begun {
            inos.extend(lane.history(index).nodes.keys());
        }
        for ino in inos {
            let recorded = self.records_of(lane, base, begun, ino);
            // Steps are counted from 1: the tree after step k is history(k).
            let is_own = |step: &Step| step.fsynced == Some(ino);
            let is_done = |step: &Step| step.is_synced() && step.events.1 <= self.start;
            let own =
                (base + 1..=begun).filter(|at| is_own(&lane.steps[at - 1])).map(|at| Recorded { by: at, as_of: at });
            let any: Vec<Recorded> = own.chain(recorded).collect();
            let done = any.iter().filter(|synced| is_done(&lane.steps[synced.by - 1])).map(|synced| synced.as_of).max();
            let unfinished = lane.steps[base..begun].iter().any(|step| is_own(step) && !is_done(step));
            let is_dir = lane.history(base).nodes.get(&ino).is_some_and(|node| node.content == Content::Dir);
            let from = done.unwrap_or(base);
            let mut contents: Vec<Option<&Node>> = Vec::new();
            if done.is_none() {
                contents.push(lane.history(base).nodes.get(&ino).map(|node| &**node));
            }
            for Recorded { as_of, .. } in any {
                let later = (as_of.max(from)..=begun).map(|at| lane.history(at).nodes.get(&ino).map(|node| &**node));
                contents.extend(later);
            }
            if let Some(first) = recorded_beside(lane, base, others, ino) {
                let since = (first.max(from)..=begun).map(|at| lane.history(at).nodes.get(&ino).map(|node| &**node));
                contents.extend(since);
            }
            let names: Vec<BTreeSet<(u32, &str)>> = (from..=begun).map(|at| lane.history(at).entries_of(ino)).collect();
            let (node, here) = (found.nodes.get(&ino).map(|node| &**node), found.entries_of(ino));
            if !(names.contains(&here) || node.is_none() && contents.contains(&None)) {
                return Err(Fault::Names { ino, from });
            }
            let gone = node.is_none() && names.iter().any(BTreeSet::is_empty);
            let versions = (base..=begun).filter_map(|at| lane.history(at).nodes.get(&ino)).map(|node| &node.content);
            let torn = self.torn(written(lane, from, begun, ino), versions);
            let same = |wanted: &Option<&Node>| match (node, wanted) {
                (Some(node), Some(wanted)) => {
                    let content =
                        node.content == wanted.content || unfinished && torn.explains(&node.content, &wanted.content);
                    content && node.attributes == wanted.attributes && node.xattrs == wanted.xattrs
                }
                (None, None) => true,
                _ => false,
            };
            if !is_dir && !gone && !contents.iter().any(same) {
                return Err(Fault::Content { ino, from });
            }
        }
        Ok(())
    }
}

/// The fault of a lane's part of a tree. Most candidates have one, so it becomes a text only if all of them do.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// Not the tree of the checkpoint.
    Tree,
    /// An inode has names that it had at no time since so many operations.
    Names { ino: u32, from: usize },
    /// An inode has a content that it had at no time since so many operations.
    Content { ino: u32, from: usize },
}

#[derive(Clone, Copy, Debug)]
struct Wrong<'a> {
    /// The part of the tree that is judged.
    dir: &'a str,
    /// The tree that was expected, or one that comes near to it.
    tree: &'a Tree,
    /// Operations that led there.
    steps: usize,
    fault: Fault,
}

impl Wrong<'_> {
    fn describe(&self, found: &Tree) -> String {
        let Wrong { dir, tree, steps, fault } = self;
        let difference = found.below(dir).difference(tree);
        let (what, ino) = match fault {
            Fault::Tree => return format!("not the tree of {steps} operations:\n{difference}"),
            Fault::Names { ino, .. } => ("names", ino),
            Fault::Content { ino, .. } => ("a content", ino),
        };
        let names = found.names_of(*ino);
        format!("inode {ino} ({names:?}) has {what} that it had at no time since operation {steps}:\n{difference}")
    }
}

/// Whether the tree is that after `base` operations but for the next one, which wrote some of its blocks. Where a
/// volume is nearly full a write goes block by block, and a checkpoint that makes room may come in its middle.
fn is_half_written(lane: &Lane, base: usize, found: &Tree) -> bool {
    let Some(Op::Write(path, ..)) = lane.steps.get(base).map(|step| &step.op) else { return false };
    let (old, new) = (lane.history(base), lane.history(base + 1));
    let node = |tree: &Tree| old.names.get(path).and_then(|ino| tree.nodes.get(ino)).cloned();
    let (Some(before), Some(after), Some(half)) = (node(old), node(new), node(found)) else { return false };
    let (Content::File(from), Content::File(to), Content::File(bytes)) =
        (&before.content, &after.content, &half.content)
    else {
        return false;
    };
    let same = |index: usize, block: &[u8]| {
        let of = |file: &[u8]| file.get(index * BLOCK..index * BLOCK + block.len()) == Some(block);
        of(from) || of(to)
    };
    let others =
        |(ino, node): (&u32, &Arc<Node>)| old.names.get(path) == Some(ino) || found.nodes.get(ino) == Some(node);
    let like =
        |other: &Node| (half.attributes, half.links) == (other.attributes, other.links) && half.xattrs == other.xattrs;
    bytes.len() >= from.len()
        && bytes.chunks(BLOCK).enumerate().all(|(index, block)| same(index, block))
        && (like(&before) || like(&after))
        && found.names == old.names
        && found.nodes.len() == old.nodes.len()
        && old.nodes.iter().all(others)
}
