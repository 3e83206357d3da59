//! A file and the loop device on it are one device: whoever writes to one keeps the other out.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod loop_device;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use f2fs_device::{AlignedBuf, BlockDevice};
use f2fs_uring::{OpenError, OpenOptions, UringDevice};

use loop_device::Loop;

fn image() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = dir.path().join("image");
    File::create(&path).unwrap().set_len(16 << 20).unwrap();
    (dir, path)
}

fn write(path: &Path) -> Result<Arc<UringDevice>, OpenError> {
    UringDevice::open(path, OpenOptions::new())
}

/// The same where nobody has it open any more. A process that another test is about to start has the open files of this
/// one until its program begins.
fn write_when_closed(path: &Path) -> Arc<UringDevice> {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        match write(path) {
            Err(OpenError::AlreadyOpen { .. }) if Instant::now() < end => thread::sleep(Duration::from_millis(1)),
            opened => return opened.unwrap(),
        }
    }
}

fn read(path: &Path) -> Result<Arc<UringDevice>, OpenError> {
    UringDevice::open(path, OpenOptions::new().read_only(true))
}

/// The file is named whichever of the two was asked for, and the process that has it.
#[track_caller]
fn assert_in_use(result: Result<Arc<UringDevice>, OpenError>, file: &Path) {
    match result {
        Err(OpenError::AlreadyOpen { path, holder: Some(holder) }) => {
            assert_eq!((path.as_path(), holder.pid), (file, std::process::id()));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_file_and_the_loop_device_on_it_have_one_writer() {
    let (_dir, file) = image();
    let Some(device) = Loop::new(&file, &[]) else { return };
    let open = write_when_closed(&file);
    assert_in_use(write(&device.0), &file);
    assert_in_use(read(&device.0), &file);
    drop(open);
    let open = write_when_closed(&device.0);
    // Some of it goes through rings, which hold the lock as well.
    let mut queue = open.queue(4);
    queue.push(f2fs_device::Request::write(3, AlignedBuf::from_bytes(&[3; 4096])));
    queue.next_completion().unwrap().result.unwrap();
    drop(queue);
    assert_in_use(write(&file), &file);
    assert_in_use(read(&file), &file);
    drop(open);
    let readers = [read(&file).unwrap(), read(&device.0).unwrap()];
    assert_in_use(write(&file), &file);
    let [of_the_file, of_the_device] = readers;
    assert_in_use(write(&device.0), &device.0);
    drop(of_the_device);
    assert_in_use(write(&device.0), &file);
    drop(of_the_file);
    assert_eq!(write_when_closed(&file).read(3, 1).unwrap().as_bytes()[7], 3);
    write_when_closed(&device.0);
}

#[test]
fn parts_of_a_file_are_devices_of_their_own() {
    let (_dir, file) = image();
    let Some(front) = Loop::new(&file, &["--sizelimit", "8388608"]) else { return };
    let Some(back) = Loop::new(&file, &["--offset", "8388608"]) else { return };
    let open = [write(&front.0).unwrap(), write(&back.0).unwrap()];
    assert_in_use(write(&file), &file);
    drop(open);
    let open = write_when_closed(&file);
    assert_in_use(write(&front.0), &file);
    assert_in_use(write(&back.0), &file);
    drop(open);
    // A file that is gone from its directory has no lock that anybody else could ask for.
    std::fs::remove_file(&file).unwrap();
    write(&front.0).unwrap();
}

#[test]
fn a_file_that_is_mounted_by_way_of_a_loop_device_is_refused() {
    let (dir, file) = image();
    let Some(device) = Loop::new(&file, &[]) else { return };
    let quiet = |command: &mut Command| command.output().is_ok_and(|output| output.status.success());
    let at = dir.path().join("at");
    std::fs::create_dir(&at).unwrap();
    if !quiet(Command::new("mkfs.ext4").arg("-q").arg(&device.0))
        || !quiet(Command::new("mount").arg(&device.0).arg(&at))
    {
        eprintln!("NOT RUN: this test needs mkfs.ext4, and the right to mount");
        return;
    }
    let (writing, reading) = (write(&file), read(&file));
    // Before anything can panic.
    assert!(quiet(Command::new("umount").arg(&at)));
    let error = writing.unwrap_err();
    assert_eq!(error.to_string(), format!("{}: mounted by way of {}", file.display(), device.0.display()));
    assert_eq!(error.io_kind(), std::io::ErrorKind::ResourceBusy);
    // As of a block device that is mounted.
    drop(reading.unwrap());
    write_when_closed(&file);
}
