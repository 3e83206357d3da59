//! The entries of a thread in an `io_uring`.
//!
//! The kernel copies a request into the memory of an entry, and an answer out of it, while the entry is the kernel's: from
//! its command to that command's completion. In between nothing here touches that memory, and it is not freed.

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use io_uring::types::{Fd, Fixed};
use io_uring::{IoUring, cqueue, opcode, squeue};
use rustix::io::Errno;
use zerocopy::FromZeros;

use crate::abi::{COMMIT_AND_FETCH, Command, Headers, REGISTER};
use crate::availability::build;
use crate::kernel::{Event, Kernel};

/// The connection among the files that the ring has registered.
const CONNECTION: Fixed = Fixed(0);
/// The mark of the entry that completes when the server leaves. Entries are less.
const LEAVE: u64 = u64::MAX;
/// The event of a pipe that can be read; that it was closed is told in any case.
const POLLIN: u32 = 1;

/// `struct iovec`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Piece {
    base: usize,
    len: usize,
}

/// The memory of an entry, in one piece that does not move.
struct Memory {
    headers: Headers,
    /// What the kernel reads when the entry is registered.
    pieces: [Piece; 2],
    payload: Box<[u8]>,
}

struct Entry {
    /// `None` once it was leaked.
    memory: Option<Box<Memory>>,
    queue: u16,
    /// The kernel may read and write the memory.
    is_kernels: bool,
}

/// A ring with entries for queues.
pub(crate) struct Ring {
    /// Before the memory, so that it is dropped first.
    ring: IoUring<squeue::Entry128, cqueue::Entry>,
    entries: Vec<Entry>,
}

impl Ring {
    /// A ring with an entry for each of these queues of a connection. When the other end of `stays` is closed, the server
    /// leaves.
    pub(crate) fn new(
        connection: BorrowedFd<'_>,
        stays: BorrowedFd<'_>,
        queues: &[u16],
        payload: usize,
    ) -> io::Result<Ring> {
        let mut ring = build(queues.len() as u32 + 1)?;
        ring.submitter().register_files(&[connection.as_raw_fd()])?;
        let closed = opcode::PollAdd::new(Fd(stays.as_raw_fd()), POLLIN).build().user_data(LEAVE);
        // SAFETY: the entry points to no memory, and the kernel takes the file with it at once, in `submit`.
        unsafe { ring.submission().push(&closed.into()) }.map_err(|_| full())?;
        ring.submit()?;
        let entries = queues.iter().map(|queue| Entry::new(*queue, payload)).collect();
        Ok(Ring { ring, entries })
    }

    /// Gives an entry to the kernel.
    fn push(&mut self, entry: usize, command: &squeue::Entry128) -> io::Result<()> {
        // SAFETY: the file is registered with the ring. What the command points to is in the entry's memory, which is
        // the kernel's from here on: it is neither touched (`memory`) nor freed (`drop`) until its completion was seen.
        unsafe { self.ring.submission().push(command) }.map_err(|_| full())?;
        self.entries[entry].is_kernels = true;
        Ok(())
    }

    fn memory(&mut self, entry: usize) -> &mut Memory {
        let entry = &mut self.entries[entry];
        assert!(!entry.is_kernels, "the memory of an entry is the kernel's");
        entry.memory.as_mut().expect("it is leaked with the ring only")
    }

    fn command(&self, number: u32, entry: usize, commit_id: u64) -> opcode::UringCmd80 {
        opcode::UringCmd80::new(CONNECTION, number).cmd(Command::new(self.entries[entry].queue, commit_id).to_bytes())
    }
}

impl Entry {
    fn new(queue: u16, payload: usize) -> Entry {
        let memory = Memory {
            headers: Headers::new_zeroed(),
            pieces: [Piece { base: 0, len: 0 }; 2],
            // Pages that no payload reaches are never there.
            payload: vec![0; payload].into(),
        };
        Entry { memory: Some(Box::new(memory)), queue, is_kernels: false }
    }
}

