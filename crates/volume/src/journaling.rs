//! What a volume does with a journal: an opening finds the journal and brings its data back; syncs go to it. The
//! journal itself is [`AttachedJournal`](crate::journal::AttachedJournal), whose file has the picture and the locks.

mod found;
mod restore;

use crate::Volume;
use crate::journal::SyncJournal;

pub use found::{BoundName, FoundJournal, JournaledNodes};

/// The journal of a volume, if it has one: [`Volume::journal`].
#[derive(Clone, Copy, Debug)]
pub struct Journaling<'a>(pub(crate) &'a Volume);

impl Journaling<'_> {
    /// Whether syncs of files go to a journal.
    #[must_use]
    pub fn is_open(self) -> bool {
        self.0.attached_journal.get().is_some_and(SyncJournal::is_open)
    }

    /// Lets syncs be checkpoints from here on, so that no record is added any more. What was synced stays synced.
    pub fn retire(self) {
        if let Some(journal) = self.0.attached_journal.get() {
            journal.retire();
        }
    }

    /// How much of the journal is in use, if there is one.
    #[must_use]
    pub fn usage(self) -> Option<f2fs_journal::Usage> {
        self.0.attached_journal.get().map(|journal| journal.log.usage())
    }
}
