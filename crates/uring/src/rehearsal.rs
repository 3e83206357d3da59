//! A kernel that refuses a thread to enter rings, and a device that answers when it is told to, for tests.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::thread::LocalKey;

use f2fs_device::{BLOCK_SIZE, DeviceError, DeviceErrorKind, Op, Request};
use f2fs_sync::{Arc, Mutex};
use io_uring::{cqueue, opcode, squeue, types};

use rustix::event::PollFlags;

use crate::carrier::Carrier;
use crate::flight::{Flight, Memory};
use crate::progress::Landing;
use crate::spare::Kept;

thread_local! {
    /// How often the thread may still enter, and what it is told then.
    static REFUSAL: Cell<Option<(u32, i32)>> = const { Cell::new(None) };
    static SPARE: Kept<squeue::Entry, cqueue::Entry> = const { Cell::new(None) };
}

/// The thread may enter rings so many times more, and is then told this error number.
pub(crate) fn refuse_after(times: u32, errno: i32) {
    REFUSAL.set(Some((times, errno)));
}

/// What the kernel says before a thread enters.
pub(crate) fn may_enter() -> io::Result<()> {
    match REFUSAL.get() {
        Some((0, errno)) => return Err(io::Error::from_raw_os_error(errno)),
        Some((times, errno)) => REFUSAL.set(Some((times - 1, errno))),
        None => {}
    }
    Ok(())
}

/// A device whose ring reads from a pipe, so that a request that the kernel has taken is not over before the other end
/// is written to. By system calls it is over at once. A write waits until there is something to read.
#[derive(Debug)]
pub(crate) struct Pipe {
    from: OwnedFd,
    to: File,
    /// The first blocks of the requests that went by system calls, in their order.
    pub(crate) calls: Mutex<Vec<u64>>,
    /// Those that failed.
    pub(crate) failures: Mutex<Vec<(u64, DeviceErrorKind)>>,
}

impl Pipe {
    pub(crate) fn new() -> Arc<Pipe> {
        let (from, to) = rustix::pipe::pipe().unwrap();
        Arc::new(Pipe { from, to: to.into(), calls: Mutex::default(), failures: Mutex::default() })
    }

    /// Lets so many requests of one block be over.
    pub(crate) fn answer(&self, requests: usize) {
        (0..requests).for_each(|_| (&self.to).write_all(&[5; BLOCK_SIZE]).unwrap());
    }

    /// The first blocks of the requests that went by system calls, in the order of their numbers.
    pub(crate) fn called(&self) -> Vec<u64> {
        let mut calls = self.calls.lock().clone();
        calls.sort_unstable();
        calls
    }
}

impl Carrier for Pipe {
    type Entry = squeue::Entry;
    type Answer = cqueue::Entry;
    const OPERATIONS: &'static [u8] = &[opcode::Read::CODE];

    fn files(&self) -> Vec<RawFd> {
        vec![self.from.as_raw_fd()]
    }

    fn admit(&self, _request: &Request) -> Result<(), DeviceError> {
        Ok(())
    }

    fn needs_call(&self, _op: Op) -> bool {
        false
    }

    fn run(&self, request: &mut Request) -> Result<(), DeviceError> {
        self.calls.lock().push(request.start);
        Ok(())
    }

    fn failed(&self, request: &Request, kind: DeviceErrorKind) -> DeviceError {
        self.failures.lock().push((request.start, kind.clone()));
        request.error(kind)
    }

    fn entry(&self, flight: &mut Flight) -> squeue::Entry {
        if flight.request().op != Op::Read {
            return opcode::PollAdd::new(types::Fixed(0), PollFlags::IN.bits() as u32).build();
        }
        let Memory::One { base, len, .. } = flight.memory(BLOCK_SIZE) else { unreachable!("one buffer each") };
        opcode::Read::new(types::Fixed(0), base, len as u32).offset(u64::MAX).build()
    }

    fn land(&self, flight: &mut Flight, result: i32) -> Landing {
        let all = flight.expected() as usize;
        flight.land(if result < 0 { Err(-result) } else { Ok(all) })
    }

    fn spare() -> &'static LocalKey<Kept<squeue::Entry, cqueue::Entry>> {
        &SPARE
    }
}
