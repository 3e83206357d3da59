//! Judges what Linux left: its checkpoints hold all changes of names and attributes before them, and all data that was
//! synced.
//!
//! - Names, links, modes, owners and extended attributes are those of the checkpoint, or of a file's `fsync` since, as
//!   they are here.
//! - Data goes to the device when Linux likes. So each sector of a file is as it was at some time since the last
//!   `fsync` of the file, or `sync` of everything, that had ended; a small change that is synced overwrites its block
//!   in place, which a power cut tears. What was synced and not changed since has one past only, and is exact.
//! - While an `fsync` is on its way, its node may be on the device before the data: no flush stands between them. The
//!   blocks that were written since then hold anything, as they do here. A `sync` of everything sends data too, and where
//!   room is short Linux writes a checkpoint in its middle (`f2fs_balance_fs` behind each page), which waits for the
//!   pages that the cleaner and directories wrote (`F2FS_WB_CP_DATA`) and for none of these.
//! - A length is one that the file had in that time, or lies on a block between two of them: a long write grows its
//!   file page by page.

use std::collections::BTreeSet;

use super::torn::written;
use super::{BLOCK, Expectation, Fault};
use crate::op::Op;
use crate::record::Lane;
use crate::tree::{Content, Node, Tree};

/// Bytes that a device writes as a whole.
const SECTOR: usize = 512;
/// Bytes by which a write that is under way makes its file longer.
const PAGE: usize = 4096;

impl Expectation<'_> {
    /// The tree after a checkpoint with `base` operations; `rolled`: files may have been made durable by themselves
    /// since.
    pub(super) fn judge_kernel(&self, lane: &Lane, base: usize, rolled: bool, found: &Tree) -> Result<(), Fault> {
        let begun = lane.steps.iter().take_while(|step| step.events.0 <= self.end).count().max(base);
        if !rolled {
            let wanted = lane.history(base);
            let same = |(ino, node): (&u32, &f2fs_sync::Arc<Node>)| {
                let is = found.nodes.get(ino).is_some_and(|found| like(found, node) && found.links == node.links);
                is && self.may_hold(lane, *ino, begun, &found.nodes[ino].content)
            };
            let same =
                found.names == wanted.names && found.nodes.len() == wanted.nodes.len() && wanted.nodes.iter().all(same);
            return if same { Ok(()) } else { Err(Fault::Tree) };
        }
        let mut inos: BTreeSet<u32> = found.nodes.keys().copied().collect();
        for index in base..=begun {
            inos.extend(lane.history(index).nodes.keys());
        }
        inos.into_iter().try_for_each(|ino| self.judge_inode(lane, ino, (base, begun), found))
    }

    fn judge_inode(&self, lane: &Lane, ino: u32, (base, begun): (usize, usize), found: &Tree) -> Result<(), Fault> {
        let is_due = |(_, step): &(usize, &crate::record::Step)| step.is_synced() && step.events.1 <= self.start;
        let of = |step: &crate::record::Step| step.fsynced == Some(ino);
        let synced = lane.steps[base..begun].iter().enumerate().filter(|(_, step)| of(step));
        let done = synced.clone().rfind(is_due).map(|(at, _)| base + at + 1);
        let began = synced.clone().count() > 0;
        let from = done.unwrap_or(base);
        let at = |index: usize| lane.history(index).nodes.get(&ino).map(|node| &**node);
        let (node, here) = (found.nodes.get(&ino).map(|node| &**node), found.entries_of(ino));

        let names: Vec<BTreeSet<(u32, &str)>> =
            (from..=begun).map(|index| lane.history(index).entries_of(ino)).collect();
        let was_away = |index: usize| at(index).is_none();
        let may_be_gone = done.is_none() && was_away(base) || (from..=begun).any(was_away);
        let Some(node) = node else {
            return if may_be_gone { Ok(()) } else { Err(Fault::Names { ino, from }) };
        };
        if !names.contains(&here) {
            return Err(Fault::Names { ino, from });
        }
        if node.content == Content::Dir {
            return Ok(());
        }
        // A file that nobody synced since is that of the checkpoint.
        let last = if began { begun } else { base };
        let alike = (from..=last).filter_map(at).any(|wanted| like(node, wanted));
        if alike && self.may_hold(lane, ino, begun, &node.content) { Ok(()) } else { Err(Fault::Content { ino, from }) }
    }

    /// Whether an inode may have this content: of bytes, each sector as it was at some time since they were durable.
    fn may_hold(&self, lane: &Lane, ino: u32, begun: usize, found: &Content) -> bool {
        let is_durable = |step: &crate::record::Step| {
            let all = step.op == Op::Checkpoint && step.certain;
            step.events.1 <= self.start && (all || step.is_synced() && step.fsynced == Some(ino))
        };
        let since = lane.steps[..begun].iter().rposition(is_durable).map_or(0, |at| at + 1);
        let begun_only =
            |step: &crate::record::Step| (step.op == Op::Checkpoint || step.fsynced == Some(ino)) && !is_durable(step);
        let unfinished = lane.steps[since..begun].iter().any(begun_only);
        let open = if unfinished { written(lane, since, begun, ino) } else { BTreeSet::new() };
        let mut past: Vec<&Content> = Vec::new();
        for node in (since..=begun).filter_map(|index| lane.history(index).nodes.get(&ino)) {
            if past.last().is_none_or(|last| **last != node.content) {
                past.push(&node.content);
            }
        }
        let Content::File(bytes) = found else { return past.contains(&found) };
        let files: Vec<&[u8]> = past
            .iter()
            .filter_map(|content| if let Content::File(bytes) = content { Some(&**bytes) } else { None })
            .collect();
        let lengths = || files.iter().map(|file| file.len());
        let (Some(least), Some(most)) = (lengths().min(), lengths().max()) else { return false };
        let growing = bytes.len().is_multiple_of(PAGE) && (least..=most).contains(&bytes.len());
        if !growing && !lengths().any(|len| len == bytes.len()) {
            return false;
        }
        bytes.chunks(SECTOR).enumerate().all(|(index, sector)| {
            let from = index * SECTOR;
            open.contains(&(from / BLOCK))
                || files.iter().any(|file| {
                    let there = file.get(from..(from + sector.len()).min(file.len())).unwrap_or(&[]);
                    let (same, behind) = sector.split_at(there.len());
                    same == there && behind.iter().all(|byte| *byte == 0)
                })
        })
    }
}

