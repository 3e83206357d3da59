//! What a volume does with a journal: an opening finds the journal and brings its data back; syncs go to it. The
//! journal itself is [`AttachedJournal`](crate::journal::AttachedJournal), whose file has the picture and the locks.

mod content;
mod found;
mod rescue;
mod restore;

use crate::journal::SyncJournal;
use crate::{Op, Volume};

pub use content::JournalContent;
pub use found::{BoundName, FoundJournal, GivenUp, JournaledNodes};
pub use rescue::JournalRescue;

/// The journal of a volume, if it has one: [`Volume::journal`].
#[derive(Clone, Copy, Debug)]
pub struct Journaling<'a>(pub(crate) &'a Volume);

impl Journaling<'_> {
    /// Whether syncs of files go to a journal.
    #[must_use]
    pub fn is_open(self) -> bool {
        self.0.attached_journal.get().is_some_and(SyncJournal::is_open)
    }

    /// No record is added any more. What was synced stays synced. Syncs are checkpoints until there was one, and then go
    /// to the log.
    pub fn retire(self, op: &Op<'_>) {
        op.expect_of(self.0);
        if let Some(journal) = self.0.attached_journal.get() {
            journal.retire(self.0.epoch());
        }
    }

    /// How much of the journal is in use, if there is one.
    #[must_use]
    pub fn usage(self) -> Option<f2fs_journal::Usage> {
        self.0.attached_journal.get().map(|journal| journal.log.usage())
    }

    /// Whether a checkpoint is due that makes room: half of a lane is used.
    #[must_use]
    #[inline]
    pub fn is_due(self) -> bool {
        self.0.attached_journal.is_due()
    }
}
