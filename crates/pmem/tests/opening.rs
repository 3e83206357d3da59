//! Opening files: kinds, sizes, locks, holes, and those that are no persistent memory.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use f2fs_device::{BlockDevice, DeviceErrorKind};
use f2fs_pmem::{Dax, Durability, OpenError, OpenOptions, PersistentRegion, PmemDevice};
use tempfile::TempDir;

fn at_once() -> OpenOptions {
    OpenOptions::new().patience(Duration::ZERO)
}

/// Where the build lies is a disk.
fn image(bytes: u64) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = dir.path().join("image");
    File::create(&path).unwrap().set_len(bytes).unwrap();
    (dir, path)
}

#[test]
fn a_file_without_dax_works_and_says_that_it_is_slower() {
    let (_dir, path) = image((1 << 20) + 100);
    let device = PmemDevice::open(&path, at_once()).unwrap();
    assert_eq!(device.region().durability(), Durability::Sync);
    assert!(device.is_immediate() && !device.flushes_at_once(), "a flush waits for the disk");
    let described = &device.info().description;
    assert!(described.starts_with("persistent memory, no DAX: durable at msync, which is slower, /"), "{described}");
    assert_eq!(device.info().blocks, 256);
    device.write_slice(255, b"last").unwrap();
    device.flush().unwrap();
    drop(device);
    assert_eq!(&fs::read(&path).unwrap()[255 * 4096..][..4], b"last");
    let device = PmemDevice::open(&path, at_once().read_only(true)).unwrap();
    assert_eq!(&device.read(255, 1).unwrap().as_bytes()[..4], b"last");
    assert_eq!(device.write_slice(0, b"x").unwrap_err().kind, DeviceErrorKind::ReadOnly);
    device.flush().unwrap();

    let error = PmemDevice::open(&path, at_once().read_only(true).dax(Dax::Required)).unwrap_err();
    assert!(matches!(error, OpenError::NotDax { .. }), "{error}");
}

#[test]
fn one_writer_or_many_readers() {
    let (_dir, path) = image(1 << 20);
    let refused = |options| match PmemDevice::open(&path, options) {
        Err(OpenError::AlreadyOpen { .. }) => {}
        other => panic!("{other:?}"),
    };
    let writer = PmemDevice::open(&path, at_once()).unwrap();
    refused(at_once());
    refused(at_once().read_only(true));
    drop(writer);
    let readers = [(); 2].map(|()| PmemDevice::open(&path, at_once().read_only(true)).unwrap());
    refused(at_once());
    drop(readers);
    let device = PmemDevice::open(&path, at_once()).unwrap();
    let _claim = device.claims().exclusive("a test").unwrap();
    assert_eq!(device.claims().shared("another").unwrap_err().by, "a test");
}

#[test]
fn other_kinds_and_small_files_are_refused() {
    let (dir, path) = image(4095);
    let open = |path: &Path| PmemDevice::open(path, at_once()).unwrap_err();
    assert!(matches!(open(&path), OpenError::TooSmall { bytes: 4095, .. }));
    assert!(matches!(open(dir.path()), OpenError::NotMemory { kind: "directory", .. }));
    assert!(matches!(open(Path::new("/dev/null")), OpenError::NotMemory { kind: "character device", .. }));
    let missing = open(&dir.path().join("missing"));
    assert!(matches!(&missing, OpenError::Io { call: "stat", .. }), "{missing}");
    assert_eq!(missing.io_kind(), std::io::ErrorKind::NotFound);
}

#[test]
fn holes_are_filled_or_refused_before_a_store_could_fail() {
    let (_dir, path) = image(8 << 20);
    assert_eq!(fs::metadata(&path).unwrap().blocks(), 0);
    drop(PmemDevice::open(&path, at_once().read_only(true)).unwrap());
    assert_eq!(fs::metadata(&path).unwrap().blocks(), 0, "a reader changes nothing");
    drop(PmemDevice::open(&path, at_once()).unwrap());
    assert!(fs::metadata(&path).unwrap().blocks() * 512 >= 8 << 20);

    let (_dir, path) = image(1 << 43);
    let error = PmemDevice::open(&path, at_once()).unwrap_err();
    assert!(matches!(error, OpenError::NoRoom { holes, .. } if holes == 1 << 43), "{error}");
    assert_eq!(fs::metadata(&path).unwrap().blocks(), 0, "nothing was filled");
}

#[test]
fn a_file_that_was_made_shorter_fails_its_flush_and_nothing_after_it() {
    let (_dir, path) = image(1 << 20);
    let device = PmemDevice::open(&path, at_once()).unwrap();
    device.write_slice(0, b"x").unwrap();
    device.flush().unwrap();
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(1 << 19).unwrap();
    let error = device.flush().unwrap_err();
    assert!(matches!(error.kind, DeviceErrorKind::Io { kind: std::io::ErrorKind::UnexpectedEof, .. }), "{error}");
    let poisoned = device.write_slice(0, b"y").unwrap_err();
    assert!(matches!(poisoned.kind, DeviceErrorKind::Poisoned { .. }), "{poisoned}");
    assert_eq!(device.read(0, 1).unwrap().as_bytes()[0], b'x');
}
