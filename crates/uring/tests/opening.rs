//! Opening, creating, locks between openers and processes, and the fallback.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    fs,
    path::Path,
    process::{Command, Output},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use f2fs_device::{AlignedBuf, BlockDevice, DeviceErrorKind, Request};
use f2fs_uring::{Direct, Engine, OpenError, OpenOptions, UringDevice};

const MIB: u64 = 1 << 20;

fn writer() -> OpenOptions {
    OpenOptions::new()
}

fn reader() -> OpenOptions {
    OpenOptions::new().read_only(true)
}

fn image(dir: &tempfile::TempDir) -> std::path::PathBuf {
    let path = dir.path().join("image");
    drop(UringDevice::create(&path, MIB, writer()).unwrap());
    path
}

#[track_caller]
fn assert_in_use(result: &Result<Arc<UringDevice>, OpenError>) {
    assert!(matches!(result, Err(OpenError::AlreadyOpen { .. })), "{result:?}");
}

#[test]
fn one_writer_or_many_readers() {
    let dir = tempfile::tempdir().unwrap();
    let path = image(&dir);
    let first = UringDevice::open(&path, writer()).unwrap();
    assert_in_use(&UringDevice::open(&path, writer()));
    assert_in_use(&UringDevice::open(&path, reader()));
    drop(first);
    let readers = [UringDevice::open(&path, reader()).unwrap(), UringDevice::open(&path, reader()).unwrap()];
    assert_in_use(&UringDevice::open(&path, writer()));
    drop(readers);
    UringDevice::open(&path, writer()).unwrap();
}

#[test]
fn the_lock_ends_with_the_device_whatever_is_in_flight() {
    let dir = tempfile::tempdir().unwrap();
    let path = image(&dir);
    for round in 0..50 {
        let device = UringDevice::open(&path, writer().engine(Engine::IoUring)).unwrap();
        let ticket = device.submit((0..64).map(|i| Request::write(i, AlignedBuf::new(1))).collect());
        let mut queue = device.queue(16);
        queue.push(Request::read(0, AlignedBuf::new(16)));
        queue.submit();
        drop(queue);
        if round % 2 == 0 {
            drop(device);
            assert_in_use(&UringDevice::open(&path, writer())); // the ticket keeps the file
            drop(ticket);
        } else {
            drop(ticket);
            drop(device);
        }
    }
}

#[test]
fn a_device_dropped_by_its_last_user_is_idle() {
    let dir = tempfile::tempdir().unwrap();
    let path = image(&dir);
    let device = UringDevice::open(&path, writer()).unwrap();
    let buf = AlignedBuf::from_bytes(&[0x5a; MIB as usize]);
    drop(device.submit(vec![Request::write(0, buf)]));
    drop(device);
    assert!(
        fs::read(&path).unwrap().iter().all(|&byte| byte == 0x5a),
        "a request whose ticket was dropped still happens"
    );
}

/// Runs one of the tests below in another process, with `F2FS_TEST_IMAGE` and `vars` set.
fn in_another_process(test: &str, path: &Path, vars: &[(&str, &str)]) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env("F2FS_TEST_IMAGE", path).envs(vars.iter().copied());
    command.output().unwrap()
}

/// Part of `two_processes`, in the other process: says what opening for writing gives.
#[test]
fn child_opens() {
    let Some(path) = std::env::var_os("F2FS_TEST_IMAGE") else { return };
    match UringDevice::open(&path, writer()) {
        Ok(device) => println!("opened by {}", device.info().description),
        Err(error) => println!("refused: {error:?}"),
    }
}

#[test]
fn two_processes() {
    let dir = tempfile::tempdir().unwrap();
    let path = image(&dir);
    let said = |vars: &[(&str, &str)]| {
        let output = in_another_process("child_opens", &path, vars);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let device = UringDevice::open(&path, writer()).unwrap();
    assert!(said(&[]).contains("refused: AlreadyOpen"));
    drop(device);
    let allowed = said(&[("F2FS_NO_IO_URING", "0")]);
    assert!(allowed.contains("opened by io_uring, "), "{allowed}");
    let forbidden = said(&[("F2FS_NO_IO_URING", "1")]);
    assert!(forbidden.contains("opened by preadv/pwritev (F2FS_NO_IO_URING is set), "), "{forbidden}");
}

/// Part of `where_rings_are_forbidden`, in the other process: no descriptor is left for a ring.
#[test]
fn child_has_no_descriptor_for_a_ring() {
    let Some(path) = std::env::var_os("F2FS_TEST_IMAGE") else { return };
    // The device takes one descriptor, the ring would take the next.
    let next = std::os::fd::AsRawFd::as_raw_fd(&fs::File::open("/dev/null").unwrap());
    let limit = rustix::process::Rlimit { current: Some(next as u64 + 1), maximum: Some(next as u64 + 1) };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, limit).unwrap();
    let refused = UringDevice::open(&path, writer().engine(Engine::IoUring)).unwrap_err();
    assert!(matches!(&refused, OpenError::NoIoUring { reason, .. } if reason.contains("io_uring_setup")), "{refused}");
    let device = UringDevice::open(&path, writer()).unwrap();
    assert!(!device.uses_io_uring());
    device.write_slice(3, b"without a ring").unwrap();
    device.flush().unwrap();
    println!("{}", device.info().description);
}

