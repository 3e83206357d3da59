use f2fs_device::MemoryDevice;
use f2fs_device_test::RecordingDevice;
use f2fs_sync::Arc;

use super::shared::is_one_of;
use super::torn::Torn;
use super::*;
use crate::op::Op;
use crate::record::Step;
use crate::tree::Attributes;

/// Two files are made and written; the first is made durable by itself with events 4 to 8, and removed afterwards.
fn recording() -> Recording {
    let mut tree = Tree::default();
    let root = Node { content: Content::Dir, attributes: Attributes::new(0o755), links: 2, xattrs: Default::default() };
    tree.names.insert("/".into(), 3);
    tree.nodes.insert(3, Arc::new(root));
    let first = Arc::new(tree.clone());
    let ops = ["create /a", "write /a 0 100", "create /b", "sync /a", "write /a 50 100", "unlink /a"];
    let mut steps = Vec::new();
    for (index, text) in ops.iter().enumerate() {
        let Ok(op) = text.parse::<Op>() else { unreachable!("{text}") };
        op.apply(&mut tree, index as u64, 10 + index as u32);
        let fsynced = matches!(op, Op::Sync(_)).then_some(10);
        let events = if fsynced.is_some() {
            (4, 8)
        } else if index < 3 {
            (index, index + 1)
        } else {
            (9, 9)
        };
        steps.push(Step::without_checkpoint(op, fsynced, tree.clone(), events));
    }
    let lanes = [Lane { steps, ..Lane::new("/".into(), first) }];
    let marks = vec![Mark { version: 1, done: 0, lanes: vec![(0, 0)] }];
    let log = RecordingDevice::new(MemoryDevice::new(1)).log();
    Recording { marks, ..Recording::of_lane(log, lanes[0].clone(), 1, Default::default()) }
}

/// A tree after so many operations, without some names.
fn tree(recording: &Recording, steps: usize, without: &[&str]) -> Tree {
    let mut tree = recording.lanes[0].history(steps).clone();
    for path in without {
        if let Some(ino) = tree.names.remove(*path) {
            tree.nodes.remove(&ino);
        }
    }
    tree
}

#[test]
fn what_was_made_durable_must_be_there_and_nothing_else_may() {
    let recording = recording();
    let judge = |start, end, found: &Tree| Expectation { recording: &recording, start, end }.judge(1, found).is_ok();
    let nothing = tree(&recording, 0, &[]);
    let synced = tree(&recording, 4, &["/b"]);
    // Before the fsync: only what the checkpoint holds.
    assert!(judge(0, 3, &nothing) && !judge(0, 3, &synced));
    // In the middle of it: either.
    assert!(judge(4, 8, &nothing) && judge(4, 8, &synced));
    // Afterwards: the file, and never the other one.
    assert!(!judge(8, 8, &nothing) && judge(8, 8, &synced));
    assert!(!judge(8, 8, &tree(&recording, 4, &[])), "a file that was not made durable");
    assert!(!judge(8, 8, &tree(&recording, 1, &[])), "without its content");
    // It was removed since: it may be gone, or have what was written last.
    assert!(judge(8, 9, &nothing) && judge(8, 9, &synced) && judge(8, 9, &tree(&recording, 5, &["/b"])));
}

#[test]
fn modes_owners_times_and_attributes_of_a_synced_file_are_promised() {
    let base = recording();
    for change in ["chmod /a 600", "chown /a 5 6", "utime /a 86400", "setxattr /a user.x 9"] {
        let mut recording = recording();
        let Ok(op) = change.parse::<Op>() else { unreachable!("{change}") };
        // In front of the sync, which has it then.
        for step in &mut recording.lanes[0].steps[3..] {
            let mut tree = (*step.tree).clone();
            op.apply(&mut tree, 0, 0);
            step.tree = Arc::new(tree);
        }
        let expectation = Expectation { recording: &recording, start: 8, end: 8 };
        assert_eq!(expectation.judge(1, &tree(&recording, 4, &["/b"])), Ok(()), "{change}");
        assert!(expectation.judge(1, &tree(&base, 4, &["/b"])).is_err(), "without {change}");
    }
}

