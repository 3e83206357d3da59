//! Setting up a ring, and entering the kernel.

use std::{io, os::fd::AsRawFd, thread, time::Duration};

use io_uring::{IoUring, Probe, opcode};
use rustix::io::Errno;

use crate::target::Target;

/// Entries of the submission queue of a ring that threads share; the completion queue has twice as many.
pub(crate) const SHARED_ENTRIES: u32 = 128;

/// How long to wait before asking again when the kernel is out of memory.
const PAUSE: Duration = Duration::from_micros(200);

/// The operations that this crate uses.
const OPERATIONS: [u8; 7] = [
    opcode::Read::CODE,
    opcode::Write::CODE,
    opcode::Readv::CODE,
    opcode::Writev::CODE,
    opcode::ReadFixed::CODE,
    opcode::WriteFixed::CODE,
    opcode::Fallocate::CODE,
];

/// The users of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Users {
    /// Any thread, one after the other and several at once.
    Many,
    /// Only the thread that makes it.
    ThisThread,
}

/// A ring with `target` as its registered file 0.
pub(crate) fn new(target: &Target, entries: u32, users: Users) -> io::Result<IoUring> {
    let ring = build(entries, users)?;
    let submitter = ring.submitter();
    let mut probe = Probe::new();
    submitter.register_probe(&mut probe)?;
    if let Some(missing) = OPERATIONS.into_iter().find(|&operation| !probe.is_supported(operation)) {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            format!("the kernel lacks io_uring operation {missing}"),
        ));
    }
    submitter.register_files(&[target.fd().as_raw_fd()])?;
    Ok(ring)
}

/// From the most convenient set-up to what every kernel knows.
fn build(entries: u32, users: Users) -> io::Result<IoUring> {
    // A ring of one thread needs no interrupt to run completions, because that thread is the one that waits for them
    // (SINGLE_ISSUER, DEFER_TASKRUN: Linux 6.1). A ring of many needs it: the thread that submitted may be busy elsewhere
    // while another one waits.
    for one_thread in [true, false] {
        if one_thread && users == Users::Many {
            continue;
        }
        let mut builder = IoUring::builder();
        builder.dontfork().setup_submit_all();
        if one_thread {
            builder.setup_single_issuer().setup_defer_taskrun();
        }
        match builder.build(entries) {
            Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => {}
            other => return other,
        }
    }
    IoUring::builder().dontfork().build(entries)
}

/// Has the kernel take what is in the submission queue: at least `pushed` entries that the caller knows of, by whomever.
pub(crate) fn submit(ring: &IoUring, pushed: usize) {
    let mut taken = 0;
    while taken < pushed {
        match ring.submit() {
            Ok(0) => return, // another thread's call took them
            Ok(count) => taken += count,
            Err(error) => pause_after(&error),
        }
    }
}

/// Has the kernel take what is in the submission queue, and sleeps until the completion queue is not empty, or wakes for no
/// reason.
pub(crate) fn submit_and_sleep(ring: &IoUring) {
    if let Err(error) = ring.submit_and_wait(1) {
        pause_after(&error);
    }
}

/// Has the kernel move finished requests to the completion queue, which a ring of one thread does only when asked.
pub(crate) fn run_completions(ring: &IoUring) {
    const GETEVENTS: u32 = 1;
    // SAFETY: without an argument, entering takes no pointers; the flag is `IORING_ENTER_GETEVENTS`.
    let _ = unsafe { ring.submitter().enter::<()>(0, 0, GETEVENTS, None) };
}

/// The kernel says EINTR for a signal, and EAGAIN or EBUSY when it is short of memory: then the entries are still in the queue,
/// and later is a better time. Nothing else is expected; requests in flight could not be given up for it anyhow, because the
/// kernel may still write to their memory.
fn pause_after(error: &io::Error) {
    if error.kind() != io::ErrorKind::Interrupted {
        thread::sleep(PAUSE);
    }
}

/// Lets go of the registered file at once, which closing the ring does only some time later. Tells whether that went well; a
/// ring that does not let go still does so when it is closed.
pub(crate) fn release_file(ring: &IoUring) -> bool {
    ring.submitter().unregister_files().is_ok()
}
