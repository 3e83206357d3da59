//! Operations that are tried again when something can be freed for them.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use core::num::NonZeroUsize;
use core::time::Duration;

use f2fs_format::LogType;
use f2fs_segment::SegmentError;
use f2fs_volume::{NewNode, VolumeError, VolumeOptions};

use super::*;
use crate::samples::formatted;
use crate::{FileKind, FileSystem, InodeRef, NewFile, RenameMode};

fn open() -> FileSystem {
    let device = formatted(32 * 1024);
    let fs = FileSystem::open(device, Options::new()).unwrap();
    fs.checkpoint().unwrap();
    fs
}

fn no_nids() -> FsError {
    VolumeError::NoNids { used: 1, limit: 1 }.into()
}

fn no_segments() -> FsError {
    VolumeError::Segment(SegmentError::NoSpace { log: LogType::WarmData, free: 0, prefree: 0, floor: 0 }).into()
}

/// How often an operation is tried that fails with an error until the n-th time, if it leaves a freed node behind each
/// time or not, how many checkpoints that takes, and whether it succeeds.
fn tries(fs: &FileSystem, error: fn() -> FsError, frees: bool, until: u32) -> (u32, u64, bool) {
    let (before, mut tried) = (fs.write_stat().checkpoints, 0);
    let result = fs.core.change(|op| {
        tried += 1;
        if frees {
            let node = fs.core.volume.nodes().create(op, NewNode { ino: None, offset: 0, directory: false })?;
            fs.core.volume.nodes().remove(op, &node)?;
        }
        if tried == until { Ok(tried) } else { Err(error()) }
    });
    let succeeds = match result {
        Ok(value) => value == tried,
        Err(found) => {
            assert!(found.is_no_space(), "{found}");
            false
        }
    };
    (tried, fs.write_stat().checkpoints - before, succeeds)
}

#[test]
fn an_operation_without_numbers_is_tried_again_behind_a_checkpoint_that_frees_some() {
    const NEVER: u32 = u32::MAX;
    assert_eq!(tries(&open(), no_nids, false, NEVER), (1, 0, false), "none is freed");
    assert_eq!(tries(&open(), no_nids, true, NEVER), (1 + RETRIES, RETRIES.into(), false), "it does not help");
    assert_eq!(tries(&open(), no_nids, true, 3), (3, 2, true));
    let fs = open();
    fs.create_file("/gone", 0o644).unwrap();
    fs.remove_file("/gone").unwrap();
    assert_eq!(tries(&fs, no_nids, false, NEVER), (2, 1, false), "freed once");
}

#[test]
fn an_operation_without_segments_is_tried_again_behind_a_cleaning() {
    let (tried, checkpoints, succeeds) = tries(&open(), no_segments, true, 3);
    assert!((tried, succeeds) == (3, true) && checkpoints <= 2, "{checkpoints}");
    let (tried, _, succeeds) = tries(&open(), no_segments, true, u32::MAX);
    assert_eq!((tried, succeeds), (1 + RETRIES, false));
    // What waits for a checkpoint is there then.
    let fs = open();
    fs.create_file("/large", 0o644).unwrap().write_at(&vec![1; 6 << 20], 0).unwrap();
    fs.checkpoint().unwrap();
    fs.remove_file("/large").unwrap();
    assert!(fs.statfs().prefree_segments > 0);
    assert_eq!(tries(&fs, no_segments, false, 2), (2, 1, true));
    assert_eq!(fs.statfs().prefree_segments, 0);
}

/// Other errors are the caller's.
#[test]
fn an_operation_that_fails_otherwise_is_not_tried_again() {
    let fs = open();
    let mut tried = 0;
    let result: Result<(), FsError> = fs.core.change(|_| {
        tried += 1;
        Err(FsError::Exists)
    });
    assert!(matches!(result, Err(FsError::Exists)) && tried == 1);
}

