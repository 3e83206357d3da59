//! A device is opened once: by one writer, or by any number of readers, through any wrapper.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use f2fs_check::repair::{BackupError, RepairError, plan, undo};
use f2fs_check::{CheckError, CheckOptions, check};
use f2fs_device::{AlreadyOpen, BlockDevice, MemoryDevice};
use f2fs_device_test::{FaultDevice, TimingDevice};
use f2fs_files::{FileSystem, FsError, Options};
use f2fs_test_kit::volumes::formatted;
use f2fs_volume::VolumeError;
use f2fs_volume::format::{FormatOptions, FormatVolumeError, format};

fn new() -> Arc<MemoryDevice> {
    formatted(64, &FormatOptions::default())
}

fn writer() -> Options {
    Options::new()
}

fn reader() -> Options {
    Options::new().read_only(true)
}

#[track_caller]
fn assert_refused(device: &Arc<dyn BlockDevice>, options: Options, writes: bool) {
    match FileSystem::open(device.clone(), options) {
        Err(FsError::Volume(VolumeError::AlreadyOpen(AlreadyOpen { by: "a volume", writes: found, .. }))) => {
            assert_eq!(found, writes);
        }
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn a_second_file_system_on_a_device_is_refused() {
    let memory = new();
    let faulty: Arc<dyn BlockDevice> = Arc::new(FaultDevice::new(memory.clone()));
    let timing: Arc<dyn BlockDevice> = Arc::new(TimingDevice::new(memory.clone(), |_| 1e-4));
    let ways: [Arc<dyn BlockDevice>; 4] = [memory.clone(), Arc::new(memory.clone()), faulty, timing];
    for way in &ways {
        let first = FileSystem::open(way.clone(), writer()).unwrap();
        let file = first.create_file("/of the first", 0o644).unwrap();
        for other in &ways {
            assert_refused(other, writer(), true);
            assert_refused(other, reader(), true);
        }
        file.write_at(b"text", 0).unwrap();
        drop(file);
        first.close().unwrap();
        let second = FileSystem::open(memory.clone(), writer()).unwrap();
        assert_eq!(second.metadata("/of the first").unwrap().size, 4);
        second.remove_file("/of the first").unwrap();
        second.close().unwrap();
    }
    // A copy is a device of its own.
    let _first = FileSystem::open(memory.clone(), writer()).unwrap();
    FileSystem::open(Arc::new(memory.snapshot()), writer()).unwrap();
    FileSystem::open(Arc::new(memory.rechunked(4)), writer()).unwrap();
}

#[test]
fn readers_share() {
    let device: Arc<dyn BlockDevice> = new();
    let first = FileSystem::open(device.clone(), reader()).unwrap();
    let second = FileSystem::open(device.clone(), reader()).unwrap();
    check(&*device, &CheckOptions::default()).unwrap();
    assert_refused(&device, writer(), false);
    first.close().unwrap();
    assert_refused(&device, writer(), false);
    drop(second);
    FileSystem::open(device, writer()).unwrap();
}

#[test]
fn format_check_repair_and_undo_keep_off_what_is_open() {
    let device: Arc<dyn BlockDevice> = new();
    let mut force = FormatOptions::default();
    force.force = true;
    let (options, before) = (CheckOptions::default(), device.read(0, 1024).unwrap());
    for mode in [writer(), reader()] {
        let fs = FileSystem::open(device.clone(), mode.clone()).unwrap();
        assert!(matches!(format(&*device, &force), Err(FormatVolumeError::AlreadyOpen(_))));
        assert!(matches!(plan(&device, &options), Err(RepairError::AlreadyOpen(_))));
        assert!(matches!(undo(&*device, &[][..]), Err(BackupError::AlreadyOpen(_))));
        match check(&*device, &options) {
            Err(CheckError::AlreadyOpen(_)) => assert!(!mode.volume.read_only),
            checked => assert!(checked.unwrap().is_clean() && mode.volume.read_only),
        }
        assert_eq!(device.read(0, 1024).unwrap().as_bytes(), before.as_bytes());
        drop(fs);
    }
    let repair = plan(&device, &options).unwrap();
    assert!(matches!(check(&*device, &options), Err(CheckError::AlreadyOpen(_))));
    let copy = new();
    let _open = FileSystem::open(copy.clone(), reader()).unwrap();
    assert!(matches!(repair.apply(&*copy), Err(RepairError::AlreadyOpen(_))), "it is not the device of the plan");
    drop(repair);
    let repair = plan(&device, &options).unwrap();
    repair.apply(&*device).unwrap();
    check(&*device, &options).unwrap();
    format(&*device, &force).unwrap();
    FileSystem::open(device, writer()).unwrap();
}

#[test]
fn a_claim_ends_with_what_it_is_for_and_not_before() {
    let device: Arc<dyn BlockDevice> = new();
    // Without a close: a clone and a handle keep it, each by itself.
    let fs = FileSystem::open(device.clone(), writer()).unwrap();
    let clone = fs.clone();
    drop(fs);
    assert_refused(&device, writer(), true);
    let file = clone.create_file("/file", 0o644).unwrap();
    drop(clone);
    assert_refused(&device, writer(), true);
    drop(file);

    // A close ends it, whoever has handles still; they change nothing any more.
    let fs = FileSystem::open(device.clone(), writer()).unwrap();
    let file = fs.create_file("/file", 0o644).unwrap();
    fs.close().unwrap();
    let next = FileSystem::open(device.clone(), writer()).unwrap();
    assert!(matches!(file.write_at(b"x", 0), Err(FsError::Volume(VolumeError::Stopped { .. }))));
    drop((fs, file));
    assert_refused(&device, writer(), true);
    drop(next);

    // A panic, as it drops the file system.
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _fs = FileSystem::open(device.clone(), writer()).unwrap();
        panic!("with the file system open");
    }));
    assert!(panicked.is_err());
    let leaked = FileSystem::open(device.clone(), writer()).unwrap();

    // A leaked file system is open for as long as the process lives.
    Box::leak(Box::new(leaked));
    assert_refused(&device, reader(), true);
}

#[test]
fn what_cannot_be_opened_is_not_kept() {
    let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new((64 << 20) >> 12));
    for _ in 0..2 {
        assert!(matches!(
            FileSystem::open(device.clone(), writer()),
            Err(FsError::Volume(VolumeError::NoSuperblock { .. }))
        ));
        assert!(check(&*device, &CheckOptions::default()).is_err());
        assert!(plan(&device, &CheckOptions::default()).is_err());
    }
    format(&*device, &FormatOptions::default()).unwrap();
    assert!(format(&*device, &FormatOptions::default()).is_err());
    let fs = FileSystem::open(device.clone(), writer()).unwrap();
    fs.close().unwrap();
    // A device for reading only, asked for writing.
    let memory = Arc::new(new().snapshot().read_only());
    assert!(FileSystem::open(memory.clone(), writer()).is_err());
    FileSystem::open(memory, reader()).unwrap();
}

#[test]
fn of_many_threads_one_opens() {
    let device: Arc<dyn BlockDevice> = new();
    let barrier = std::sync::Barrier::new(8);
    let opened: Vec<_> = std::thread::scope(|scope| {
        let open = || {
            barrier.wait();
            FileSystem::open(device.clone(), writer())
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(opened.iter().filter(|result| result.is_ok()).count(), 1);
}