#[test]
fn where_rings_are_forbidden() {
    let dir = tempfile::tempdir().unwrap();
    let path = image(&dir);
    let output = in_another_process("child_has_no_descriptor_for_a_ring", &path, &[]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("preadv/pwritev (io_uring_setup: "), "{output:?}");
    assert!(fs::read(&path).unwrap()[3 * 4096..].starts_with(b"without a ring"));
}

#[test]
fn rings_that_cannot_be_made_later_are_shared() {
    let Some(path) = std::env::var_os("F2FS_TEST_IMAGE") else {
        let dir = tempfile::tempdir().unwrap();
        let path = image(&dir);
        let output = in_another_process("rings_that_cannot_be_made_later_are_shared", &path, &[]);
        assert!(output.status.success(), "{output:?}");
        return;
    };
    let device = UringDevice::open(&path, writer().engine(Engine::IoUring)).unwrap();
    let next = std::os::fd::AsRawFd::as_raw_fd(&fs::File::open("/dev/null").unwrap()) as u64;
    let limit = rustix::process::Rlimit { current: Some(next), maximum: Some(next) };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, limit).unwrap();
    let threads: Vec<_> = (0..20)
        .map(|i| {
            let device = Arc::clone(&device);
            thread::spawn(move || {
                for round in 0..20 {
                    device.write_slice(i, &[i as u8, round]).unwrap();
                    assert_eq!(device.read(i, 1).unwrap().as_bytes()[..2], [i as u8, round]);
                }
                let mut queue = device.queue(4);
                queue.push(Request::read(i, AlignedBuf::new(1)));
                assert_eq!(queue.next_completion().unwrap().into_buf().unwrap().as_bytes()[1], 19);
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn sizes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("image");
    for bytes in [0, 1, 4095] {
        let refused = UringDevice::create(&path, bytes, writer()).unwrap_err();
        assert!(matches!(refused, OpenError::TooSmall { bytes: found, .. } if found == bytes), "{refused}");
        assert!(!path.exists(), "a refused size leaves no file");
    }
    let device = UringDevice::create(&path, 3 * 4096 + 4095, writer()).unwrap();
    assert_eq!(device.info().blocks, 3, "a tail shorter than a block does not count");
    assert!(matches!(device.read(3, 1).unwrap_err().kind, DeviceErrorKind::OutOfRange { device_blocks: 3 }));
    drop(device);
    let exists = UringDevice::create(&path, MIB, writer()).unwrap_err();
    assert_eq!(exists.io_kind(), std::io::ErrorKind::AlreadyExists);
    assert_eq!(fs::metadata(&path).unwrap().len(), 3 * 4096 + 4095);
    fs::write(&path, b"short").unwrap();
    assert!(matches!(UringDevice::open(&path, writer()), Err(OpenError::TooSmall { bytes: 5, .. })));
    let sparse = UringDevice::create(dir.path().join("sparse"), 64 << 30, writer()).unwrap();
    assert_eq!(sparse.info().bytes(), 64 << 30);
    sparse.write_slice((64 << 18) - 1, b"end").unwrap();
    assert!(sparse.read((64 << 18) - 1, 1).unwrap().as_bytes().starts_with(b"end"));
}

#[test]
fn what_is_not_a_device() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("pipe");
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, rustix::fs::Mode::from_raw_mode(0o600), 0).unwrap();
    let before = Instant::now();
    for (path, expected) in [(dir.path(), "directory"), (Path::new("/dev/null"), "character device"), (&pipe, "pipe")] {
        let refused = UringDevice::open(path, reader()).unwrap_err();
        assert!(matches!(refused, OpenError::NotADevice { kind, .. } if kind == expected), "{refused}");
    }
    assert!(before.elapsed() < Duration::from_secs(5), "opening a pipe must not wait for its other end");
    let missing = UringDevice::open(dir.path().join("missing"), reader()).unwrap_err();
    assert_eq!(missing.io_kind(), std::io::ErrorKind::NotFound);
    assert!(missing.to_string().contains("missing"));
}

#[test]
fn read_only_devices_refuse_changes() {
    let dir = tempfile::tempdir().unwrap();
    let path = image(&dir);
    for engine in [Engine::IoUring, Engine::Syscalls] {
        let device = UringDevice::open(&path, reader().engine(engine)).unwrap();
        assert!(device.info().read_only && !device.info().supports_discard);
        for request in
            [Request::write(0, AlignedBuf::new(1)), Request::write_fua(0, AlignedBuf::new(1)), Request::discard(0, 1)]
        {
            assert_eq!(device.execute(request).result.unwrap_err().kind, DeviceErrorKind::ReadOnly);
        }
        device.read(0, 4).unwrap();
        device.flush().unwrap();
    }
}

#[test]
fn direct_where_it_is_refused() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = image(&dir);
    let refused = UringDevice::open(&path, writer().direct(Direct::Required)).unwrap_err();
    assert!(matches!(&refused, OpenError::DirectRefused { reason, .. } if reason.contains("tmpfs")), "{refused}");
    let device = UringDevice::open(&path, writer()).unwrap();
    assert!(!device.is_direct() && device.info().description.contains("buffered: tmpfs"));
    assert!(device.info().description.ends_with(path.to_str().unwrap()));
}
