//! The times that operations on names set, and that a checkpoint keeps.

use std::cell::Cell;

use super::*;
use crate::samples::formatted;
use crate::{SetTimes, Time};

std::thread_local! {
    /// The clock of each test.
    static SECONDS: Cell<i64> = const { Cell::new(1000) };
}

fn now() -> Time {
    Time { seconds: SECONDS.get(), nanoseconds: 7 }
}

fn options() -> Options {
    Options::new().clock(now)
}

fn start() -> (PlainArc<MemoryDevice>, FileSystem) {
    let device = formatted(32 * 1024);
    let fs = FileSystem::open(device.clone(), options()).unwrap();
    (device, fs)
}

/// The last change of content and the last of anything.
fn times(fs: &FileSystem, path: &str) -> (Time, Time) {
    let found = fs.metadata(path).unwrap();
    (found.modified, found.changed)
}

/// The next tick, in which this is done.
fn later(what: impl FnOnce()) {
    SECONDS.set(SECONDS.get() + 10);
    what();
}

/// The same behind the last checkpoint, for who opens it.
fn again(device: &MemoryDevice) -> FileSystem {
    FileSystem::open(PlainArc::new(device.snapshot()), options().read_only(true)).unwrap()
}

#[test]
fn a_name_that_comes_goes_or_leads_elsewhere_sets_the_times_of_its_directory() {
    // In the inode, and in blocks.
    for names in [0, 400] {
        let (device, fs) = start();
        fs.create_dir("/d", 0o755).unwrap();
        fs.create_file("/f", 0o644).unwrap();
        (0..names).for_each(|number| fs.link("/f", format!("/d/{number}")).unwrap());
        let directory = fs.inode_at("/d").unwrap();
        assert_eq!(directory.inode().directory().unwrap().is_hashed(), names > 0);
        let file = fs.inode_at("/f").unwrap();
        let operations: [&dyn Fn(); 8] = [
            &|| drop(fs.create_file("/d/a", 0o644).unwrap()),
            &|| fs.link("/f", "/d/b").unwrap(),
            &|| fs.rename("/d/a", "/d/c", RenameMode::Replace).unwrap(),
            &|| fs.rename("/d/b", "/d/c", RenameMode::Exchange).unwrap(),
            &|| directory.link_over("b", &file).unwrap(),
            &|| fs.rename("/d/c", "/d/b", RenameMode::Replace).unwrap(),
            &|| fs.remove_file("/d/b").unwrap(),
            &|| assert!(fs.create_dir("/d/e", 0o755).is_ok()),
        ];
        for (number, operation) in operations.into_iter().enumerate() {
            let before = times(&fs, "/d");
            later(operation);
            let expected = if number == 5 { before } else { (now(), now()) };
            assert_eq!(times(&fs, "/d"), expected, "{number}, {names} names");
            fs.checkpoint().unwrap();
            assert_eq!(times(&fs, "/d"), expected, "{number}, {names} names");
            assert_eq!(times(&again(&device), "/d"), expected, "{number}, {names} names, for who opens it anew");
        }
    }
}

/// Times that were set stay, and a change before that does not come up again.
#[test]
fn times_that_are_set_are_those_of_the_directory() {
    for names in [0, 400] {
        let (device, fs) = start();
        fs.create_dir("/d", 0o755).unwrap();
        fs.create_file("/f", 0o644).unwrap();
        (0..names).for_each(|number| fs.link("/f", format!("/d/{number}")).unwrap());
        let past = Time { seconds: -5, nanoseconds: 3 };
        later(|| fs.link("/f", "/d/x").unwrap());
        later(|| fs.set_times("/d", SetTimes { modified: Some(past), ..SetTimes::default() }).unwrap());
        assert_eq!(times(&fs, "/d"), (past, now()));
        fs.checkpoint().unwrap();
        assert_eq!(times(&fs, "/d"), (past, now()));
        assert_eq!(times(&again(&device), "/d"), (past, now()));
        later(|| fs.remove_file("/d/x").unwrap());
        assert_eq!(times(&fs, "/d"), (now(), now()));
    }
}

#[test]
fn a_file_whose_names_change_is_changed() {
    let (device, fs) = start();
    fs.create_dir("/d", 0o755).unwrap();
    let file = fs.root().unwrap().create_unnamed(&NewFile::new(FileKind::Regular, 0o644)).unwrap();
    let made = now();
    let operations: [&dyn Fn(); 6] = [
        &|| fs.root().unwrap().link("a", &file).unwrap(),
        &|| fs.link("/a", "/b").unwrap(),
        &|| fs.rename("/a", "/d/a", RenameMode::Replace).unwrap(),
        &|| fs.remove_file("/b").unwrap(),
        &|| fs.rename("/d/a", "/d/c", RenameMode::Replace).unwrap(),
        &|| fs.inode_at("/d").unwrap().link_over("e", &file).unwrap(),
    ];
    for (number, operation) in operations.into_iter().enumerate() {
        later(operation);
        let found = file.metadata().unwrap();
        assert_eq!((found.modified, found.changed), (made, now()), "{number}");
    }
    let changed = now();
    fs.checkpoint().unwrap();
    assert_eq!(times(&again(&device), "/d/e"), (made, changed));
    // A name that it has already.
    let before = times(&fs, "/d");
    later(|| fs.inode_at("/d").unwrap().link_over("e", &file).unwrap());
    assert_eq!((times(&fs, "/d/e"), times(&fs, "/d")), ((made, changed), before));
    assert_eq!(file.metadata().unwrap().links, 2);
}
