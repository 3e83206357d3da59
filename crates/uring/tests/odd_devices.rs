//! Block devices that are not as they should be: for reading only, at an odd place of their disk, shorter than they
//! were.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod loop_device;

use std::fs::File;
use std::path::PathBuf;
use std::process::Command;

use f2fs_device::{AlignedBuf, BlockDevice, DeviceErrorKind, Request};
use f2fs_uring::{Engine, NvmeDevice, OpenError, OpenOptions, UringDevice};

use loop_device::Loop;

fn image() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = dir.path().join("image");
    File::create(&path).unwrap().set_len(8 << 20).unwrap();
    (dir, path)
}

#[test]
fn a_device_for_reading_only_is_refused_for_writing() {
    let (_dir, path) = image();
    let Some(device) = Loop::new(&path, &["--read-only"]) else { return };
    let error = UringDevice::open(&device.0, OpenOptions::new()).unwrap_err();
    assert!(matches!(error, OpenError::ReadOnly { .. }), "{error}");
    assert_eq!(error.io_kind(), std::io::ErrorKind::ReadOnlyFilesystem);
    assert!(error.to_string().ends_with("the device is read-only"), "{error}");
    UringDevice::open(&device.0, OpenOptions::new().read_only(true)).unwrap().read(0, 1).unwrap();
}

#[test]
fn a_device_at_an_odd_place_has_all_of_its_blocks() {
    let (_dir, path) = image();
    let Some(device) = Loop::new(&path, &["--offset", "512"]) else { return };
    let device = f2fs_uring::open(&device.0, OpenOptions::new()).unwrap();
    assert_eq!(device.info().blocks, 2047);
    device.write(2046, AlignedBuf::from_bytes(&[7; 4096])).unwrap();
    device.flush().unwrap();
    assert_eq!(std::fs::read(&path).unwrap()[512 + 2046 * 4096..][..4096], [7; 4096]);
}

#[test]
fn a_device_that_shrinks_gives_errors_for_what_is_gone() {
    let (_dir, path) = image();
    let Some(device) = Loop::new(&path, &[]) else { return };
    for engine in [Engine::IoUring, Engine::Syscalls] {
        File::options().write(true).open(&path).unwrap().set_len(8 << 20).unwrap();
        let refresh =
            || assert!(Command::new("losetup").arg("--set-capacity").arg(&device.0).status().unwrap().success());
        refresh();
        let open = UringDevice::open(&device.0, OpenOptions::new().engine(engine)).unwrap();
        File::options().write(true).open(&path).unwrap().set_len(4 << 20).unwrap();
        refresh();
        open.read(1023, 1).unwrap();
        open.write(1023, AlignedBuf::new(1)).unwrap();
        let gone = |result: Result<(), DeviceErrorKind>| {
            let kind = result.unwrap_err();
            assert_eq!(kind, DeviceErrorKind::Shrunk { blocks: 1024, opened: 2048 }, "{engine:?}");
        };
        gone(open.read(1024, 1).map(drop).map_err(|error| error.kind));
        gone(open.write(1024, AlignedBuf::new(1)).map_err(|error| error.kind));
        let batch = vec![Request::read(0, AlignedBuf::new(1)), Request::write(2047, AlignedBuf::new(1))];
        let mut done = open.submit(batch).wait().into_iter().map(|done| done.result.map_err(|error| error.kind));
        done.next().unwrap().unwrap();
        gone(done.next().unwrap());
    }
}

#[test]
fn what_polls_not_says_so() {
    let (_dir, path) = image();
    let error = UringDevice::open(&path, OpenOptions::new().io_poll(true)).unwrap_err();
    assert!(matches!(error, OpenError::NoPolling { .. }), "{error}");
    let calls = OpenOptions::new().engine(Engine::Syscalls).sq_poll(Some(std::time::Duration::from_millis(10)));
    let error = UringDevice::open(&path, calls).unwrap_err();
    assert!(matches!(error, OpenError::NoPolling { .. }), "{error}");
}

#[test]
fn queues_have_a_thread_of_the_kernel_where_asked_for() {
    let (_dir, path) = image();
    let options = OpenOptions::new().engine(Engine::IoUring).sq_poll(Some(std::time::Duration::from_millis(1)));
    let device = UringDevice::open(&path, options).unwrap();
    assert!(device.info().description.starts_with("io_uring with SQPOLL"), "{}", device.info().description);
    let mut queue = device.queue(8);
    for start in 0..2000 {
        queue.push(Request::write(start, AlignedBuf::from_bytes(&[start as u8; 4096])));
        if start % 500 == 0 {
            // The kernel's thread has gone to sleep.
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
    while let Some(done) = queue.next_completion() {
        done.result.unwrap();
    }
    drop(queue);
    for start in (0..2000).step_by(97) {
        assert_eq!(device.read(start, 1).unwrap().as_bytes()[9], start as u8);
    }
}

#[test]
fn what_is_no_namespace_is_none() {
    let (_dir, path) = image();
    for path in [path.as_path(), "/dev/null".as_ref(), "/dev".as_ref()] {
        assert!(!NvmeDevice::is_at(path));
        let error = NvmeDevice::open(path, OpenOptions::new()).unwrap_err();
        assert!(matches!(error, OpenError::Namespace { .. }), "{error}");
    }
    let error = NvmeDevice::open("/dev/ng-none", OpenOptions::new()).unwrap_err();
    assert_eq!(error.io_kind(), std::io::ErrorKind::NotFound);
    let null = f2fs_uring::open("/dev/null", OpenOptions::new()).unwrap_err();
    assert!(matches!(null, OpenError::NotADevice { .. }), "{null}");
}
