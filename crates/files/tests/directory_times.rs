//! The times of a directory whose names change, and of a file that gets and loses names.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::cell::Cell;

use f2fs_files::{FileKind, FileSystem, FsError, NewFile, Options, RenameMode, Time};
use f2fs_test_kit::volumes::formatted;
use f2fs_volume::format::FormatOptions;

thread_local! {
    static SECONDS: Cell<i64> = const { Cell::new(1000) };
}

fn now() -> Time {
    Time { seconds: SECONDS.get(), nanoseconds: 5 }
}

/// Whether its names stand in the inode or in blocks.
#[test]
fn each_change_of_a_name_moves_both_times() {
    type Change = fn(&FileSystem) -> Result<(), FsError>;
    let changes: [(&str, Change); 5] = [
        ("a new file", |fs| fs.create_file("/d/new", 0o644).map(drop)),
        ("a new link", |fs| fs.link("/d/new", "/d/link")),
        ("another name", |fs| fs.rename("/d/link", "/d/renamed", RenameMode::NoReplace)),
        ("a name less", |fs| fs.remove_file("/d/renamed")),
        ("a new directory", |fs| fs.create_dir("/d/below", 0o755).map(drop)),
    ];
    for names in [0, 300] {
        let fs = FileSystem::open(formatted(64, &FormatOptions::default()), Options::new().clock(now)).unwrap();
        fs.create_dir("/d", 0o755).unwrap();
        for number in 0..names {
            fs.create(format!("/d/{number}"), &NewFile::new(FileKind::Fifo, 0o644)).unwrap();
        }
        for (what, change) in changes {
            SECONDS.set(SECONDS.get() + 10);
            change(&fs).unwrap();
            let about = fs.metadata("/d").unwrap();
            assert_eq!((about.modified, about.changed), (now(), now()), "{what} beside {names}");
        }
        SECONDS.set(SECONDS.get() + 10);
        let before = fs.metadata("/d").unwrap();
        fs.checkpoint().unwrap();
        assert_eq!(fs.metadata("/d").unwrap(), before);
    }
}

#[test]
fn a_file_changes_with_its_names() {
    let fs = FileSystem::open(formatted(64, &FormatOptions::default()), Options::new().clock(now)).unwrap();
    let file = fs.create_file("/f", 0o644).unwrap();
    let made = now();
    type Change = fn(&FileSystem) -> Result<(), FsError>;
    let changes: [(&str, Change); 3] = [
        ("another name", |fs| fs.link("/f", "/g")),
        ("a name less", |fs| fs.remove_file("/g")),
        ("no name", |fs| fs.remove_file("/f")),
    ];
    for (what, change) in changes {
        SECONDS.set(SECONDS.get() + 10);
        change(&fs).unwrap();
        let about = file.metadata().unwrap();
        assert_eq!((about.modified, about.changed), (made, now()), "{what}");
    }
}