impl Kernel for Ring {
    fn register(&mut self, entry: usize) -> io::Result<()> {
        let memory = self.memory(entry);
        let headers = ptr::from_mut(&mut memory.headers).expose_provenance();
        let payload = memory.payload.as_mut_ptr().expose_provenance();
        memory.pieces =
            [Piece { base: headers, len: size_of::<Headers>() }, Piece { base: payload, len: memory.payload.len() }];
        let pieces = memory.pieces.as_ptr().expose_provenance();
        let mut command = self.command(REGISTER, entry, 0).addr(Some(pieces as u64)).build().user_data(entry as u64);
        set_length(&mut command, 2);
        self.push(entry, &command)
    }

    fn commit(&mut self, entry: usize, commit_id: u64) -> io::Result<()> {
        let command = self.command(COMMIT_AND_FETCH, entry, commit_id).build().user_data(entry as u64);
        self.push(entry, &command)
    }

    fn enter(&mut self) -> io::Result<()> {
        let waits = self.ring.completion().is_empty();
        match self.ring.submit_and_wait(waits.into()) {
            Ok(_) => Ok(()),
            // What was not taken is told with the next entry.
            Err(error) if passes(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn next_event(&mut self) -> Option<Event> {
        loop {
            let completion = self.ring.completion().next()?;
            if completion.user_data() == LEAVE {
                return Some(Event::Leave);
            }
            let number = completion.user_data() as usize;
            if let Some(entry) = self.entries.get_mut(number) {
                entry.is_kernels = false;
                return Some(Event::Over { entry: number, result: completion.result() });
            }
        }
    }

    fn headers(&mut self, entry: usize) -> &mut Headers {
        &mut self.memory(entry).headers
    }

    fn payload(&mut self, entry: usize) -> &mut [u8] {
        &mut self.memory(entry).payload
    }

    fn entries(&self) -> usize {
        self.entries.len()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let _ = self.ring.submitter().unregister_files();
        for entry in &mut self.entries {
            // The kernel ends its commands some time after the ring has gone.
            if entry.is_kernels {
                let _ = mem::ManuallyDrop::new(entry.memory.take());
            }
        }
    }
}

/// Says how many pieces a command points to, for which the builder of commands has no method.
fn set_length(command: &mut squeue::Entry128, pieces: u32) {
    /// Where `len` is in `struct io_uring_sqe`.
    const LENGTH: usize = 24;
    const _: () = assert!(size_of::<squeue::Entry128>() == 128);
    let length = ptr::from_mut(command).cast::<u8>().wrapping_add(LENGTH).cast::<u32>();
    // SAFETY: an entry is the kernel's `struct io_uring_sqe` and the 64 bytes behind it, without gaps; these four bytes
    // are a number in it, at a place that four divides.
    unsafe { length.write(pieces) };
}

/// Whether the kernel only asks to come again.
fn passes(error: &io::Error) -> bool {
    let passing = [Errno::INTR, Errno::AGAIN, Errno::BUSY];
    passing.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

fn full() -> io::Error {
    io::Error::other("the submission queue is full")
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Ring").field("entries", &self.entries.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_command_says_how_many_pieces_it_has() {
        let mut command = opcode::UringCmd80::new(CONNECTION, REGISTER).addr(Some(7)).build().user_data(9);
        set_length(&mut command, 2);
        // The kernel's structure as the crate prints it.
        assert_eq!(command.get_user_data(), 9);
        let bytes = ptr::from_ref(&command).cast::<[u8; 128]>();
        // SAFETY: an entry is 128 bytes, all of which were set.
        let bytes = unsafe { *bytes };
        assert_eq!(bytes[16..28], [7, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0]);
    }

    /// A file that is no connection refuses the command; the ring hears of the server's leaving.
    #[test]
    fn a_ring_hears_of_refusals_and_of_the_end() {
        let (stays, stay) = io::pipe().unwrap();
        let mut ring = match Ring::new(stays.as_fd(), stays.as_fd(), &[0, 1], 4096) {
            Ok(ring) => ring,
            Err(error) => {
                eprintln!("NOT RUN: a_ring_hears_of_refusals_and_of_the_end: {error}");
                return;
            }
        };
        ring.register(1).unwrap();
        ring.enter().unwrap();
        match ring.next_event() {
            Some(Event::Over { entry: 1, result }) => assert!(result < 0, "{result}"),
            other => panic!("{other:?}"),
        }
        assert_eq!(ring.next_event(), None);
        ring.payload(1)[0] = 1;
        drop(stay);
        ring.enter().unwrap();
        assert_eq!(ring.next_event(), Some(Event::Leave));
    }
}
