//! The journal that a file system is opened with.

use f2fs_journal::SharedMedium;
use f2fs_volume::JournalMode;

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
}

/// 64 MiB.
const WRITE_BEHIND: u64 = 64 << 20;

impl JournalOptions {
    /// A journal on this medium.
    #[must_use]
    pub fn new(medium: SharedMedium, mode: JournalMode) -> Self {
        JournalOptions { medium, mode, write_behind: WRITE_BEHIND }
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
}