/// Whether two inodes are the same but for their bytes and links.
fn like(one: &Node, other: &Node) -> bool {
    let kind = |content: &Content| std::mem::discriminant(content);
    kind(&one.content) == kind(&other.content) && one.attributes == other.attributes && one.xattrs == other.xattrs
}

#[cfg(test)]
mod tests {
    use f2fs_device::MemoryDevice;
    use f2fs_device_test::RecordingDevice;
    use f2fs_sync::Arc;

    use super::*;
    use crate::record::{Maker, Recording, Step};
    use crate::tree::Attributes;

    /// `/a` is made and written, synced with events 2 to 6, and written again behind it; a checkpoint of everything
    /// ends with event 9.
    fn recording(texts: &[&str]) -> Recording {
        let mut tree = Tree::default();
        let root =
            Node { content: Content::Dir, attributes: Attributes::new(0o755), links: 2, xattrs: Default::default() };
        tree.names.insert("/".into(), 3);
        tree.nodes.insert(3, Arc::new(root));
        let first = Arc::new(tree.clone());
        let mut steps = Vec::new();
        let mut events = 0;
        for (index, text) in texts.iter().enumerate() {
            let Ok(op) = text.parse::<Op>() else { unreachable!("{text}") };
            op.apply(&mut tree, index as u64, 10 + index as u32);
            let synced = op.syncs().and_then(|path| tree.names.get(path).copied());
            let writes = synced.is_some() || op == Op::Checkpoint;
            let before = events;
            events += if writes { 4 } else { 0 };
            let step = Step::without_checkpoint(op.clone(), synced, tree.clone(), (before, events));
            let version = |done: bool| 1 + u64::from(done && op == Op::Checkpoint);
            let tick = index * 2;
            steps.push(Step { clock: (tick, tick + 1), versions: (version(false), version(true)), ..step });
        }
        let lane = Lane { steps, ..Lane::new("/".into(), first) };
        let log = RecordingDevice::new(MemoryDevice::new(1)).log();
        let whole = Recording::of_lane(log, lane, 1, Default::default());
        Recording { maker: Maker::Kernel, timeless: true, ..whole }
    }

    fn judge(recording: &Recording, at: usize, version: u64, found: &Tree) -> bool {
        Expectation { recording, start: at, end: at }.judge(version, found).is_ok()
    }

    /// The tree after so many operations, with other bytes in the file 10.
    fn with(recording: &Recording, steps: usize, change: impl FnOnce(&mut Vec<u8>)) -> Tree {
        let mut tree = recording.lanes[0].history(steps).clone();
        tree.change(10, |node| {
            let Content::File(bytes) = &mut node.content else { unreachable!("a file") };
            change(bytes);
        });
        tree
    }

