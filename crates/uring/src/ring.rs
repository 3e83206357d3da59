//! Setting up a ring, and entering the kernel.
//!
//! Entering may be refused: by a filter of system calls that the process puts on after it opened the device, or because
//! somebody closed the ring's descriptor. The ring is never entered again then ([`Refused`]); what becomes of its
//! requests is the table's business.

use std::{io, thread, time::Duration};

use io_uring::{IoUring, Probe, cqueue, squeue};
use rustix::io::Errno;

use crate::Polling;
use crate::carrier::{Carrier, Ring};

/// Entries of the submission queue of a ring that threads share; the completion queue has twice as many.
pub(crate) const SHARED_ENTRIES: u32 = 128;

/// How long to wait before asking again when the kernel is out of memory, or when a ring that cannot be entered is
/// looked at for completions.
pub(crate) const PAUSE: Duration = Duration::from_micros(200);

/// How long the completions of a refused ring are waited for that come by themselves: longer than a device takes that
/// is not broken.
const PATIENCE: Duration = if cfg!(test) { Duration::from_millis(300) } else { Duration::from_secs(10) };
/// And how long the device gets to be done with the requests where completions do not come by themselves.
const GRACE: Duration = if cfg!(test) { Duration::from_millis(100) } else { Duration::from_secs(1) };

/// The kernel lets nobody enter the ring any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    /// What it says instead.
    pub(crate) errno: i32,
}

/// The users of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Users {
    /// Any thread, one after the other and several at once.
    Many,
    /// Only the thread that makes it.
    ThisThread,
}

