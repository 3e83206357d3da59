//! Inodes that are found by their numbers, and such that are not.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use f2fs_sync::PlainArc;

use super::*;
use crate::Options;
use crate::samples::formatted;

/// By its number and its generation: at once if it is in memory, also beside operations.
#[test]
fn an_inode_is_found_again_as_long_as_it_is_the_same() {
    let device = formatted(32 * 1024);
    let fs = FileSystem::open(device, Options::new()).unwrap();
    let file = fs.create_file("/f", 0o644).unwrap();
    let (ino, generation) = (file.ino(), file.metadata().unwrap().generation);
    let is_missing = |ino, generation| matches!(fs.inode_again(ino, generation), Err(FsError::NotFound));
    {
        let _op = fs.core.volume.begin().unwrap();
        assert_eq!(fs.inode_again(ino, generation).unwrap().ino(), ino, "it waits for nobody");
    }
    assert!(is_missing(ino, generation.wrapping_add(1)) && is_missing(Nid(ino.0 + 1000), generation));
    drop(file);
    fs.checkpoint().unwrap();
    fs.drop_unused();
    assert!(fs.core.inodes.in_memory(ino).is_none());
    assert!(is_missing(ino, generation.wrapping_add(1)));
    fs.drop_unused();
    let again = fs.inode_again(ino, generation).unwrap();
    assert_eq!((again.ino(), again.metadata().unwrap().generation), (ino, generation));
    fs.remove_file("/f").unwrap();
    assert_eq!(fs.inode_again(ino, generation).unwrap().metadata().unwrap().links, 0, "somebody has it open");
    drop(again);
    assert!(is_missing(ino, generation));
}

/// Who only reads a volume leaves its orphans as they are, and nobody gets one by its number.
#[test]
fn an_orphan_of_a_crash_is_not_found() {
    let device = formatted(32 * 1024);
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    let orphan = fs.root().unwrap().create_unnamed(&NewFile::new(FileKind::Regular, 0o644)).unwrap();
    let (ino, generation) = (orphan.ino(), orphan.metadata().unwrap().generation);
    fs.checkpoint().unwrap();
    let crashed = PlainArc::new(device.snapshot());
    drop((orphan, fs));
    let fs = FileSystem::open(crashed, Options::new().read_only(true)).unwrap();
    let _in_memory = fs.core.inode(ino).unwrap();
    assert!(matches!(fs.inode_again(ino, generation), Err(FsError::NotFound)));
    assert!(matches!(fs.inode(ino), Err(FsError::NotFound)));
}

/// Where it has left memory as well: who waits for all operations waits for this one for ever.
#[test]
fn one_that_was_known_before_is_found_beside_an_operation() {
    let device = formatted(32 * 1024);
    let fs = FileSystem::open(device, Options::new()).unwrap();
    let [one, gone] = ["one", "gone"].map(|name| {
        fs.root().unwrap().create(name, &NewFile::new(FileKind::Regular, 0o644)).unwrap().metadata().unwrap()
    });
    fs.root().unwrap().remove_file("gone").unwrap();
    fs.checkpoint().unwrap();
    (0..2).for_each(|_| fs.drop_unused());
    let operation = fs.core.volume.begin_read();
    let (sender, receiver) = mpsc::channel();
    let other = fs.clone();
    let found = thread::spawn(move || sender.send(other.inode_again(one.ino, one.generation).map(|found| found.ino())));
    assert_eq!(receiver.recv_timeout(Duration::from_secs(20)).unwrap().unwrap(), one.ino);
    found.join().unwrap().unwrap();
    drop(operation);
    for (ino, generation) in [(one.ino, one.generation + 1), (gone.ino, gone.generation), (Nid(u32::MAX), 0)] {
        assert!(matches!(fs.inode_again(ino, generation), Err(FsError::NotFound)));
    }
}
