//! The ends of files that are kept open, and of file systems.

use std::sync::Arc;

use f2fs_files::{FileKind, FileSystem, FsError, NewFile, Options};
use f2fs_test_kit::volumes::assert_clean;

use super::{content, empty, end, gone, make, means, opened, used};

#[test]
fn a_file_without_a_name_lives_as_long_as_a_handle() {
    let (device, fs) = empty(Options::new());
    let nothing = used(&fs);
    make(&fs, "/a", "first");
    let mut files = opened(&fs, "/a");
    fs.remove_file("/a").unwrap();
    assert!(gone(&fs, "/a"));
    make(&fs, "/a", "second");
    let second = opened(&fs, "/a");
    while let Some(file) = files.pop() {
        assert_eq!(content(&file), "first");
        assert_eq!(file.metadata().unwrap().links, 0);
    }
    assert!(fs.volume().orphans().is_empty());
    assert!(second.iter().all(|file| content(file) == "second"));
    drop(second);
    // Still kept open, and ended by the unlink.
    fs.remove_file("/a").unwrap();
    end(&device, &fs, nothing);
}

/// More than a processor remembers: those that it forgets are closed.
#[test]
fn what_is_too_much_is_closed() {
    const FILES: usize = 1000;
    let (device, fs) = empty(Options::new());
    let nothing = used(&fs);
    for number in 0..FILES {
        make(&fs, &format!("/{number}"), &number.to_string());
    }
    for number in 0..FILES {
        assert!(means(&fs, &format!("/{number}"), &number.to_string()));
    }
    for number in 0..FILES {
        fs.remove_file(format!("/{number}")).unwrap();
    }
    end(&device, &fs, nothing);
}

/// Files that are kept open do not keep the file system: the device is free when the last clone goes.
#[test]
fn a_file_system_that_is_dropped_gives_its_device_back() {
    let (device, fs) = empty(Options::new());
    make(&fs, "/a", "kept");
    fs.checkpoint().unwrap();
    drop(opened(&fs, "/a"));
    drop(fs);
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    assert_eq!(content(&fs.open_file("/a").unwrap()), "kept");
    fs.close().unwrap();
    assert_clean(&device);
}

#[test]
fn a_cached_file_that_is_kept_ends_with_its_dirty_pages() {
    let (device, fs) = empty(Options::new().page_cache(8 << 20));
    let nothing = used(&fs);
    for round in 0..20 {
        make(&fs, "/a", "x");
        let files = opened(&fs, "/a");
        files[3].write_at(&vec![round; 3 << 20], 0).unwrap();
        if round % 2 == 0 {
            drop(files);
            fs.remove_file("/a").unwrap();
        } else {
            fs.remove_file("/a").unwrap();
            files[1].write_at(&vec![round; 1 << 20], 1 << 20).unwrap();
            if round % 3 == 0 {
                fs.checkpoint().unwrap();
            }
        }
    }
    end(&device, &fs, nothing);
}

#[test]
fn an_orphan_that_was_kept_is_freed_by_the_next_open() {
    let (device, fs) = empty(Options::new());
    fs.checkpoint().unwrap();
    let nothing = used(&fs);
    make(&fs, "/a", "x");
    make(&fs, "/b", "kept");
    drop(opened(&fs, "/b"));
    let files = opened(&fs, "/a");
    fs.remove_file("/a").unwrap();
    fs.remove_file("/b").unwrap();
    assert_eq!(fs.volume().orphans().len(), 1);
    fs.checkpoint().unwrap();
    let image = Arc::new(device.snapshot());
    let again = FileSystem::open(image.clone(), Options::new()).unwrap();
    assert_eq!(used(&again).0, nothing.0);
    again.close().unwrap();
    assert_clean(&image);
    drop(files);
    fs.close().unwrap();
    assert_clean(&device);
}

#[test]
fn a_volume_for_reading_keeps_files_open() {
    let (device, fs) = empty(Options::new());
    fs.create_dir("/d", 0o755).unwrap();
    make(&fs, "/d/a", "x");
    fs.symlink(b"d/a", "/s", &NewFile::new(FileKind::Symlink, 0o777)).unwrap();
    fs.close().unwrap();
    drop(fs);
    let fs = FileSystem::open(device.clone(), Options::new().read_only(true)).unwrap();
    let again = FileSystem::open(device.clone(), Options::new().read_only(true)).unwrap();
    let clone = fs.clone();
    for path in ["/d/a", "/s", "/d/../s", "/d/./a", "/d/../d/a"] {
        for fs in [&fs, &again, &clone] {
            assert!(means(fs, path, "x"), "{path}");
        }
    }
    for path in ["/d", "/d/.", "/d/..", "/d/"] {
        assert!(matches!(fs.open_file(path), Err(FsError::IsDirectory)), "{path}");
    }
    assert!(matches!(fs.open_file("/d/a/"), Err(FsError::NotDirectory)));
    assert!(matches!(fs.open_file("/d/a/b"), Err(FsError::NotDirectory)));
    assert!(matches!(fs.remove_file("/d/a"), Err(FsError::Volume(_) | FsError::ReadOnly)));
    assert_eq!(content(&fs.open_file("/d/a").unwrap()), "x");
    drop((fs, again, clone));
    FileSystem::open(device, Options::new()).unwrap().close().unwrap();
}

/// All blocks are taken; files that are kept give theirs back at once.
#[test]
fn a_full_volume_is_emptied_of_files_that_are_kept() {
    let (device, fs) = empty(Options::new());
    let nothing = used(&fs).0;
    let mut count = 0;
    while let Ok(file) = fs.create_file(format!("/{count}"), 0o644) {
        count += 1;
        drop((fs.open_file(format!("/{}", count - 1)), fs.open_file(format!("/{}", count - 1))));
        if file.write_at(&[7; 300_000], 0).is_err() {
            break;
        }
    }
    for number in 0..count {
        fs.remove_file(format!("/{number}")).unwrap();
    }
    assert_eq!(used(&fs).0, nothing);
    assert!(fs.volume().orphans().is_empty());
    fs.close().unwrap();
    assert_clean(&device);
}
