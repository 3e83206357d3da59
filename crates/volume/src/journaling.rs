//! What a volume does with a journal: an opening finds the journal and brings its data back; syncs go to it, and
//! checkpoints are announced to it. The journal itself is [`SyncJournal`], whose file has the picture and the locks.

mod found;
mod restore;
mod sync;

use f2fs_device::Request;
use f2fs_format::Nid;
use f2fs_segment::Displaced;
use f2fs_sync::protocol_value;

use crate::journal::SyncJournal;
use crate::{JournalMode, Volume};

pub use found::{FoundJournal, JournaledNodes};

impl Volume {
    /// Whether syncs of files go to a journal.
    #[must_use]
    pub fn has_journal(&self) -> bool {
        self.journal.get().is_some_and(SyncJournal::is_open)
    }

    /// Whether a record is there only if the data is that its nodes name.
    pub(crate) fn has_whole_journal(&self) -> bool {
        self.journal.get().is_some_and(|journal| journal.is_open() && journal.mode != JournalMode::Writeback)
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

    /// Whether syncs put data into the journal.
    pub(crate) fn keeps_data(&self) -> bool {
        self.journal.get().is_some_and(|journal| journal.data.is_some() && journal.is_open())
    }

    /// Keeps data that requests of a file wrote and that no slot names yet, for the record of the next sync.
    /// `is_whole`: they are all that is about to be named.
    pub(crate) fn keep_for_journal(&self, ino: Nid, requests: impl Iterator<Item = Request>, is_whole: bool) {
        if let Some(data) = self.journal.get().and_then(|journal| journal.data.as_ref()) {
            data.keep(ino, requests, is_whole);
        }
    }

    /// No slot of a file names these blocks any more.
    pub(crate) fn forget_displaced(&self, ino: Nid, displaced: &Displaced) {
        if !displaced.is_empty()
            && let Some(data) = self.journal.get().and_then(|journal| journal.data.as_ref())
        {
            data.forget(ino, displaced);
        }
    }

    /// A checkpoint is frozen, with the gate closed: all data that was written until now is durable when it is. Syncs wait until then.
    pub(crate) fn freeze_journal(&self) {
        if let Some(data) = self.journal.get().and_then(|journal| journal.data.as_ref()) {
            data.clear();
        }
    }

    /// The checkpoint's pack is about to be written, and will count.
    pub(crate) fn announce_to_journal(&self, next: u64) {
        if let Some(journal) = self.journal.get() {
            journal.announce(self.footer_version(), next);
            protocol_value!("journal_taken_back_before_checkpoint", (), journal.take_back(next));
        }
    }

    /// The checkpoint is durable.
    pub(crate) fn take_back_journal(&self) {
        if let Some(journal) = self.journal.get() {
            journal.take_back(self.footer_version());
        }
    }
}
