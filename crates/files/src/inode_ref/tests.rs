//! Inodes that are found by their numbers, and such that are not.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use f2fs_device::MemoryDevice;
use f2fs_sync::PlainArc;
use f2fs_volume::format::{FormatOptions, format};

use super::*;
use crate::Options;

/// By its number and its generation: at once if it is in memory, also beside operations.
#[test]
fn an_inode_is_found_again_as_long_as_it_is_the_same() {
    let device = PlainArc::new(MemoryDevice::new(32 * 1024));
    format(&*device, &FormatOptions::default()).unwrap();
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
    let device = PlainArc::new(MemoryDevice::new(32 * 1024));
    format(&*device, &FormatOptions::default()).unwrap();
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
