//! What a volume does with a journal: an opening finds the journal and brings its data back; syncs go to it. The
//! journal itself is [`AttachedJournal`](crate::journal::AttachedJournal), whose file has the picture and the locks.

mod found;
mod restore;
mod sync;

use crate::Volume;
use crate::journal::SyncJournal;

pub use found::{FoundJournal, JournaledNodes};

impl Volume {
    /// Whether syncs of files go to a journal.
    #[must_use]
    pub fn has_journal(&self) -> bool {
        self.journal.get().is_some_and(SyncJournal::is_open)
    }

    /// Lets syncs be checkpoints from here on, so that no record is added any more. What was synced stays synced.
    pub fn retire_journal(&self) {
        if let Some(journal) = self.journal.get() {
            journal.retire();
        }
    }

    /// How much of the journal is in use, if there is one.
    #[must_use]
    pub fn journal_usage(&self) -> Option<f2fs_journal::Usage> {
        self.journal.get().map(|journal| journal.journal.usage())
    }
}