/// Two threads write to one file, in blocks of their own and in one that they share; the first syncs it.
#[test]
fn what_is_written_beside_a_sync_may_be_in_it() {
    use crate::record::shared::{Deed, Said, Shared};
    let mut recording = recording();
    let mut first = (*recording.lanes[0].first).clone();
    for text in ["create /f", "write /f 0 12288"] {
        let Ok(op) = text.parse::<Op>() else { unreachable!("{text}") };
        op.apply(&mut first, 77, 10);
    }
    let first = Arc::new(first);
    // The second write of thread 1 begins before the sync ends, the first one ended before it began.
    let threads = [
        vec![("write /f 0 4096", (1, 4), (0, 1)), ("sync /f", (6, 9), (1, 4))],
        vec![("write /f 0 4096", (2, 5), (0, 1)), ("write /f 8192 4096", (7, 11), (2, 5))],
    ];
    let (mut lanes, mut deeds) = (Vec::new(), Vec::new());
    for (thread, ops) in threads.iter().enumerate() {
        let mut lane = Lane::new("/".into(), Arc::clone(&first));
        let mut said = Vec::new();
        for (at, (text, clock, events)) in ops.iter().enumerate() {
            let Ok(op) = text.parse::<Op>() else { unreachable!("{text}") };
            let fsynced = matches!(op, Op::Sync(_)).then_some(10);
            let step = Step::without_checkpoint(op.clone(), fsynced, Tree::default(), *events);
            lane.steps.push(Step { clock: *clock, ..step });
            said.push(Deed { op, said: Said::Done(10), salt: (thread * 10 + at) as u64, appended: None });
        }
        lanes.push(lane);
        deeds.push(said);
    }
    let Some(shared) = Shared::new(&first, &lanes, deeds) else { unreachable!("there is an order") };
    let ends = |at: [usize; 2]| shared.histories[&at.to_vec()].clone();
    let (before, both, all) = (ends([0, 0]), ends([1, 1]), ends([2, 2]));
    assert_eq!((both.len(), all.len()), (2, 2), "either write is the last");
    recording.marks[0].lanes = vec![(0, 0); 2];
    (recording.lanes, recording.shared) = (lanes, Some(shared));
    let judge = |start, end, found: &Tree| Expectation { recording: &recording, start, end }.judge(1, found).is_ok();
    assert!(judge(0, 0, &before[0]) && !judge(0, 0, &both[0]), "nothing was synced");
    for found in both.iter().chain(&all) {
        assert!(judge(4, 5, found));
    }
    assert!(!judge(4, 5, &before[0]), "the sync is due");
    // One half of each of the writes to the same block is neither.
    let mut mixed = (*both[0]).clone();
    let Some(Content::File(other)) = both[1].nodes.get(&10).map(|node| &node.content) else { unreachable!("a file") };
    let other = other[..100].to_vec();
    mixed.change(10, |node| {
        if let Content::File(bytes) = &mut node.content {
            bytes[..100].copy_from_slice(&other);
        }
    });
    assert!(!judge(4, 5, &mixed));
}

#[test]
fn a_synced_file_is_where_its_directory_was() {
    let mut recording = recording();
    let lane = &mut recording.lanes[0];
    let mut first = (*lane.first).clone();
    for (salt, text) in ["mkdir /d", "create /d/f"].into_iter().enumerate() {
        let Ok(op) = text.parse::<Op>() else { unreachable!("{text}") };
        op.apply(&mut first, 0, 20 + salt as u32);
    }
    lane.first = Arc::new(first.clone());
    lane.steps.clear();
    let mut tree = first.clone();
    for (text, events) in [("rename /d /e", (0, 1)), ("write /e/f 0 9", (1, 2)), ("sync /e/f", (2, 3))] {
        let Ok(op) = text.parse::<Op>() else { unreachable!("{text}") };
        op.apply(&mut tree, 0, 0);
        let fsynced = matches!(op, Op::Sync(_)).then_some(21);
        lane.steps.push(Step::without_checkpoint(op, fsynced, tree.clone(), events));
    }
    let mut found = first.clone();
    let judge = |found: &Tree| Expectation { recording: &recording, start: 3, end: 3 }.judge(1, found).is_ok();
    assert!(!judge(&found), "it was synced with nine bytes");
    let Some(node) = tree.nodes.get(&21) else { unreachable!("it was made") };
    found.nodes.insert(21, Arc::clone(node));
    assert!(judge(&found), "the directory was not synced");
    assert!(judge(&tree), "but may be all the same");
    found.names.remove("/d/f");
    found.names.insert("/g".into(), 21);
    assert!(!judge(&found), "nobody ever moved it there");
}

#[test]
fn without_fsync_only_whole_checkpoints_count() {
    let mut recording = recording();
    recording.lanes[0].steps.iter_mut().for_each(|step| step.fsynced = None);
    recording.marks.push(Mark { version: 2, done: 8, lanes: vec![(4, 4)] });
    let judge = |start, end, version, steps| {
        let found = tree(&recording, steps, &[]);
        Expectation { recording: &recording, start, end }.judge(version, &found).is_ok()
    };
    assert!(judge(0, 8, 1, 0) && judge(0, 8, 2, 4));
    assert!(!judge(0, 8, 1, 4) && !judge(0, 8, 2, 2) && !judge(0, 8, 3, 4));
    assert!(!judge(8, 9, 1, 0), "older than what had completed");
    assert!(judge(8, 9, 2, 4));
}

