//! Setting up a ring, and entering the kernel.

use std::{io, thread, time::Duration};

use io_uring::{IoUring, Probe, cqueue, squeue};
use rustix::io::Errno;

use crate::Polling;
use crate::carrier::{Carrier, Ring};

/// Entries of the submission queue of a ring that threads share; the completion queue has twice as many.
pub(crate) const SHARED_ENTRIES: u32 = 128;

/// How long to wait before asking again when the kernel is out of memory.
const PAUSE: Duration = Duration::from_micros(200);

/// The users of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Users {
    /// Any thread, one after the other and several at once.
    Many,
    /// Only the thread that makes it.
    ThisThread,
}

/// A ring with the files of `carrier` registered.
pub(crate) fn new<C: Carrier>(carrier: &C, entries: u32, users: Users, polling: Polling) -> io::Result<Ring<C>> {
    let ring = build::<C>(entries, users, polling)?;
    let submitter = ring.submitter();
    let mut probe = Probe::new();
    submitter.register_probe(&mut probe)?;
    if let Some(missing) = C::OPERATIONS.iter().find(|&&operation| !probe.is_supported(operation)) {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            format!("the kernel lacks io_uring operation {missing}"),
        ));
    }
    submitter.register_files(&carrier.files())?;
    Ok(ring)
}

/// From the most convenient set-up to the one that every kernel knows.
fn build<C: Carrier>(entries: u32, users: Users, polling: Polling) -> io::Result<Ring<C>> {
    let builder = || {
        let mut builder = IoUring::<C::Entry, C::Answer>::builder();
        builder.dontfork();
        if polling.completions {
            builder.setup_iopoll();
        }
        if let Some(idle) = polling.submissions {
            builder.setup_sqpoll(u32::try_from(idle.as_millis()).unwrap_or(u32::MAX).max(1));
        }
        builder
    };
    // A ring of one thread needs no interrupt to run completions, because that thread is the one that waits for them
    // (SINGLE_ISSUER, DEFER_TASKRUN: Linux 6.1). A ring of many needs it: the thread that submitted may be busy
    // elsewhere while another one waits. With a thread of the kernel that submits there is no work to defer.
    for one_thread in [true, false] {
        if one_thread && (users == Users::Many || polling.submissions.is_some()) {
            continue;
        }
        let mut builder = builder();
        builder.setup_submit_all();
        if one_thread {
            builder.setup_single_issuer().setup_defer_taskrun();
        }
        match builder.build(entries) {
            Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => {}
            other => return other,
        }
    }
    builder().build(entries)
}

/// Has the kernel take the entries of the submission queue: at least `pushed` entries that the caller knows of, by
/// whomever.
pub(crate) fn submit<S: squeue::EntryMarker, A: cqueue::EntryMarker>(ring: &IoUring<S, A>, pushed: usize) {
    let mut taken = 0;
    while taken < pushed {
        match ring.submit() {
            Ok(0) => return, // another thread's call took them
            Ok(count) => taken += count,
            Err(error) => pause_after(&error),
        }
    }
}

/// Wakes the thread of the kernel that takes the entries of the submission queue, if it sleeps.
pub(crate) fn wake<S: squeue::EntryMarker, A: cqueue::EntryMarker>(ring: &IoUring<S, A>) {
    while let Err(error) = ring.submit() {
        pause_after(&error);
    }
}

/// Has the kernel take the entries of the submission queue, and sleeps until the completion queue is not empty. It may
/// wake for no reason.
pub(crate) fn submit_and_sleep<S: squeue::EntryMarker, A: cqueue::EntryMarker>(ring: &IoUring<S, A>) {
    if let Err(error) = ring.submit_and_wait(1) {
        pause_after(&error);
    }
}

/// Has the kernel move finished requests to the completion queue, which a ring of one thread does only when asked.
pub(crate) fn run_completions<S: squeue::EntryMarker, A: cqueue::EntryMarker>(ring: &IoUring<S, A>) {
    const GETEVENTS: u32 = 1;
    // SAFETY: without an argument, entering takes no pointers; the flag is `IORING_ENTER_GETEVENTS`.
    let _ = unsafe { ring.submitter().enter::<()>(0, 0, GETEVENTS, None) };
}

/// The kernel says EINTR for a signal, and EAGAIN or EBUSY when it is short of memory: then the entries are still in
/// the queue, and later is a better time. Nothing else is expected; requests in flight could not be given up for it
/// anyhow, because the kernel may still write to their memory.
fn pause_after(error: &io::Error) {
    if error.kind() != io::ErrorKind::Interrupted {
        thread::sleep(PAUSE);
    }
}

/// Lets go of the registered file at once, which closing the ring does only some time later. Tells whether that went
/// well; a ring that does not let go still does so when it is closed.
pub(crate) fn release_file<S: squeue::EntryMarker, A: cqueue::EntryMarker>(ring: &IoUring<S, A>) -> bool {
    ring.submitter().unregister_files().is_ok()
}