#[test]
fn who_attends_is_woken_once_until_it_looks() {
    let (fs, mut heard) = (open(), 0);
    let mut is_woken = || {
        fs.core.call_who_attends();
        fs.core.pages.alarm.wait(&mut heard, Duration::ZERO)
    };
    assert!(!is_woken(), "nobody attends");
    fs.core.volume.balance().attend(true);
    assert!(is_woken() && !is_woken() && !is_woken());
    fs.core.attend().unwrap();
    assert!(is_woken());
    fs.core.volume.balance().attend(false);
}

/// Inodes that were in use are above the limit of the table. A checkpoint brings it back to it, also one that operations
/// write since it is due.
#[test]
fn a_checkpoint_that_is_due_drops_inodes_above_the_limit() {
    const FILES: usize = 3000;
    let device = formatted(32 * 1024);
    let options = Options::new().volume(VolumeOptions::new().dirty_nodes(100)).inode_cache(NonZeroUsize::MIN);
    let fs = FileSystem::open(device, options).unwrap();
    let path = |number: usize| format!("/{number}");
    (0..FILES).for_each(|number| drop(fs.create_file(path(number), 0o644).unwrap()));
    let held: Vec<_> = (0..FILES).map(|number| fs.inode_at(path(number)).unwrap()).collect();
    let inos: Vec<_> = held.iter().map(InodeRef::ino).collect();
    let in_memory = || inos.iter().filter(|ino| fs.core.inodes.in_memory(**ino).is_some()).count();
    drop(held);
    assert_eq!(in_memory(), FILES);
    let checkpoints = fs.write_stat().checkpoints;
    (0..300).for_each(|number| fs.set_permissions(path(number), 0o600).unwrap());
    assert!(fs.write_stat().checkpoints > checkpoints, "none was due");
    assert!(in_memory() < FILES / 2, "{} inodes stay", in_memory());
}

/// Whatever is done, a checkpoint that is due is written before the next change: what is dirty has a limit.
#[test]
fn each_operation_writes_a_checkpoint_that_is_due() {
    const TIMES: usize = 300;
    let device = formatted(32 * 1024);
    let fs = FileSystem::open(device, Options::new().volume(VolumeOptions::new().dirty_nodes(50))).unwrap();
    let root = fs.root().unwrap();
    let new = NewFile::new(FileKind::Regular, 0o644);
    let unnamed = std::cell::RefCell::new(Vec::new());
    type Operation<'o> = (&'static str, &'o dyn Fn(usize) -> Result<(), FsError>);
    let operations: [Operation<'_>; 10] = [
        ("create", &|n| fs.create_file(format!("/file-{n}"), 0o644).map(drop)),
        ("symlink", &|n| fs.symlink(b"target", format!("/symlink-{n}"), &new).map(drop)),
        ("make a directory", &|n| fs.create_dir(format!("/dir-{n}"), 0o755).map(|_| ())),
        ("link", &|n| fs.link(format!("/file-{n}"), format!("/link-{n}"))),
        ("rename", &|n| fs.rename(format!("/link-{n}"), format!("/moved-{n}"), RenameMode::Replace)),
        ("rename a directory", &|n| fs.rename(format!("/dir-{n}"), format!("/there-{n}"), RenameMode::NoReplace)),
        ("unlink", &|n| fs.remove_file(format!("/moved-{n}"))),
        ("make a file without a name", &|_| {
            unnamed.borrow_mut().push(root.create_unnamed(&new)?);
            Ok(())
        }),
        ("link over", &|n| root.link_over(format!("file-{n}"), &unnamed.borrow()[n])),
        ("remove a directory", &|n| fs.remove_dir(format!("/there-{n}"))),
    ];
    for (what, operation) in operations {
        fs.checkpoint().unwrap();
        let before = fs.write_stat().checkpoints;
        (0..TIMES).for_each(|number| operation(number).unwrap());
        assert!(fs.write_stat().checkpoints > before, "{what}");
    }
}

/// Also where there is nothing to gain.
#[test]
fn a_volume_that_was_stopped_is_not_cleaned() {
    let fs = open();
    assert_eq!(fs.clean().unwrap().checkpoints, 0);
    fs.core.volume.stop(&FsError::Exists);
    assert!(fs.clean().is_err());
}
