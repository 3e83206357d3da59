//! A sandbox that forbids to enter rings: before a device is opened, and while requests are on their way.
//!
//! A filter of system calls is its thread's, so each test runs on a thread of its own.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::ffi::c_ulong;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use f2fs_device::{AlignedBuf, BlockDevice, DeviceErrorKind, Request};
use f2fs_uring::{Engine, OpenError, OpenOptions, UringDevice};

const BLOCKS: u64 = 4096;

/// `struct sock_filter`.
#[repr(C)]
struct Instruction {
    code: u16,
    if_true: u8,
    if_false: u8,
    value: u32,
}

/// `struct sock_fprog`.
#[repr(C)]
struct Program {
    length: u16,
    instructions: *const Instruction,
}

unsafe extern "C" {
    /// Of the C library, which the standard library links.
    fn prctl(option: i32, ...) -> i32;
}

/// From now on this thread, and those that it starts, get EPERM for `io_uring_enter`.
fn forbid_to_enter() {
    const NO_NEW_PRIVS: i32 = 38;
    const SECCOMP: i32 = 22;
    const FILTER: c_ulong = 2;
    const IO_URING_ENTER: u32 = 426;
    let instruction = |code, if_true, if_false, value| Instruction { code, if_true, if_false, value };
    let instructions = [
        instruction(0x20, 0, 0, 0),              // load the number
        instruction(0x15, 0, 1, IO_URING_ENTER), // go on if it is this
        instruction(0x06, 0, 0, 0x0005_0001),    // answer EPERM
        instruction(0x06, 0, 0, 0x7fff_0000),    // allow
    ];
    let program = Program { length: 4, instructions: instructions.as_ptr() };
    let (one, none): (c_ulong, c_ulong) = (1, 0);
    // SAFETY: the option takes these numbers, and no pointer.
    let no_new_rights = unsafe { prctl(NO_NEW_PRIVS, one, none, none, none) };
    assert_eq!(no_new_rights, 0, "{}", io::Error::last_os_error());
    // SAFETY: the option takes a `struct sock_fprog`, as which `Program` is laid out; it and its instructions live until
    // after the call, which copies them.
    let filtered = unsafe { prctl(SECCOMP, FILTER, &raw const program, none, none) };
    assert_eq!(filtered, 0, "{}", io::Error::last_os_error());
}

/// Runs a test, on a thread of its own, with the path of an image of [`BLOCKS`] blocks.
fn in_a_sandbox(test: fn(&Path)) {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = dir.path().join("image");
    std::fs::File::create(&path).unwrap().set_len(BLOCKS * 4096).unwrap();
    thread::scope(|scope| scope.spawn(|| test(&path)).join().unwrap());
}

fn open(path: &Path) -> Option<Arc<UringDevice>> {
    match UringDevice::open(path, OpenOptions::new().engine(Engine::IoUring)) {
        Err(OpenError::NoIoUring { reason, .. }) => {
            eprintln!("NOT RUN: io_uring is not available: {reason}");
            None
        }
        device => Some(device.unwrap()),
    }
}

fn content(block: u64, round: u8) -> AlignedBuf {
    AlignedBuf::from_bytes(&[block as u8, (block >> 8) as u8, round])
}

fn writes(round: u8) -> Vec<Request> {
    (0..1000).map(|block| Request::write(block, content(block, round))).collect()
}

#[test]
fn before_the_open() {
    in_a_sandbox(|path| {
        forbid_to_enter();
        let refused = UringDevice::open(path, OpenOptions::new().engine(Engine::IoUring)).unwrap_err();
        let said = "io_uring_enter: Operation not permitted";
        assert!(matches!(&refused, OpenError::NoIoUring { reason, .. } if reason.contains(said)), "{refused}");
        let device = UringDevice::open(path, OpenOptions::new()).unwrap();
        assert!(!device.uses_io_uring());
        let description = &device.info().description;
        assert!(description.contains("preadv/pwritev (io_uring_enter: "), "{description}");
        work(&device, 1);
    });
}

/// Batches and queues go well, and what they wrote is there.
fn work(device: &UringDevice, round: u8) {
    for done in device.submit(writes(round)).wait() {
        done.result.unwrap();
    }
    device.flush().unwrap();
    let mut queue = device.queue(32);
    let bufs = queue.buffers(4, 1);
    let mut reads = 0;
    for (block, buf) in (0..1000).zip(bufs.into_iter().map(Some).chain(std::iter::repeat_with(|| None))) {
        queue.push(Request::read(block, buf.unwrap_or_else(|| AlignedBuf::new(1))));
    }
    while let Some(done) = queue.next_completion() {
        let block = done.request.start;
        assert_eq!(done.into_buf().unwrap().as_bytes(), content(block, round).as_bytes());
        reads += 1;
    }
    assert_eq!(reads, 1000);
}

#[test]
fn after_the_open() {
    in_a_sandbox(|path| {
        let Some(device) = open(path) else { return };
        work(&device, 1);
        forbid_to_enter();
        (2..5).for_each(|round| work(&device, round));
        thread::scope(|scope| scope.spawn(|| work(&device, 5)).join().unwrap());
        drop(device);
        work(&UringDevice::open(path, OpenOptions::new()).unwrap(), 6);
    });
}

#[test]
fn while_requests_are_on_their_way() {
    in_a_sandbox(|path| {
        let Some(device) = open(path) else { return };
        let on_their_way = device.submit(writes(1));
        let dropped = device.submit((1000..1100).map(|block| Request::write(block, content(block, 1))).collect());
        let mut queue = device.queue(64);
        (2000..2064).for_each(|block| queue.push(Request::write(block, content(block, 1))));
        let mut reader = device.queue(64);
        (0..64).for_each(|block| reader.push(Request::read(3000 + block, AlignedBuf::new(1))));
        queue.submit();
        reader.submit();
        forbid_to_enter();
        drop(dropped);
        // The kernel has them all, and completions of batches come by themselves.
        assert!(on_their_way.wait().into_iter().all(|done| done.result.is_ok()));
        // Those of queues do not.
        let mut done = 0;
        while let Some(completion) = queue.next_completion() {
            let kind = completion.result.err().map(|error| error.kind);
            assert!(matches!(kind, None | Some(DeviceErrorKind::Unanswered { errno: 1 })), "{kind:?}");
            done += 1;
        }
        assert_eq!(done, 64);
        while let Some(completion) = reader.next_completion() {
            assert_eq!(completion.into_buf().unwrap().as_bytes(), [0; 4096]);
            done += 1;
        }
        assert_eq!(done, 128);
        drop((queue, reader));
        work(&device, 2);
    });
}
