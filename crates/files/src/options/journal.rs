//! The journal that a file system is opened with.

use f2fs_journal::SharedMedium;
use f2fs_volume::{JournalMode, JournalRescue};

/// A journal that a file system is to be opened with.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct JournalOptions {
    /// The medium that it lies on.
    pub medium: SharedMedium,
    /// The order between data and records.
    pub mode: JournalMode,
    /// Bytes of data that may wait in memory in [`JournalMode::Journal`].
    pub write_behind: u64,
    /// How it is read if a part of it is damaged, or its volume was repaired.
    pub rescue: JournalRescue,
    /// Whether synced files that cannot be brought back are passed over.
    pub passes_over: bool,
}

/// 64 MiB.
const WRITE_BEHIND: u64 = 64 << 20;

impl JournalOptions {
    /// A journal on this medium.
    #[must_use]
    pub fn new(medium: SharedMedium, mode: JournalMode) -> Self {
        JournalOptions {
            medium,
            mode,
            write_behind: WRITE_BEHIND,
            rescue: JournalRescue::default(),
            passes_over: false,
        }
    }

    /// Bytes of data that may wait in memory for the next flush of the volume's device in [`JournalMode::Journal`], 64 MiB
    /// by default. A checkpoint flushes it, and so does a sync of more data than a record takes; when there is no room,
    /// all of it is written. Data that is removed or overwritten before is never written. 0: writes go to the device at
    /// once.
    #[must_use]
    pub fn write_behind(mut self, bytes: u64) -> Self {
        self.write_behind = bytes;
        self
    }

    /// How the journal is read if a part of it is damaged, or its volume was repaired. By default it is refused then.
    #[must_use]
    pub fn rescue(mut self, rescue: JournalRescue) -> Self {
        self.rescue = rescue;
        self
    }

    /// Whether synced files that cannot be brought back are passed over, so that all others come back
    /// ([`FileSystem::passed_over`](crate::FileSystem::passed_over) names them). By default one of them is an error of the
    /// opening, and nothing is written. Such a file is as it was at the checkpoint. Link counts that are wrong are no
    /// error then, and a file that lost its name to another one has none: check the volume afterwards, and repair it.
    #[must_use]
    pub fn passes_over(mut self, passes_over: bool) -> Self {
        self.passes_over = passes_over;
        self
    }
}
