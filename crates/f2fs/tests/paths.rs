//! Volumes by their path, and files as streams.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::Path;

use f2fs::volume::format::FormatOptions;
use f2fs::{Cursor, FileSystem, FsError, Options};

#[test]
fn a_volume_is_made_and_opened_by_its_path() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("volume.img");
    let fs = FileSystem::create_path(&path, 64 << 20, &Default::default(), Options::new()).unwrap();
    let mut cursor = Cursor::new(fs.create_file("/file", 0o644).unwrap());
    io::copy(&mut io::repeat(7).take(1_000_000), &mut cursor).unwrap();
    assert_eq!((cursor.position(), cursor.seek(SeekFrom::End(-10)).unwrap()), (1_000_000, 999_990));
    let mut rest = Vec::new();
    assert_eq!(cursor.read_to_end(&mut rest).unwrap(), 10);
    assert_eq!(cursor.seek(SeekFrom::Current(i64::MIN)).unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(cursor.position(), 1_000_000, "a seek that fails moves nothing");
    cursor.seek(SeekFrom::Start(u64::MAX)).unwrap();
    assert_eq!(FsError::raw_os_error(&cursor.write(b"x").unwrap_err().downcast().unwrap()), 27);
    drop(cursor);
    fs.close().unwrap();
    drop(fs);
    assert_eq!(FileSystem::open_path(&path, Options::new()).unwrap().metadata("/file").unwrap().size, 1_000_000);

    // An existing file stays; a file that cannot be a volume leaves nothing behind.
    let options = FormatOptions::default;
    let error = FileSystem::create_path(&path, 64 << 20, &options(), Options::new()).unwrap_err();
    assert_eq!(io::Error::from(error).kind(), ErrorKind::AlreadyExists);
    assert_eq!(path.metadata().unwrap().len(), 64 << 20);
    let small = dir.path().join("small.img");
    let error = FileSystem::create_path(&small, 4096, &options(), Options::new()).unwrap_err();
    assert_eq!(io::Error::from(error).kind(), ErrorKind::InvalidInput);
    assert!(!small.exists());
    let missing = FileSystem::open_path(Path::new("/none/x"), Options::new()).unwrap_err();
    assert_eq!(io::Error::from(missing).kind(), ErrorKind::NotFound);
}
