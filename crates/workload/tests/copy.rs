//! Copies between a host and a volume: depth, and what the other side does not take.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::path::Path;
use std::sync::{Arc, Mutex};

use f2fs::{FileKind, FileSystem, NewFile, Options, SetMode};
use f2fs_device::MemoryDevice;
use f2fs_workload::copy::{CopyEvent, CopyOptions, copy_in, copy_out};
use f2fs_workload::manifest::walk_volume;
use rustix::fs::XattrFlags;

fn volume() -> FileSystem {
    let device = Arc::new(MemoryDevice::new(16 * 1024));
    f2fs::volume::format::format(&*device, &Default::default()).unwrap();
    FileSystem::open(device, Options::new()).unwrap()
}

fn recursive() -> CopyOptions {
    CopyOptions { recursive: true, ..CopyOptions::default() }
}

/// Each directory is found from the one above it. From the root each time, this takes minutes.
#[test]
fn deep_trees_are_walked_and_copied() {
    const DEPTH: usize = 3000;
    let fs = volume();
    let mut at = fs.root().unwrap();
    for _ in 0..DEPTH {
        at = at.create("d", &NewFile::new(FileKind::Directory, 0o755)).unwrap();
    }
    at.create("leaf", &NewFile::new(FileKind::Regular, 0o644)).unwrap().open_file().unwrap().write_at(b"x", 0).unwrap();
    drop(at);
    let manifest = walk_volume(&fs, |_| {}).unwrap().to_string();
    assert_eq!(manifest.lines().filter(|line| line.ends_with("/d")).count(), DEPTH);
    assert!(manifest.contains("/d/leaf\n"));
    let place = tempfile::tempdir().unwrap();
    let copied = copy_out(&fs, Path::new("/d"), &place.path().join("d"), &recursive(), &|_| {}).unwrap();
    assert_eq!((copied.files, copied.failed), (DEPTH as u64 + 1, 0));
}

#[test]
fn attributes_without_room_are_told() {
    let fs = volume();
    fs.create_dir("/to", 0o755).unwrap();
    fs.set_xattr("/to", "user.large", &[1; 3900], SetMode::Any).unwrap();
    let place = tempfile::tempdir().unwrap();
    let from = place.path().join("from");
    std::fs::create_dir(&from).unwrap();
    for (name, len) in [("user.note", 20), ("user.other", 1500)] {
        rustix::fs::setxattr(&from, name, &vec![2; len], XattrFlags::empty()).unwrap();
    }
    let said = Mutex::new(Vec::new());
    let watch = |event: CopyEvent<'_>| {
        if let CopyEvent::Lost(error) = event {
            said.lock().unwrap().push(error.to_string());
        }
    };
    let copied = copy_in(&fs, &from, Path::new("/to"), &recursive(), &watch).unwrap();
    assert_eq!((copied.lost, copied.failed), (1, 0));
    let said = said.into_inner().unwrap();
    assert_eq!(said.len(), 1);
    assert!(said[0].contains("/to: its attribute user.other of 1500 bytes is not copied: "), "{}", said[0]);
    assert_eq!(fs.xattr("/to", "user.note").unwrap(), [2; 20]);
    assert_eq!(fs.xattr("/to", "user.large").unwrap(), [1; 3900]);
}
