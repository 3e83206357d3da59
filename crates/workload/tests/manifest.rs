//! The order in which a volume is shown, and what is left out.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use f2fs_device::MemoryDevice;
use f2fs_files::{FileSystem, Options};
use f2fs_sync::Arc;
use f2fs_workload::manifest::{Manifest, ManifestEntry, VolumeWalkError, visit_volume, walk_volume};

fn volume() -> FileSystem {
    let device = Arc::new(MemoryDevice::new(32 * 1024));
    f2fs_volume::format::format(&*device, &f2fs_volume::format::FormatOptions::default()).unwrap();
    FileSystem::open(device, Options::new()).unwrap()
}

fn visited(fs: &FileSystem) -> Vec<ManifestEntry> {
    let mut entries = Vec::new();
    let each = |entry| {
        entries.push(entry);
        Ok::<(), VolumeWalkError>(())
    };
    visit_volume(fs, u64::MAX, each, Err).unwrap();
    entries
}

/// `-` and `.` come before the slash, letters behind it.
#[test]
fn entries_come_in_the_order_of_their_whole_paths() {
    let fs = volume();
    for path in ["/a", "/a/b", "/a/b-c", "/a-b", "/a0", "/aa", "/a/b.c"] {
        fs.create_dir(path, 0o700).unwrap();
    }
    for path in ["/a/b/c", "/a/b-c/d", "/a-b/a", "/a.b", "/a0/z", "/a-", "/b", "/aa/0", "/a/b.c/-"] {
        fs.create_file(path, 0o600).unwrap();
    }
    let entries = visited(&fs);
    assert_eq!(entries.len(), 1 + 9 + 7);
    assert!(entries.is_sorted_by(|a, b| a.path < b.path));
    assert_eq!(entries, Manifest::new(entries.clone()).entries());
    assert_eq!(walk_volume(&fs, |_| {}).unwrap().entries(), entries);
}

#[test]
fn only_an_empty_lost_found_of_the_root_is_left_out() {
    let fs = volume();
    for path in ["/lost+found", "/a", "/a/lost+found"] {
        fs.create_dir(path, 0o700).unwrap();
    }
    let paths = || visited(&fs).into_iter().map(|entry| entry.path).collect::<Vec<_>>();
    assert_eq!(paths(), [&b"/"[..], b"/a", b"/a/lost+found"]);
    fs.create_file("/lost+found/3", 0o600).unwrap();
    assert_eq!(paths(), [&b"/"[..], b"/a", b"/a/lost+found", b"/lost+found", b"/lost+found/3"]);
}

/// Who is told of the entries may have enough of them.
#[test]
fn an_error_of_the_listener_ends_the_walk() {
    let fs = volume();
    (0..5).for_each(|number| drop(fs.create_file(format!("/{number}"), 0o600).unwrap()));
    let mut told = 0;
    let each = |_| {
        told += 1;
        if told == 3 { Err("enough") } else { Ok(()) }
    };
    assert_eq!(visit_volume(&fs, 0, each, |_| Ok(())), Err("enough"));
    assert_eq!(told, 3);
}
