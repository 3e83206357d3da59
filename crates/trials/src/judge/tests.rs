use f2fs_device::{MemoryDevice, RecordingDevice};
use f2fs_sync::Arc;

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
    let lanes = vec![Lane { dir: "/".into(), first, steps }];
    let marks = vec![Mark { version: 1, done: 0, lanes: vec![(0, 0)] }];
    let log = RecordingDevice::new(MemoryDevice::new(1)).log();
    Recording { log, lanes, marks, last_step: 0, options: Default::default(), known: Default::default() }
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
