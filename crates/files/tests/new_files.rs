//! What a new file cannot be, and how its path may end.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used)] // a test fails by panicking

use f2fs_files::{FileKind, FileSystem, FsError, NewFile, OpenOptions, Options, RenameMode};
use f2fs_test_kit::volumes::formatted;
use f2fs_volume::format::FormatOptions;

fn file_system() -> FileSystem {
    FileSystem::open(formatted(64, &FormatOptions::default()), Options::new()).unwrap()
}

#[test]
fn a_device_that_no_inode_can_name_and_a_link_without_a_target_are_not_made() {
    let fs = file_system();
    let root = fs.root().unwrap();
    let device = NewFile::new(FileKind::CharDevice, 0o600);
    for (major, minor) in [(0x1000, 0), (0, 0x10_0000), (u32::MAX, u32::MAX)] {
        let new = device.device(major, minor);
        for result in [
            root.create("device", &new).map(drop),
            root.create_unnamed(&new).map(drop),
            fs.create("/device", &new).map(drop),
        ] {
            assert!(matches!(result, Err(FsError::DeviceNumber { .. })), "{result:?}");
        }
    }
    let link = NewFile::new(FileKind::Symlink, 0o777);
    for result in [
        root.create("link", &link).map(drop),
        root.create_unnamed(&link).map(drop),
        fs.create("/link", &link).map(drop),
    ] {
        assert!(matches!(result, Err(FsError::WrongKind { .. })), "{result:?}");
    }
    assert_eq!(fs.read_dir("/").unwrap().count(), 0);
    let largest = root.create("device", &device.device(0xfff, 0xf_ffff)).unwrap().metadata().unwrap().device.unwrap();
    assert_eq!((largest.major, largest.minor), (0xfff, 0xf_ffff));
}

/// A slash at its end says that it is a directory.
#[test]
fn a_path_with_a_slash_at_its_end_makes_a_directory_alone() {
    let fs = file_system();
    fs.create_dir("/dir/", 0o755).unwrap();
    assert_eq!(fs.metadata("/dir").unwrap().kind, FileKind::Directory);
    assert!(matches!(fs.create("/fifo/", &NewFile::new(FileKind::Fifo, 0o644)), Err(FsError::NotFound)));
    assert!(matches!(fs.create_file("/file/", 0o644), Err(FsError::IsDirectory)));
    assert_eq!(fs.read_dir("/").unwrap().count(), 1);
}

#[test]
fn a_file_that_is_opened_and_made_has_the_permissions_that_were_asked_for() {
    let fs = file_system();
    let made = |options: &mut OpenOptions, path: &str| {
        options.open(&fs, path).unwrap();
        fs.metadata(path).unwrap().permissions
    };
    assert_eq!(made(OpenOptions::new().write(true).create(true), "/usual"), 0o644);
    assert_eq!(made(OpenOptions::new().write(true).create(true).mode(0o4711), "/other"), 0o4711);
    assert_eq!(made(OpenOptions::new().append(true).create_new(true).mode(0o600), "/new"), 0o600);
    assert_eq!(made(OpenOptions::new().write(true).create(true).mode(0o777), "/other"), 0o4711, "it was there");
}

/// A file gets no name in another file system, however it is given.
#[test]
fn names_stay_within_one_file_system() {
    let (one, two) = (file_system(), file_system());
    let new = NewFile::new(FileKind::Regular, 0o644);
    let stranger = two.root().unwrap().create("f", &new).unwrap();
    let unnamed = two.root().unwrap().create_unnamed(&new).unwrap();
    let root = one.root().unwrap();
    for file in [&stranger, &unnamed] {
        assert!(matches!(root.link("f", file), Err(FsError::OtherVolume)));
        assert!(matches!(root.link_over("f", file), Err(FsError::OtherVolume)));
    }
    let moved = two.root().unwrap().rename("f", &root, "f", RenameMode::Replace);
    assert!(matches!(moved, Err(FsError::OtherVolume)));
    assert_eq!((one.read_dir("/").unwrap().count(), two.read_dir("/").unwrap().count()), (0, 1));
}
