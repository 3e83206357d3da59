//! FUSE over `io_uring`: the requests of a mounted file system through rings of Linux (6.14 and later), instead of reads and
//! writes of `/dev/fuse`.
//!
//! | Item | What it is |
//! |---|---|
//! | [`available`] | whether this machine has it, and what is missing if not |
//! | [`Queues`] | the queues of a connection: one for each processor that the machine may have |
//! | [`Worker`] | a thread's entries in some of these queues: it serves requests |
//! | [`Exchange`] | a request, with the memory for its answer |
//! | [`stay_on`] | has a thread run on the processor of its queue |
//!
//! The crate carries requests, and knows of no operation. Who uses it negotiates with the kernel on `/dev/fuse` first
//! (`FUSE_INIT` with `FUSE_OVER_IO_URING`), and goes on to read it: *forget*, *interrupt* and what the server tells without
//! having been asked stay there.
//!
//! # Protocol
//!
//! The kernel has a queue for each possible processor, and puts a request into that of the processor where the asking
//! program runs. A queue has *entries*: memory of the server in which the kernel leaves a request, and from which it takes
//! the answer.
//!
//! ```text
//!   worker                                                kernel
//!   REGISTER(queue, headers, payload) ------------------>  the entry waits for a request
//!            <--------------- memory written; completion of the command: a request has come
//!   ... it is served ...
//!   COMMIT_AND_FETCH(queue, commit_id) ----------------->  the request is over, the entry waits for the next one
//!            <--------------- ... or completion -ENOTCONN: the file system was unmounted
//! ```
//!
//! When all queues have an entry, the kernel uses the rings; from the negotiation to this moment it holds back what programs
//! ask for. So the queues of processors that do not run need entries as well; one worker can have them all.
//!
//! An entry carries one request at a time, and the kernel takes the one that was given back last. A worker does one request
//! after the other. So a worker for requests that take long should have one entry: those of an entry whose worker is busy
//! wait, though others may be idle.
//!
//! # Locking model
//!
//! None: workers share the connection and nothing else.
//!
//! # Unsafe code
//!
//! This crate is an unsafe leaf: pushing commands that point into memory, and one number of a command (both in `ring.rs`).
//! They rest on one rule: the memory of an entry is not touched while the entry is the kernel's, and is leaked rather than
//! freed if the end of its command was not seen.

mod abi;
mod availability;
mod exchange;
mod kernel;
mod processors;
mod ring;
mod worker;

use std::io;
use std::os::fd::BorrowedFd;

pub use abi::RequestHeader;
pub use availability::{Unavailable, available};
pub use exchange::Exchange;
pub use processors::{Queues, stay_on};

use ring::Ring;
use worker::Work;

/// A thread's entries in some queues of a connection. It stays on the thread that made it.
///
/// ```no_run
/// # fn main() -> std::io::Result<()> {
/// # let connection = std::fs::File::open("/dev/fuse")?; // and mounted, and negotiated
/// use f2fs_fuse_uring::Worker;
/// use std::os::fd::AsFd;
///
/// let (stays, stay) = std::io::pipe()?;
/// let worker = Worker::new(connection.as_fd(), stays.as_fd(), &[0], 1 << 20)?;
/// const ENOSYS: i32 = 38;
/// worker.serve(|_request| Err(ENOSYS))?; // until it is unmounted, or `stay` is dropped
/// # drop(stay);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Worker(Work<Ring>);

impl Worker {
    /// Makes an entry for each of these queues, with so many bytes for the payload: as many as a write may have, at least.
    /// When the other end of `stays` is closed, it ends.
    ///
    /// # Errors
    /// Those of `io_uring`.
    pub fn new(
        connection: BorrowedFd<'_>,
        stays: BorrowedFd<'_>,
        queues: &[u16],
        payload: usize,
    ) -> io::Result<Worker> {
        Ok(Worker(Work::new(Ring::new(connection, stays, queues, payload)?)))
    }

    /// Gives the kernel the entries, and serves requests until the file system was unmounted or the server leaves. `serve`
    /// says how many bytes of the [room](Exchange::room) are the answer, or the number of an error (`errno`).
    ///
    /// # Errors
    /// Those of `io_uring`, and what the kernel says of an entry that it does not take.
    pub fn serve(mut self, serve: impl FnMut(&mut Exchange<'_>) -> Result<usize, i32>) -> io::Result<()> {
        self.0.run(serve)
    }
}

/// The example of this crate's README, so that it is compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
