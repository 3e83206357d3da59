//! Files that nobody has open, and the memory that the locks of their ranges keep.
//!
//! An inode stays in memory when its last handle is closed, and with it the locks of all blocks that were ever touched:
//! a byte a block, and some 57 KiB for a single one at the far end of a sparse file. An image can hold many such files.
//! So those are listed when they are closed, and the first of the list leave memory while all of them take more than
//! [`Options::lock_memory`](crate::Options::lock_memory).
//!
//! ```text
//!            last handle closes                     more than there may be
//!   open ------------------------> listed -----+-------------------------> out of memory, if nobody uses it
//!    ^                                         |
//!    |                                         +-------------------------> not listed, if somebody does
//!    +------------- opened again --------------+
//! ```
//!
//! # Locking
//!
//! One mutex, taken when the last handle of a file closes whose locks have grown since it was listed; nothing is asked
//! for under it. The inode table is told afterwards. A file that is still in use is taken off the list. If it is closed
//! at that very moment, it is listed again when it is closed the next time.

use std::collections::VecDeque;

use f2fs_format::Nid;
use f2fs_sync::{CachePadded, Mutex};

/// Less memory than this, in bytes, is not worth a place on the list: the locks of a file of 4 MiB.
pub(crate) const LITTLE: u64 = if cfg!(loom) { 0 } else { 1024 };

/// The files, the one that was closed first in front.
#[derive(Debug)]
pub(crate) struct Idle {
    limit: u64,
    /// On a line of its own: the memory beside it is read by every operation.
    list: CachePadded<Mutex<List>>,
}

#[derive(Debug, Default)]
struct List {
    /// Files, and the bytes that were counted for each. A file that grew while it was listed is there again, with the
    /// rest.
    entries: VecDeque<(Nid, u64)>,
    bytes: u64,
}

impl Idle {
    /// So many bytes may be kept.
    pub(crate) fn new(limit: u64) -> Idle {
        Idle { limit, list: CachePadded::default() }
    }

    /// Lists a file for so many bytes, and takes off the list what is too much: all but the file itself, whose last
    /// handle is just being closed.
    pub(crate) fn list(&self, ino: Nid, bytes: u64) -> Vec<Nid> {
        let mut list = self.list.lock();
        list.entries.push_back((ino, bytes));
        list.bytes += bytes;
        let mut surplus = Vec::new();
        while list.bytes > self.limit && list.entries.len() > 1 {
            let Some((ino, bytes)) = list.entries.pop_front() else { break };
            list.bytes -= bytes;
            surplus.push(ino);
        }
        surplus
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::samples::formatted;

    #[test]
    fn those_that_were_closed_first_go_while_there_is_too_much() {
        let idle = Idle::new(10);
        assert_eq!(idle.list(Nid(1), 4), []);
        assert_eq!(idle.list(Nid(2), 6), [], "as much as there may be");
        assert_eq!(idle.list(Nid(3), 1), [Nid(1)]);
        assert_eq!(idle.list(Nid(4), 3), [], "what went is not counted any more");
        assert_eq!(idle.list(Nid(2), 9), [Nid(2), Nid(3), Nid(4)]);
    }

    /// Its last handle is just being closed.
    #[test]
    fn a_file_that_is_too_much_by_itself_stays_until_the_next_one_comes() {
        let idle = Idle::new(10);
        assert_eq!(idle.list(Nid(1), 100), []);
        assert_eq!(idle.list(Nid(2), 1), [Nid(1)]);
    }

    /// Those that take little are not listed, however often they are closed.
    #[test]
    fn small_files_are_not_listed() {
        use crate::{FileSystem, Options};

        let device = formatted(32 * 1024);
        let fs = FileSystem::open(device, Options::new()).unwrap();
        let listed = || fs.core.idle.list.lock().entries.len();
        let far = 1 << 40;
        fs.create_file("/f", 0o644).unwrap().set_len(far + 1).unwrap();
        assert_eq!(listed(), 0);
        let read = |offset| fs.open_file("/f").unwrap().read_at(&mut [0], offset).unwrap();
        (0..10).for_each(|_| assert_eq!(read(0), 1));
        assert_eq!(listed(), 0);
        (0..10).for_each(|_| assert_eq!(read(far), 1));
        assert_eq!(listed(), 1, "once for what its locks take");
    }
}
