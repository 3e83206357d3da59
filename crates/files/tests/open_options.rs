//! Opening and making files, compared with what the standard library and the host do.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::fs;
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, symlink};

use f2fs_files::{AllocateFlags, Cursor, FileKind, FileSystem, FsError, NewFile, OpenOptions, Options};
use f2fs_test_kit::volumes::formatted;
use f2fs_volume::format::FormatOptions;

const NAMES: [&str; 11] = [
    "file",
    "new",
    "dir",
    "dangling",
    "relative",
    "chain",
    "to file",
    "dir/below",
    "no/where",
    "dir/beside",
    "dir/to the root",
];

fn host() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("file"), b"content").unwrap();
    fs::create_dir(at("dir")).unwrap();
    symlink(at("made"), at("dangling")).unwrap();
    symlink("dir/made too", at("relative")).unwrap();
    symlink("relative", at("chain")).unwrap();
    symlink("file", at("to file")).unwrap();
    symlink("below", at("dir/beside")).unwrap();
    symlink(at("made"), at("dir/to the root")).unwrap();
    dir
}

fn ours() -> FileSystem {
    let fs = FileSystem::open(formatted(64, &FormatOptions::default()), Options::new()).unwrap();
    fs.create_file("/file", 0o644).unwrap().write_at(b"content", 0).unwrap();
    fs.create_dir("/dir", 0o755).unwrap();
    let link = NewFile::new(FileKind::Symlink, 0o777);
    fs.symlink(b"/made", "/dangling", &link).unwrap();
    fs.symlink(b"dir/made too", "/relative", &link).unwrap();
    fs.symlink(b"relative", "/chain", &link).unwrap();
    fs.symlink(b"file", "/to file", &link).unwrap();
    fs.symlink(b"below", "/dir/beside", &link).unwrap();
    fs.symlink(b"/made", "/dir/to the root", &link).unwrap();
    fs
}

/// All sets of options on all kinds of names: the same error, or the same file in the same state.
#[test]
fn as_the_standard_library() {
    let (mut opened, mut refused) = (0, 0);
    for name in NAMES {
        for set in 0..64u32 {
            let on = |bit: u32| set >> bit & 1 == 1;
            let (dir, fs) = (host(), ours());
            let theirs = fs::OpenOptions::new()
                .read(on(0))
                .write(on(1))
                .append(on(2))
                .truncate(on(3))
                .create(on(4))
                .create_new(on(5))
                .open(dir.path().join(name));
            let mut options = OpenOptions::new();
            options.read(on(0)).write(on(1)).append(on(2)).truncate(on(3)).create(on(4)).create_new(on(5));
            let mine = options.open(&fs, name);
            let what = format!("{name}, {options:?}: {mine:?}, {theirs:?}");
            let (mine, theirs) = match (mine, theirs) {
                (Err(mine), Err(theirs)) => {
                    assert_eq!(mine.kind(), theirs.kind(), "{what}");
                    refused += 1;
                    continue;
                }
                // The host opens directories for reading; a file of this library is a regular one.
                (Err(FsError::IsDirectory), Ok(_)) if name == "dir" => continue,
                (Ok(mine), Ok(theirs)) => (mine, theirs),
                _ => panic!("{what}"),
            };
            opened += 1;
            assert_eq!(mine.size(), theirs.metadata().unwrap().len(), "{what}");
            let (mut one, mut other) = ([0; 3], [0; 3]);
            let read = (mine.read_at(&mut one, 2).map_err(|error| error.raw_os_error()), theirs.read_at(&mut other, 2));
            assert_eq!(read.0, read.1.map_err(|error| error.raw_os_error().unwrap()), "{what}");
            assert_eq!(one, other, "{what}");
            let wrote = (mine.write_at(b"xyz", 1).map_err(|error| error.raw_os_error()), theirs.write_at(b"xyz", 1));
            assert_eq!(wrote.0, wrote.1.map_err(|error| error.raw_os_error().unwrap()), "{what}");
            for name in ["file", "new", "made", "dir/made too", "dir/below"] {
                let theirs = fs::read(dir.path().join(name));
                let mine = fs.open_file(name).map(|file| {
                    let mut all = vec![0; file.size() as usize];
                    file.read_at(&mut all, 0).unwrap();
                    all
                });
                assert_eq!(mine.ok(), theirs.ok(), "{name} after {what}");
            }
        }
    }
    assert!(opened > 100 && refused > 200, "{opened} {refused}");
}

