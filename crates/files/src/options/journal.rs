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
}

impl JournalOptions {
    /// A journal on this medium.
    #[must_use]
    pub fn new(medium: SharedMedium, mode: JournalMode) -> Self {
        JournalOptions { medium, mode }
    }
}
