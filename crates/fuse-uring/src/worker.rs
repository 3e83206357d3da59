//! One thread's entries: requests come out of them, answers go into them. Safe code, which knows no ring: tests give it a
//! [`Kernel`] of their own.
//!
//! ```text
//!            REGISTER                        completion 0: a request
//!   ours ──────────────► the kernel's ───────────────────────────────► ours: it is served
//!                              ▲  │                                       │
//!                              │  │ completion -ENOTCONN: unmounted       │
//!                              │  └──────────────────────────► ended      │
//!                              └──────────────────────────────────────────┘
//!                                        COMMIT_AND_FETCH
//! ```
//!
//! The answer of one request and the wait for the next one are one entry into the kernel.
//!
//! Locking rules: none. A worker belongs to the thread that made it, as its ring does.

use std::io;

use rustix::io::Errno;
use zerocopy::{FromBytes, IntoBytes};

use crate::abi::{AnswerHeader, EntryHeader, RequestHeader};
use crate::exchange::Exchange;
use crate::kernel::{Event, Kernel};

/// The greatest error number that the kernel takes for one (`ERESTARTSYS` is the first that is none for programs).
const MOST_ERROR: i32 = 511;

/// The work of one thread.
#[derive(Debug)]
pub(crate) struct Work<K> {
    kernel: K,
    /// Entries that have not ended.
    alive: usize,
    leaves: bool,
    /// The first error of a command.
    fault: Option<i32>,
}

impl<K: Kernel> Work<K> {
    pub(crate) fn new(kernel: K) -> Work<K> {
        let alive = kernel.entries();
        Work { kernel, alive, leaves: false, fault: None }
    }

    /// Gives all entries to the kernel, and serves requests until the connection has ended, or the server leaves.
    pub(crate) fn run(&mut self, mut serve: impl FnMut(&mut Exchange<'_>) -> Result<usize, i32>) -> io::Result<()> {
        for entry in 0..self.alive {
            self.kernel.register(entry)?;
        }
        while self.alive > 0 && !self.leaves {
            self.kernel.enter()?;
            while let Some(event) = self.kernel.next_event() {
                match event {
                    Event::Leave => self.leaves = true,
                    Event::Over { entry, result: 0 } => self.exchange(entry, &mut serve)?,
                    Event::Over { result, .. } => self.end(result),
                }
            }
        }
        match self.fault {
            Some(number) => Err(io::Error::from_raw_os_error(number)),
            None => Ok(()),
        }
    }

    /// An entry is not the kernel's any more.
    fn end(&mut self, result: i32) {
        self.alive -= 1;
        let ends = [Errno::NOTCONN, Errno::CONNABORTED, Errno::CANCELED, Errno::NODEV];
        if !ends.iter().any(|end| -end.raw_os_error() == result) {
            self.fault.get_or_insert(result.checked_neg().unwrap_or(i32::MAX));
        }
    }

    /// Serves the request of an entry.
    fn exchange(
        &mut self,
        entry: usize,
        serve: &mut impl FnMut(&mut Exchange<'_>) -> Result<usize, i32>,
    ) -> io::Result<()> {
        let headers = self.kernel.headers(entry);
        let (argument, around) = (headers.op_in, headers.entry);
        let (header, _) = RequestHeader::read_from_prefix(&headers.in_out).map_err(|_| io::ErrorKind::InvalidData)?;
        let memory = self.kernel.payload(entry);
        let room = memory.len();
        let result = serve(&mut Exchange::new(header, argument, around.payload_sz as usize, memory));
        let (length, error) = match result {
            Ok(length) if length <= room => (length, 0),
            Ok(_) => (0, -Errno::IO.raw_os_error()),
            Err(number @ 1..=MOST_ERROR) => (0, -number),
            Err(_) => (0, -Errno::IO.raw_os_error()),
        };
        let answer = AnswerHeader { len: (size_of::<AnswerHeader>() + length) as u32, error, unique: header.unique };
        let headers = self.kernel.headers(entry);
        headers.in_out[..size_of::<AnswerHeader>()].copy_from_slice(answer.as_bytes());
        headers.entry =
            EntryHeader { flags: 0, commit_id: around.commit_id, payload_sz: length as u32, padding: 0, reserved: 0 };
        self.kernel.commit(entry, around.commit_id)
    }
}

#[cfg(test)]
mod tests;