    #[test]
    fn what_was_synced_and_not_changed_is_exact() {
        let recording = recording(&["create /a", "write /a 0 9000", "sync /a"]);
        let whole = |change: fn(&mut Vec<u8>)| with(&recording, 3, change);
        assert!(judge(&recording, 4, 1, &whole(|_| ())));
        assert!(!judge(&recording, 4, 1, recording.lanes[0].history(0)), "it is gone");
        assert!(!judge(&recording, 4, 1, &whole(|bytes| bytes[8999] ^= 1)), "a bit flipped");
        assert!(!judge(&recording, 4, 1, &whole(|bytes| bytes[512..1024].fill(0))), "a sector of zeros");
        assert!(!judge(&recording, 4, 1, &whole(|bytes| bytes.truncate(8192))), "its end is missing");
        // While it is being synced nothing is promised, but what is there was written.
        assert!(judge(&recording, 3, 1, recording.lanes[0].history(0)));
        assert!(judge(&recording, 3, 1, &whole(|bytes| bytes[512..1024].fill(0))));
        assert!(judge(&recording, 3, 1, &whole(|bytes| bytes[512..1024].fill(7))), "its node came before its data");
    }

    #[test]
    fn a_sync_on_its_way_leaves_other_blocks_alone() {
        let texts = ["create /a", "write /a 0 9000", "sync /a", "write /a 4096 100", "sync /a"];
        let recording = recording(&texts);
        let with = |at: usize| with(&recording, 5, |bytes| bytes[at] ^= 1);
        assert!(judge(&recording, 6, 1, &with(5000)), "a block that it was to make durable");
        assert!(!judge(&recording, 6, 1, &with(100)) && !judge(&recording, 6, 1, &with(8500)), "others");
        assert!(!judge(&recording, 8, 1, &with(5000)), "it has ended");
    }

    #[test]
    fn data_that_nobody_synced_is_old_or_new_sector_by_sector() {
        let texts = ["create /a", "write /a 0 9000", "sync /a", "write /a 0 4096", "create /b", "sync /b"];
        let recording = recording(&texts);
        let new = recording.lanes[0].history(6).clone();
        let Some(Content::File(late)) = new.nodes.get(&10).map(|node| node.content.clone()) else { unreachable!() };
        let mixed = with(&recording, 6, |bytes| {
            let Some(Content::File(old)) = recording.lanes[0].history(3).nodes.get(&10).map(|node| &node.content)
            else {
                unreachable!()
            };
            bytes[..512].copy_from_slice(&old[..512]);
            bytes[512..1024].copy_from_slice(&late[512..1024]);
        });
        assert!(judge(&recording, 8, 1, &new) && judge(&recording, 8, 1, &mixed));
        let torn = with(&recording, 6, |bytes| bytes[..100].fill(0));
        assert!(!judge(&recording, 8, 1, &torn), "half a sector");
        let mut without = new.clone();
        without.names.remove("/b");
        without.nodes.remove(&14);
        assert!(!judge(&recording, 8, 1, &without), "another file was synced");
    }

    #[test]
    fn a_checkpoint_within_a_sync_of_everything_waits_for_no_data() {
        let recording = recording(&["create /a", "write /a 0 9000", "sync /a", "write /a 4096 100", "checkpoint"]);
        let with = |at: usize| with(&recording, 5, |bytes| bytes[at] ^= 1);
        assert!(judge(&recording, 6, 2, &with(5000)), "a block that was on its way");
        assert!(!judge(&recording, 6, 2, &with(100)) && !judge(&recording, 6, 2, &with(8500)), "others");
        assert!(!judge(&recording, 8, 2, &with(5000)), "it has ended");
    }

    #[test]
    fn names_and_attributes_are_those_of_the_checkpoint() {
        let recording = recording(&["create /a", "write /a 0 600", "checkpoint", "chmod /a 600", "create /b"]);
        let kept = recording.lanes[0].history(3);
        assert!(judge(&recording, 4, 2, kept));
        assert!(!judge(&recording, 4, 2, recording.lanes[0].history(4)), "a mode that no checkpoint has");
        assert!(!judge(&recording, 4, 2, recording.lanes[0].history(5)), "a file that no checkpoint has");
        assert!(!judge(&recording, 4, 1, recording.lanes[0].history(0)), "an older checkpoint");
        assert!(!judge(&recording, 4, 2, &with(&recording, 3, |bytes| bytes[0] ^= 1)), "other bytes");
    }
}
