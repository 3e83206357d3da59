//! Changes of attributes fill nodes as others do: they write the checkpoints that are due.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used)] // a test fails by panicking

use f2fs_files::{FileSystem, FsError, Options, SetAttributes, SetMode, SetTimes, Time};
use f2fs_test_kit::volumes::formatted;
use f2fs_volume::VolumeOptions;
use f2fs_volume::format::FormatOptions;

const FILES: usize = 400;

#[test]
fn each_change_of_attributes_looks_whether_a_checkpoint_is_due() {
    type Change = fn(&FileSystem, &str) -> Result<(), FsError>;
    let changes: [(&str, Change); 6] = [
        ("permissions", |fs, path| fs.set_permissions(path, 0o600)),
        ("owners", |fs, path| fs.set_owner(path, Some(1), None)),
        ("times", |fs, path| fs.set_times(path, SetTimes::new().modified(Time { seconds: 1, nanoseconds: 0 }))),
        ("all of them", |fs, path| fs.inode_at(path)?.set_attributes(&SetAttributes::default().owner(Some(2), None))),
        ("extended ones", |fs, path| fs.set_xattr(path, "user.x", b"x", SetMode::Create)),
        ("fewer extended ones", |fs, path| fs.remove_xattr(path, "user.x")),
    ];
    let few = VolumeOptions::new().dirty_nodes(64);
    let fs = FileSystem::open(formatted(64, &FormatOptions::default()), Options::new().volume(few)).unwrap();
    for number in 0..FILES {
        fs.create_file(format!("/{number}"), 0o644).unwrap();
    }
    for (what, change) in changes {
        fs.checkpoint().unwrap();
        let before = fs.write_stat().checkpoints;
        for number in 0..FILES {
            change(&fs, &format!("/{number}")).unwrap();
        }
        assert_ne!(fs.write_stat().checkpoints, before, "{what}");
    }
}
