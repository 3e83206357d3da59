//! Files that processors keep open for all who open them: they are what their names mean, and end when they should.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};

use f2fs_device::MemoryDevice;
use f2fs_files::{File, FileSystem, FsError, Options, RenameMode};
use f2fs_test_kit::volumes::{assert_clean, formatted, scale};
use f2fs_volume::format::FormatOptions;

fn empty() -> (Arc<MemoryDevice>, FileSystem) {
    let device = formatted(64, &FormatOptions::default());
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    (device, fs)
}

/// Inodes, nodes and blocks in use.
fn used(fs: &FileSystem) -> (u64, u64, u64) {
    let stat = fs.statfs();
    (stat.valid_inodes, stat.valid_nodes, stat.valid_blocks)
}

fn content(file: &File) -> Vec<u8> {
    let mut bytes = vec![0; file.size() as usize];
    assert_eq!(file.read_at(&mut bytes, 0).unwrap(), bytes.len());
    bytes
}

fn make(fs: &FileSystem, path: &str, bytes: &str) {
    fs.create_file(path, 0o644).unwrap().write_at(bytes.as_bytes(), 0).unwrap();
}

/// Opens a file so often that this thread's processor keeps it open.
fn opened(fs: &FileSystem, path: &str) -> Vec<File> {
    (0..4).map(|_| fs.open_file(path).unwrap()).collect()
}

/// With one processor's worth of opens or with many: what is left when all names and handles are gone is nothing.
#[test]
fn a_file_without_a_name_lives_as_long_as_a_handle() {
    let (device, fs) = empty();
    let nothing = used(&fs);
    make(&fs, "/a", "first");
    let mut files = opened(&fs, "/a");
    fs.remove_file("/a").unwrap();
    assert!(matches!(fs.open_file("/a"), Err(FsError::NotFound)));
    make(&fs, "/a", "second");
    let second = opened(&fs, "/a");
    while let Some(file) = files.pop() {
        assert_eq!(content(&file), b"first");
        assert_eq!(file.metadata().unwrap().links, 0);
    }
    assert!(fs.volume().orphans().is_empty());
    assert!(second.iter().all(|file| content(file) == b"second"));
    drop(second);
    // Still kept open, and ended by the unlink.
    fs.remove_file("/a").unwrap();
    assert_eq!(used(&fs), nothing);
    assert!(fs.volume().orphans().is_empty());
    fs.close().unwrap();
    assert_clean(&device);
}

#[test]
fn a_name_means_the_file_that_was_renamed_to_it() {
    let (device, fs) = empty();
    for path in ["/a", "/b", "/c"] {
        make(&fs, path, path);
    }
    let means = |path: &str, bytes: &str| opened(&fs, path).iter().all(|file| content(file) == bytes.as_bytes());
    let gone = |path: &str| matches!(fs.open_file(path), Err(FsError::NotFound));
    assert!(means("/a", "/a") && means("/b", "/b") && means("/c", "/c"));
    fs.rename("/a", "/d", RenameMode::NoReplace).unwrap();
    assert!(gone("/a") && means("/d", "/a"));
    fs.rename("/b", "/d", RenameMode::Replace).unwrap();
    assert!(gone("/b") && means("/d", "/b"));
    fs.rename("/c", "/d", RenameMode::Exchange).unwrap();
    assert!(means("/c", "/b") && means("/d", "/c"));
    fs.create_dir("/to", 0o755).unwrap();
    fs.rename("/d", "/to/d", RenameMode::Replace).unwrap();
    assert!(gone("/d") && means("/to/d", "/c"));
    // The directory moves with what is remembered in it, and its old name may be another's.
    fs.rename("/to", "/went", RenameMode::Replace).unwrap();
    assert!(gone("/to/d") && means("/went/d", "/c"));
    fs.create_dir("/to", 0o755).unwrap();
    assert!(gone("/to/d"));
    fs.close().unwrap();
    assert_clean(&device);
}

#[test]
fn each_name_of_a_file_is_remembered_by_itself() {
    let (device, fs) = empty();
    let nothing = used(&fs);
    make(&fs, "/a", "linked");
    fs.link("/a", "/b").unwrap();
    drop((opened(&fs, "/a"), opened(&fs, "/b")));
    fs.remove_file("/a").unwrap();
    assert!(matches!(fs.open_file("/a"), Err(FsError::NotFound)));
    assert!(opened(&fs, "/b").iter().all(|file| content(file) == b"linked"));
    fs.remove_file("/b").unwrap();
    assert_eq!(used(&fs), nothing);
    fs.close().unwrap();
    assert_clean(&device);
}

/// More than a processor remembers: those that it forgets are closed.
#[test]
fn what_is_too_much_is_closed() {
    const FILES: usize = 1000;
    let (device, fs) = empty();
    let nothing = used(&fs);
    for number in 0..FILES {
        make(&fs, &format!("/{number}"), &number.to_string());
    }
    for number in 0..FILES {
        assert!(opened(&fs, &format!("/{number}")).iter().all(|file| content(file) == number.to_string().as_bytes()));
    }
    for number in 0..FILES {
        fs.remove_file(format!("/{number}")).unwrap();
    }
    assert_eq!(used(&fs), nothing);
    assert!(fs.volume().orphans().is_empty());
    fs.close().unwrap();
    assert_clean(&device);
}

/// Files that are kept open do not keep the file system: the device is free when the last clone goes.
#[test]
fn a_file_system_that_is_dropped_gives_its_device_back() {
    let (device, fs) = empty();
    make(&fs, "/a", "kept");
    fs.checkpoint().unwrap();
    drop(opened(&fs, "/a"));
    drop(fs);
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    assert_eq!(content(&fs.open_file("/a").unwrap()), b"kept");
    fs.close().unwrap();
    assert_clean(&device);
}

/// Threads open a file by its name while another one replaces and removes it. A file that was opened after a replacement is
/// that one or a later one, never one before.
#[test]
fn what_is_opened_is_never_older_than_what_was_seen() {
    const READERS: usize = 3;
    let rounds = 3000 * scale("F2FS_STRESS");
    let (device, fs) = empty();
    let nothing = used(&fs);
    let (done, start) = (AtomicBool::new(false), Barrier::new(READERS + 1));
    std::thread::scope(|scope| {
        for _ in 0..READERS {
            scope.spawn(|| {
                start.wait();
                let mut seen = 0;
                while !done.load(Ordering::Acquire) {
                    let file = match fs.open_file("/a") {
                        Err(FsError::NotFound) => continue,
                        file => file.unwrap(),
                    };
                    let now: usize = String::from_utf8(content(&file)).unwrap().parse().unwrap();
                    assert!(now >= seen, "{now} after {seen}");
                    seen = now;
                }
            });
        }
        start.wait();
        for round in 1..=rounds {
            make(&fs, "/next", &format!("{round:08}"));
            fs.rename("/next", "/a", RenameMode::Replace).unwrap();
            if round % 5 == 0 {
                fs.remove_file("/a").unwrap();
                assert!(matches!(fs.open_file("/a"), Err(FsError::NotFound)));
            }
        }
        done.store(true, Ordering::Release);
    });
    let _ = fs.remove_file("/a");
    assert_eq!(used(&fs), nothing);
    fs.close().unwrap();
    assert_clean(&device);
}
