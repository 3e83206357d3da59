//! Files that are not brought back of a journal, since they are damaged, so that all others are.
//!
//! ```text
//!   volume and journal are opened ─> all but those that are passed over ─> none failed ─> checkpoint
//!            ^                                    └ some failed: pass over them, too ┐
//!            └──────────── nothing was written; all of it is dropped <──────────────┘
//! ```
//!
//! A file that fails half way has changed things in memory by then: names, the links of other files, blocks that went
//! from one to another. So all begins anew without it, and the volume is never half of something.

use std::collections::{BTreeMap, BTreeSet};

use f2fs_format::Nid;
use f2fs_volume::{BoundName, VolumeError};

use crate::FsError;

/// A file whose synced state is not brought back. It is as it was at the checkpoint, or, if that did not have it, is
/// not there.
#[derive(Debug)]
#[non_exhaustive]
pub struct PassedOver {
    /// Its inode.
    pub ino: Nid,
    /// What is wrong with it.
    pub reason: FsError,
}

/// The files that are passed over.
#[derive(Debug, Default)]
pub(crate) struct Passed {
    allowed: bool,
    /// Whether the files come from a journal, whose errors name them.
    of_journal: bool,
    files: BTreeMap<Nid, FsError>,
    /// Some came since all began.
    more: bool,
}

impl Passed {
    /// None so far. `allowed`: whether any may be.
    pub(crate) fn new(of_journal: bool, allowed: bool) -> Passed {
        Passed { allowed, of_journal, ..Passed::default() }
    }

    /// Whether any may be.
    pub(crate) fn is_allowed(&self) -> bool {
        self.allowed
    }

    /// Begins once more, without the files that failed.
    pub(crate) fn begin(&mut self) {
        self.more = false;
    }

    /// Whether a file failed since, so that all begins once more.
    pub(crate) fn begins_anew(&self) -> bool {
        self.more
    }

    /// Whether a file is passed over.
    pub(crate) fn has(&self, ino: Nid) -> bool {
        self.files.contains_key(&ino)
    }

    /// Passes over a file that failed.
    ///
    /// # Errors
    /// Its error, if that may not be, or would be no help: the device failed, the volume has stopped, or there is no room.
    pub(crate) fn over(&mut self, ino: Nid, error: FsError) -> Result<(), FsError> {
        let has_stopped = matches!(error, FsError::Volume(VolumeError::Stopped { .. }));
        let is_its_own = error.device().is_none() && !error.is_no_space() && !has_stopped;
        if !is_its_own || !self.of_journal {
            return Err(error);
        }
        if !self.allowed {
            return Err(FsError::SyncedFile { ino, reason: Box::new(error) });
        }
        if !self.has(ino) {
            self.more = true;
            self.files.insert(ino, error);
        }
        Ok(())
    }

    /// Whether a synced name stands in a directory that is passed over, or leads to what is.
    pub(super) fn concerns(&self, name: &BoundName) -> bool {
        self.has(name.directory) || name.ino.is_some_and(|ino| self.has(ino))
    }

    /// The inodes that keep the names which they lost: those that are passed over, and those whose new names are, since
    /// they stand in such a directory.
    pub(super) fn staying(&self, names: &[BoundName]) -> BTreeSet<Nid> {
        let moved = names.iter().filter(|name| self.has(name.directory)).filter_map(|name| name.ino);
        self.files.keys().copied().chain(moved).collect()
    }

    /// All of them.
    pub(crate) fn into_files(self) -> impl Iterator<Item = PassedOver> {
        self.files.into_iter().map(|(ino, reason)| PassedOver { ino, reason })
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use f2fs_volume::StopCause;

    use super::*;

    /// A file that fails for another reason than its own would be given up for nothing, and all behind it as well.
    #[test]
    fn only_a_file_that_is_damaged_is_passed_over() {
        let damaged = || FsError::corrupt_inode(Nid(7), "damaged");
        let stopped = || FsError::Volume(VolumeError::Stopped { reason: StopCause::Panic });
        let mut passed = Passed::new(true, true);
        assert!(passed.over(Nid(7), stopped()).is_err() && !passed.has(Nid(7)) && !passed.begins_anew());
        assert!(passed.over(Nid(7), damaged()).is_ok() && passed.has(Nid(7)) && passed.begins_anew());
        passed.begin();
        assert!(passed.over(Nid(7), damaged()).is_ok() && !passed.begins_anew(), "it was known");
        let mut of_chain = Passed::new(false, true);
        assert!(of_chain.over(Nid(7), damaged()).is_err());
        let mut not_allowed = Passed::new(true, false);
        let named = not_allowed.over(Nid(7), damaged());
        assert!(matches!(named, Err(FsError::SyncedFile { ino: Nid(7), .. })));
    }
}
