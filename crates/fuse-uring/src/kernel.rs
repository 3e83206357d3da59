//! The kernel's side of a worker's entries, as the worker sees it. Tests have a kernel of their own.

use std::io;

use crate::abi::Headers;

/// What a completion says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The command of an entry is over, with this result.
    Over {
        /// The entry.
        entry: usize,
        /// 0, or an error number less than 0.
        result: i32,
    },
    /// The server leaves.
    Leave,
}

/// A ring with entries.
pub(crate) trait Kernel {
    /// Gives an entry to the kernel for the first time.
    fn register(&mut self, entry: usize) -> io::Result<()>;

    /// Answers an entry's request and gives it to the kernel again.
    fn commit(&mut self, entry: usize, commit_id: u64) -> io::Result<()>;

    /// Tells the kernel of what was given to it, and sleeps until a command is over.
    fn enter(&mut self) -> io::Result<()>;

    /// The next completion; the entry is ours again.
    fn next_event(&mut self) -> Option<Event>;

    /// The headers of an entry that is ours.
    fn headers(&mut self, entry: usize) -> &mut Headers;

    /// The memory of the payload of an entry that is ours.
    fn payload(&mut self, entry: usize) -> &mut [u8];

    /// How many entries there are.
    fn entries(&self) -> usize;
}
