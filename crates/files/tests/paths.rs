//! Paths through directories that move and go, on threads that remember where they were.
#![allow(clippy::unwrap_used)]

use std::sync::{Arc, Barrier};

use f2fs_device::MemoryDevice;
use f2fs_files::{FileKind, FileSystem, NewFile, Options, RenameMode};
use f2fs_volume::format::{FormatOptions, format};

fn new_fs() -> FileSystem {
    let device = Arc::new(MemoryDevice::new(16 * 1024));
    format(&*device, &FormatOptions::default()).unwrap();
    FileSystem::open(device, Options::new()).unwrap()
}

/// Looks a path up on several threads, so that each processor's memory of it is asked.
fn seen(fs: &FileSystem, path: &str) -> bool {
    let answers: Vec<bool> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| fs.exists(path).unwrap())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{path}: {answers:?}");
    answers[0]
}

#[test]
fn a_directory_that_moved_is_not_found_where_it_was() {
    let fs = new_fs();
    for path in ["/a", "/a/b", "/a/b/c", "/d"] {
        fs.create_dir(path, 0o755).unwrap();
    }
    fs.create_file("/a/b/c/file", 0o644).unwrap();
    assert!(seen(&fs, "/a/b/c/file"));

    fs.rename("/a/b", "/a/e", RenameMode::NoReplace).unwrap();
    assert!(!seen(&fs, "/a/b/c/file") && seen(&fs, "/a/e/c/file"));
    fs.rename("/a/e", "/d/e", RenameMode::NoReplace).unwrap();
    assert!(!seen(&fs, "/a/e/c/file") && seen(&fs, "/d/e/c/file"));
    fs.rename("/d", "/a/d", RenameMode::NoReplace).unwrap();
    assert!(!seen(&fs, "/d/e/c/file") && seen(&fs, "/a/d/e/c/file"));

    // Replaced by another directory, which has no such file.
    fs.create_dir("/empty", 0o755).unwrap();
    assert!(!seen(&fs, "/empty/e/c/file"));
    fs.rename("/a/d", "/empty", RenameMode::Replace).unwrap();
    assert!(seen(&fs, "/empty/e/c/file") && !seen(&fs, "/a/d/e/c/file"));

    // Changed for a file.
    fs.create_file("/plain", 0o644).unwrap();
    fs.rename("/plain", "/empty", RenameMode::Exchange).unwrap();
    assert!(seen(&fs, "/plain/e/c/file") && !seen(&fs, "/empty/e/c/file"));
}

#[test]
fn a_directory_that_was_removed_is_not_found_again() {
    let fs = new_fs();
    for round in 0..20 {
        fs.create_dir("/a", 0o755).unwrap();
        fs.create_dir("/a/b", 0o755).unwrap();
        let file = format!("/a/b/{round}");
        fs.create_file(&file, 0o644).unwrap();
        assert!(seen(&fs, &file));
        fs.remove_file(&file).unwrap();
        fs.remove_dir("/a/b").unwrap();
        assert!(!seen(&fs, &file));
        assert!(fs.create_file(&file, 0o644).is_err());
        fs.remove_dir("/a").unwrap();
        assert!(!seen(&fs, "/a/b"));
    }
}

#[test]
fn a_link_in_the_place_of_a_directory_is_followed() {
    let fs = new_fs();
    fs.create_dir("/old", 0o755).unwrap();
    fs.create_dir("/new", 0o755).unwrap();
    fs.create_file("/new/file", 0o644).unwrap();
    assert!(!seen(&fs, "/old/file"));
    fs.remove_dir("/old").unwrap();
    let owner = NewFile::new(FileKind::Symlink, 0o777);
    fs.symlink(b"new", "/old", &owner).unwrap();
    assert!(seen(&fs, "/old/file"));
    fs.remove_file("/old/file").unwrap();
    assert!(!seen(&fs, "/new/file"));
}

#[test]
fn threads_that_look_up_and_threads_that_move_agree() {
    let fs = new_fs();
    fs.create_dir("/here", 0o755).unwrap();
    fs.create_file("/here/file", 0o644).unwrap();
    let start = Barrier::new(3);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                start.wait();
                for _ in 0..2000 {
                    // The file may have moved since; but it is found, or it is not: nothing else can happen.
                    for path in ["/here/file", "/there/file"] {
                        fs.exists(path).unwrap();
                    }
                }
            });
        }
        start.wait();
        for _ in 0..300 {
            fs.rename("/here", "/there", RenameMode::NoReplace).unwrap();
            // Seen by the thread that moved it, at once.
            assert!(!fs.exists("/here/file").unwrap() && fs.exists("/there/file").unwrap());
            fs.rename("/there", "/here", RenameMode::NoReplace).unwrap();
            assert!(fs.exists("/here/file").unwrap() && !fs.exists("/there/file").unwrap());
        }
    });
}