#[test]
fn a_checkpoint_in_the_middle_of_a_write_may_hold_some_of_its_blocks() {
    let mut first = Tree::default();
    let root = Node { content: Content::Dir, attributes: Attributes::new(0o755), links: 2, xattrs: Default::default() };
    first.names.insert("/".into(), 3);
    first.nodes.insert(3, Arc::new(root));
    let mut trees = vec![first];
    let ops =
        ["create /a", "write /a 0 12288", "write /a 0 12288"].map(|text| text.parse::<Op>().unwrap_or(Op::Checkpoint));
    for (index, op) in ops.iter().enumerate() {
        let mut tree = trees[index].clone();
        op.apply(&mut tree, index as u64 + 7, 10);
        trees.push(tree);
    }
    let step =
        |index: usize| Step::without_checkpoint(ops[index].clone(), None, trees[index + 1].clone(), (index, index + 1));
    let lane = Lane { steps: (0..3).map(step).collect(), ..Lane::new("/".into(), Arc::new(trees[0].clone())) };
    let half = |middle: &dyn Fn(&mut [u8])| {
        let mut tree = trees[2].clone();
        let mut node = (*tree.nodes[&10]).clone();
        let Content::File(bytes) = &mut node.content else { unreachable!() };
        middle(bytes);
        tree.nodes.insert(10, Arc::new(node));
        tree
    };
    let Content::File(new) = &trees[3].nodes[&10].content else { unreachable!() };
    assert!(is_half_written(&lane, 2, &half(&|bytes| bytes[4096..8192].copy_from_slice(&new[4096..8192]))));
    assert!(!is_half_written(&lane, 2, &half(&|bytes| bytes[4096..8000].copy_from_slice(&new[4096..8000]))));
    assert!(!is_half_written(&lane, 2, &half(&|bytes| bytes[5000] ^= 1)));
    let mut other = half(&|_| {});
    other.names.insert("/b".into(), 10);
    assert!(!is_half_written(&lane, 2, &other));
}

#[test]
fn a_write_beside_a_sync_may_be_there_up_to_one_of_its_blocks() {
    let file = |parts: &[(u8, usize)]| Content::File(parts.iter().flat_map(|(byte, len)| vec![*byte; *len]).collect());
    let written = BTreeSet::from([1, 2, 3]);
    let wanted = file(&[(1, 5000), (2, 9000)]);
    let written = Torn::anyhow(written);
    let torn = |found: &Content| written.explains_end(found, &wanted);
    assert!(torn(&file(&[(1, 5000), (2, 3 * BLOCK - 5000)])), "up to the third block");
    assert!(torn(&file(&[(1, BLOCK), (0, BLOCK), (2, BLOCK)])), "of the others some are missing");
    assert!(!torn(&file(&[(1, 5000), (2, 7000)])), "the size is that of no block");
    assert!(!torn(&file(&[(1, BLOCK)])), "none of its blocks is there");
    assert!(!torn(&file(&[(9, BLOCK), (2, 2 * BLOCK)])), "a block that it did not write differs");
    assert!(!torn(&wanted));
}

/// A write beside a sync waits in the page cache, and the owner that was changed after it is synced.
#[test]
fn a_write_beside_a_sync_may_be_missing_where_a_later_owner_is_there() {
    let node = |bytes: &[u8], uid: u32| Node {
        content: Content::File(bytes.to_vec()),
        attributes: Attributes { uid, ..Attributes::new(0o644) },
        links: 1,
        xattrs: Default::default(),
    };
    let (first, written, owned) = (node(&[1; 5000], 0), node(&[2; 9000], 0), node(&[2; 9000], 3));
    let moments = [&first, &written, &owned];
    let found = node(&[1; 5000], 3);
    let beside = Torn::anyhow((0..3).collect());
    assert!(is_one_of(&found, &moments, &beside, true));
    // Nothing was written beside it, or nothing waits.
    assert!(!is_one_of(&found, &moments, &Torn::anyhow(BTreeSet::new()), true));
    assert!(!is_one_of(&found, &moments, &beside, false));
    // An owner and a content that it never had.
    assert!(!is_one_of(&node(&[1; 5000], 4), &moments, &beside, true));
    assert!(!is_one_of(&node(&[3; 5001], 3), &moments, &beside, true));
}
