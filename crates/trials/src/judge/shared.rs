//! Judges what is found of files and directories that threads share.
//!
//! The rules are those of one thread, with frontiers in the place of numbers: a checkpoint is a tree of a frontier at
//! which it may have been taken. A file that was synced since is as it was at some frontier behind all that had ended
//! when the sync began. Blocks that other threads write while a file is synced may be in that, each for itself.

use std::collections::BTreeSet;

use super::torn::Torn;
use super::{BLOCK, Expectation, Fault, Wrong};
use crate::record::shared::{Frontier, Shared, before, is_at_most};
use crate::record::{Mark, Step};
use crate::tree::{Content, Node, Tree};

/// A sync of an inode behind a checkpoint.
struct Synced<'a> {
    step: &'a Step,
    /// The operations that had ended before it began, and it itself.
    behind: Frontier,
    /// Whether it is due.
    done: bool,
}

impl<'a> Expectation<'a> {
    /// Judges the tree by a checkpoint.
    pub(super) fn judge_shared(&self, shared: &'a Shared, mark: &Mark, found: &Tree) -> Result<(), Wrong<'a>> {
        let threads = shared.deeds.len();
        let low: Frontier = mark.lanes[..threads].iter().map(|(low, _)| *low).collect();
        let high: Frontier =
            mark.lanes[..threads].iter().zip(&shared.deeds).map(|((_, high), all)| *high.min(&all.len())).collect();
        let mut wrong = None;
        for (base, tree) in shared.between(low, high) {
            let steps = self.recording.lanes[..threads].iter().zip(base);
            let rolled = steps
                .flat_map(|(lane, base)| &lane.steps[*base..])
                .any(|step| (step.is_recovered() || step.recorded) && step.events.0 <= self.end);
            let judged = match rolled {
                true => self.judge_shared_rolled(shared, base, tree, found),
                false if found == &**tree => Ok(()),
                false => Err(Fault::Tree),
            };
            match judged {
                Ok(()) => return Ok(()),
                Err(fault) => wrong = Some(Wrong { dir: "/", tree, steps: base.iter().sum(), fault }),
            }
        }
        let first = &*self.recording.lanes[0].first;
        Err(wrong.unwrap_or(Wrong { dir: "/", tree: first, steps: 0, fault: Fault::Tree }))
    }

    /// The tree after a checkpoint at a frontier, and a roll-forward.
    fn judge_shared_rolled(
        &self,
        shared: &Shared,
        base: &Frontier,
        checkpointed: &Tree,
        found: &Tree,
    ) -> Result<(), Fault> {
        let threads = shared.deeds.len();
        let lanes = &self.recording.lanes[..threads];
        let begun: Frontier = lanes
            .iter()
            .zip(base)
            .map(|(lane, base)| (*base).max(lane.steps.iter().take_while(|step| step.events.0 <= self.end).count()))
            .collect();
        let trees: Vec<(&Frontier, &Tree)> =
            shared.between(base.clone(), begun.clone()).map(|(at, tree)| (at, &**tree)).collect();
        let behind = |step: &Step| {
            let mut behind = before(lanes, threads, step.clock.0);
            behind.iter_mut().zip(base).for_each(|(behind, base)| *behind = (*behind).max(*base));
            behind
        };
        let begun_steps =
            || lanes.iter().zip(base.iter().zip(&begun)).map(|(lane, (base, begun))| &lane.steps[*base..*begun]);
        let records: Vec<Frontier> = begun_steps().flatten().filter(|step| step.recorded).map(behind).collect();
        let mut inos: BTreeSet<u32> = found.nodes.keys().copied().collect();
        inos.extend(trees.iter().flat_map(|(_, tree)| tree.nodes.keys()));
        for ino in inos {
            let mut syncs: Vec<Synced<'_>> = Vec::new();
            for (thread, lane) in lanes.iter().enumerate() {
                for at in (base[thread]..begun[thread]).filter(|at| lane.steps[*at].fsynced == Some(ino)) {
                    let step = &lane.steps[at];
                    let done = step.is_synced() && step.events.1 <= self.start;
                    syncs.push(Synced { step, behind: behind(step), done });
                }
            }
            let mut from = base.clone();
            for sync in syncs.iter().filter(|sync| sync.done) {
                from.iter_mut().zip(&sync.behind).for_each(|(from, behind)| *from = (*from).max(*behind));
            }
            let due = syncs.iter().any(|sync| sync.done);
            let unfinished = syncs.iter().any(|sync| !sync.done);
            let of = |tree: &'_ Tree| tree.nodes.get(&ino).cloned();
            let mut contents: Vec<Option<_>> = Vec::new();
            if !due {
                contents.push(of(checkpointed));
            }
            let mut names: Vec<BTreeSet<(u32, &str)>> = Vec::new();
            // Records of names have the inodes whose names changed.
            let entries = checkpointed.entries_of(ino);
            let renamed = !records.is_empty() && trees.iter().any(|(_, tree)| tree.entries_of(ino) != entries);
            let in_record = |at: &Frontier| renamed && records.iter().any(|behind| is_at_most(behind, at));
            for (at, tree) in trees.iter().filter(|(at, _)| is_at_most(&from, at)) {
                if in_record(at) || syncs.iter().any(|sync| is_at_most(&sync.behind, at)) {
                    contents.push(of(tree));
                }
                let entries = tree.entries_of(ino);
                if !names.contains(&entries) {
                    names.push(entries);
                }
            }
            let reached = from.iter().sum();
            let (node, here) = (found.nodes.get(&ino).map(|node| &**node), found.entries_of(ino));
            if !(names.contains(&here) || node.is_none() && contents.contains(&None)) {
                return Err(Fault::Names { ino, from: reached });
            }
            if node.is_some_and(|node| node.content == Content::Dir)
                || node.is_none() && names.iter().any(BTreeSet::is_empty)
            {
                continue;
            }
            let blocks = self.beside(shared, base, &begun, ino, &syncs, unfinished);
            let versions = trees.iter().filter_map(|(_, tree)| tree.nodes.get(&ino)).map(|node| &node.content);
            let torn = self.torn(blocks, versions);
            let explained = match node {
                Some(node) => {
                    let wanted: Vec<&Node> = contents.iter().flatten().map(|node| &**node).collect();
                    is_one_of(node, &wanted, &torn, self.recording.options.page_cache != 0)
                }
                None => contents.contains(&None),
            };
            if !explained {
                return Err(Fault::Content { ino, from: reached });
            }
        }
        Ok(())
    }

    /// The blocks of a file of which nobody knows how far they are: those that were written while it was synced, and,
    /// if a sync did not come to its end, all that were written since the checkpoint.
    fn beside(
        &self,
        shared: &Shared,
        base: &Frontier,
        begun: &Frontier,
        ino: u32,
        syncs: &[Synced<'_>],
        unfinished: bool,
    ) -> BTreeSet<usize> {
        let mut blocks = BTreeSet::new();
        for (thread, deeds) in shared.deeds.iter().enumerate() {
            for (at, deed) in deeds.iter().enumerate().take(begun[thread]).skip(base[thread]) {
                let Some(range) = deed.writes(ino) else { continue };
                let step = &self.recording.lanes[thread].steps[at];
                let together = |sync: &Synced<'_>| step.clock.0 < sync.step.clock.1 && sync.step.clock.0 < step.clock.1;
                // A durable write is its own sync.
                let beside = |sync: &&Synced<'_>| together(sync) && !std::ptr::eq(step, sync.step);
                if unfinished || syncs.iter().any(|sync| beside(&sync)) {
                    blocks.extend(range.start / BLOCK..range.end.div_ceil(BLOCK));
                }
            }
        }
        blocks
    }
}

/// Whether a file is as it was at one of these moments, but for `torn` blocks that were written while it was synced.
///
/// `cached`: data waits in a page cache, so that a sync may find some of the blocks of a write that goes on beside it,
/// and the size up to the last of them; or none of a write that had ended when the sync read the owner and the mode,
/// which were changed after it. So where there were such writes, what is said of the file may be of a later moment than
/// its content.
pub(super) fn is_one_of(found: &Node, moments: &[&Node], torn: &Torn<'_>, cached: bool) -> bool {
    let content = |wanted: &Node| {
        found.content == wanted.content
            || torn.explains(&found.content, &wanted.content)
            || cached && torn.explains_end(&found.content, &wanted.content)
    };
    let said = |wanted: &Node| found.attributes == wanted.attributes && found.xattrs == wanted.xattrs;
    moments.iter().any(|wanted| content(wanted) && said(wanted))
        || cached
            && !torn.is_empty()
            && moments.iter().any(|wanted| content(wanted))
            && moments.iter().any(|wanted| said(wanted))
}