/// A ring with the files of `carrier` registered, which can be entered; or the reason why there is none.
pub(crate) fn new<C: Carrier>(carrier: &C, entries: u32, users: Users, polling: Polling) -> Result<Ring<C>, String> {
    let failed = |call: &'static str| move |error: io::Error| format!("{call}: {error}");
    let ring = build::<C>(entries, users, polling).map_err(failed("io_uring_setup"))?;
    let submitter = ring.submitter();
    let mut probe = Probe::new();
    submitter.register_probe(&mut probe).map_err(failed("io_uring_register"))?;
    if let Some(missing) = C::OPERATIONS.iter().find(|&&operation| !probe.is_supported(operation)) {
        return Err(format!("the kernel lacks io_uring operation {missing}"));
    }
    submitter.register_files(&carrier.files()).map_err(failed("io_uring_register"))?;
    // To set up and to register may be allowed where to enter is not.
    let forbidden = enter(&ring, 0).err().map(|Refused { errno }| io::Error::from_raw_os_error(errno));
    forbidden.map_or(Ok(ring), |error| Err(failed("io_uring_enter")(error)))
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
pub(crate) fn submit<S: squeue::EntryMarker, A: cqueue::EntryMarker>(
    ring: &IoUring<S, A>,
    pushed: usize,
) -> Result<(), Refused> {
    let mut taken = 0;
    while taken < pushed {
        match submit_and_wait(ring, 0) {
            Ok(0) => break, // another thread's call took them
            Ok(count) => taken += count,
            Err(error) => pause_after(&error)?,
        }
    }
    Ok(())
}

/// Wakes the thread of the kernel that takes the entries of the submission queue, if it sleeps.
pub(crate) fn wake<S: squeue::EntryMarker, A: cqueue::EntryMarker>(ring: &IoUring<S, A>) -> Result<(), Refused> {
    while let Err(error) = submit_and_wait(ring, 0) {
        pause_after(&error)?;
    }
    Ok(())
}

/// Has the kernel take the entries of the submission queue, and sleeps until the completion queue is not empty. It may
/// wake for no reason.
pub(crate) fn submit_and_sleep<S: squeue::EntryMarker, A: cqueue::EntryMarker>(
    ring: &IoUring<S, A>,
) -> Result<(), Refused> {
    submit_and_wait(ring, 1).map_or_else(|error| pause_after(&error), |_| Ok(()))
}

/// Has the kernel move finished requests to the completion queue, which a ring of one thread does only when asked.
pub(crate) fn run_completions<S: squeue::EntryMarker, A: cqueue::EntryMarker>(
    ring: &IoUring<S, A>,
) -> Result<(), Refused> {
    const GETEVENTS: u32 = 1;
    enter(ring, GETEVENTS)
}

fn submit_and_wait<S: squeue::EntryMarker, A: cqueue::EntryMarker>(
    ring: &IoUring<S, A>,
    completions: usize,
) -> io::Result<usize> {
    #[cfg(test)]
    crate::rehearsal::may_enter()?;
    ring.submit_and_wait(completions)
}

/// Enters without entries to take. An error that passes is none.
fn enter<S: squeue::EntryMarker, A: cqueue::EntryMarker>(ring: &IoUring<S, A>, flags: u32) -> Result<(), Refused> {
    #[cfg(test)]
    crate::rehearsal::may_enter().or_else(|error| passes(&error))?;
    // SAFETY: without an argument, entering takes no pointers; the flag, if any, is `IORING_ENTER_GETEVENTS`.
    let entered = unsafe { ring.submitter().enter::<()>(0, 0, flags, None) };
    entered.map_or_else(|error| passes(&error), |_| Ok(()))
}

/// The kernel says EINTR for a signal, and EAGAIN, EBUSY or ENOMEM when it is short of memory: then the entries are
/// still in the queue, and later is a better time. Anything else is said again and again.
fn passes(error: &io::Error) -> Result<(), Refused> {
    const PASSING: [Errno; 4] = [Errno::INTR, Errno::AGAIN, Errno::BUSY, Errno::NOMEM];
    let errno = error.raw_os_error().unwrap_or(Errno::IO.raw_os_error());
    if PASSING.iter().any(|passing| passing.raw_os_error() == errno) { Ok(()) } else { Err(Refused { errno }) }
}

#[cold]
fn pause_after(error: &io::Error) -> Result<(), Refused> {
    passes(error)?;
    if error.kind() != io::ErrorKind::Interrupted {
        thread::sleep(PAUSE);
    }
    Ok(())
}

/// How long the completions of a refused ring are waited for. They do not come by themselves where the thread that
/// waits is to run them or to look for them.
pub(crate) fn patience<S: squeue::EntryMarker, A: cqueue::EntryMarker>(ring: &IoUring<S, A>) -> Duration {
    let params = ring.params();
    if params.is_setup_single_issuer() || params.is_setup_iopoll() { GRACE } else { PATIENCE }
}

/// Lets go of the registered file at once, which closing the ring does only some time later. Tells whether that went
/// well; a ring that does not let go still does so when it is closed.
pub(crate) fn release_file<S: squeue::EntryMarker, A: cqueue::EntryMarker>(ring: &IoUring<S, A>) -> bool {
    ring.submitter().unregister_files().is_ok()
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::rehearsal::{Pipe, refuse_after};

    #[test]
    fn a_ring_that_cannot_be_entered_is_none() {
        for (users, submissions) in
            [(Users::Many, None), (Users::ThisThread, None), (Users::ThisThread, Some(Duration::from_secs(1)))]
        {
            let polling = Polling { submissions, ..Polling::default() };
            refuse_after(0, Errno::PERM.raw_os_error());
            let reason = new(&*Pipe::new(), 4, users, polling).err();
            assert_eq!(reason.as_deref(), Some("io_uring_enter: Operation not permitted (os error 1)"));
            refuse_after(0, Errno::INTR.raw_os_error());
            assert!(new(&*Pipe::new(), 4, users, polling).is_ok(), "that passes");
        }
    }

    #[test]
    fn some_errors_pass() {
        for errno in [Errno::INTR, Errno::AGAIN, Errno::BUSY, Errno::NOMEM] {
            assert_eq!(passes(&errno.into()), Ok(()));
        }
        for errno in [Errno::PERM, Errno::BADF, Errno::OPNOTSUPP, Errno::NOSYS, Errno::ACCESS, Errno::BADR] {
            assert_eq!(passes(&errno.into()), Err(Refused { errno: errno.raw_os_error() }));
        }
    }
}
