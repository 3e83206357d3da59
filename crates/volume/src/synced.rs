//! A sync that waits for its group, and the outcome of it.

use f2fs_sync::{Arc, Mutex};

use crate::flight::joined::Joined;
use crate::node_page::NodePage;

/// Why a checkpoint must be written instead (`need_do_checkpoint` in `fs/f2fs/file.c`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MustCheckpoint {
    /// It is no regular file.
    NotRegular,
    /// It has no name, or, without a journal, several: roll-forward knows of one.
    Links,
    /// Since the last checkpoint nodes were cut off it.
    Changed,
    /// Since the last checkpoint it was renamed, or got another name, or lost one.
    Renamed,
    /// Its directory is newer than the last checkpoint, and than the last record of names.
    NewParent,
    /// Roll-forward might run out of blocks, or has very much to do.
    Room,
    /// There was no checkpoint since the volume was opened. A crash before may have left nodes of this version further
    /// on in the log, parts of a chain that was torn: a new chain would lead there.
    Opened,
    /// The journal is full, or failed.
    Journal,
    /// Very many names changed since the last checkpoint: a record of them would be too large.
    Names,
}

impl MustCheckpoint {
    /// Whether names are the reason, so that with a journal a record of names
    /// ([`Syncs::names`](crate::Syncs::names)) does as well.
    #[must_use]
    pub fn is_of_names(self) -> bool {
        matches!(self, Self::NotRegular | Self::Links | Self::Renamed | Self::NewParent)
    }
}

/// The outcome of a sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Synced {
    /// The file is durable.
    Logged,
    /// Nothing was promised: a checkpoint makes the file durable.
    Must(MustCheckpoint),
}

/// A sync that waits for its group.
#[derive(Debug)]
pub(crate) struct SyncRequest {
    pub(crate) inode: Arc<NodePage>,
    /// The write that it brings along.
    pub(crate) flight: Option<Arc<Mutex<Joined>>>,
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::MustCheckpoint::*;

    #[test]
    fn a_record_of_names_does_where_names_are_the_reason() {
        assert!([NotRegular, Links, Renamed, NewParent].iter().all(|reason| reason.is_of_names()));
        assert!(![Changed, Room, Opened, Journal, Names].iter().any(|reason| reason.is_of_names()));
    }
}