#[test]
fn a_handle_does_what_it_was_opened_for() {
    let fs = ours();
    let bad = |result: Result<(), FsError>| {
        let error = result.unwrap_err();
        assert!(matches!(error, FsError::NotOpenFor(_)), "{error}");
        assert_eq!(error.raw_os_error(), 9);
    };
    let reader = OpenOptions::new().read(true).open(&fs, "/file").unwrap();
    bad(reader.write_at(b"x", 0).map(drop));
    bad(reader.write_durable(b"x", 0).map(drop));
    bad(reader.write_many(1, &mut []));
    bad(reader.append(b"x").map(drop));
    bad(reader.set_len(0));
    bad(reader.punch_hole(0, 1));
    bad(reader.zero_range(0, 1));
    bad(reader.allocate(0, 1, AllocateFlags::NONE));
    let writer = OpenOptions::new().write(true).open(&fs, "/file").unwrap();
    bad(writer.read_at(&mut [0], 0).map(drop));
    bad(writer.read_into(&mut f2fs_device::AlignedBuf::new(1), 0).map(drop));
    bad(writer.read_many(1, &mut []));
    bad(writer.seek_data(0).map(drop));
    bad(writer.seek_hole(0).map(drop));
    bad(writer.next_data(0).map(drop));
    bad(writer.copy_range(0, &writer, 100, 1).map(drop));
    bad(reader.copy_range(0, &reader, 100, 1).map(drop));
    let appender = OpenOptions::new().append(true).read(true).open(&fs, "/file").unwrap();
    bad(reader.copy_range(0, &appender, 100, 1).map(drop));
    assert_eq!(appender.write_durable(b"!", 0).unwrap(), 1);
    assert!(matches!(appender.write_many(1, &mut []), Err(FsError::Invalid(_))));
    // A cursor on it writes at the end, and goes on behind what it wrote.
    let mut cursor = Cursor::new(appender);
    let mut text = String::new();
    cursor.seek(SeekFrom::Start(2)).unwrap();
    cursor.write_all(b"?").unwrap();
    assert_eq!(cursor.position(), 9);
    cursor.seek(SeekFrom::Start(0)).unwrap();
    cursor.read_to_string(&mut text).unwrap();
    assert_eq!(text, "content!?");

    let other = ours().open_file("/file").unwrap();
    let error = reader.copy_range(0, &other, 0, 1).unwrap_err();
    assert_eq!((error.raw_os_error(), error.kind()), (18, ErrorKind::CrossesDevices));
}

#[test]
fn a_cursor_goes_on_where_it_ended() {
    let mut cursor = Cursor::new(ours().open_file("/file").unwrap());
    let mut text = [0; 3];
    cursor.read_exact(&mut text).unwrap();
    cursor.write_all(b"T").unwrap();
    cursor.write_all(b"E").unwrap();
    assert_eq!((&text, cursor.position()), (b"con", 5));
    assert_eq!(cursor.seek(SeekFrom::Current(-2)).unwrap(), 3);
    assert_eq!(cursor.seek(SeekFrom::End(3)).unwrap(), 10);
    cursor.write_all(b".").unwrap();
    cursor.rewind().unwrap();
    let mut whole = Vec::new();
    cursor.read_to_end(&mut whole).unwrap();
    assert_eq!((&*whole, cursor.position()), (&b"conTEnt\0\0\0."[..], 11));
    assert_eq!(cursor.seek(SeekFrom::Current(-12)).unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(cursor.position(), 11);
}

#[test]
fn a_volume_for_reading_is_not_opened_for_writing() {
    let device = formatted(64, &FormatOptions::default());
    let fs = FileSystem::open(device.clone(), Options::new()).unwrap();
    fs.create_file("/file", 0o644).unwrap();
    fs.close().unwrap();
    drop(fs);
    let fs = FileSystem::open(device, Options::new().read_only(true)).unwrap();
    for open in
        [OpenOptions::new().write(true), OpenOptions::new().append(true), OpenOptions::new().write(true).truncate(true)]
    {
        assert!(matches!(open.open(&fs, "/file"), Err(FsError::ReadOnly)));
    }
    assert!(matches!(OpenOptions::new().write(true).create(true).open(&fs, "/new"), Err(FsError::ReadOnly)));
    assert_eq!(OpenOptions::new().read(true).open(&fs, "/file").unwrap().size(), 0);
}

/// Of many who make the same file one gets it.
#[test]
fn exclusive_creation_has_one_winner() {
    let fs = ours();
    for round in 0..50 {
        let won: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    let fs = &fs;
                    scope.spawn(move || {
                        let made = OpenOptions::new().write(true).create_new(true).open(fs, format!("/lock {round}"));
                        assert!(matches!(made, Ok(_) | Err(FsError::Exists)), "{made:?}");
                        usize::from(made.is_ok())
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(won, 1);
    }
}
