//! A journal beside the volume: syncs go there, and not into the warm-node log.
//!
//! ```text
//!   sync of a file:  nodes as they are, packed ─> (ordered: flush of the device) ─> one record, durable with one fence
//!                                               └ (journal: the data that they name goes along)
//!   checkpoint:      ... its tables ─> announced in the journal ─> pack ─> durable ─> the records' space is taken back
//!   open:            checkpoint ─> records that build on it, as a chain of synced nodes ─> a checkpoint
//! ```
//!
//! The journal's header names the checkpoint that its records build on (*base*), and the one that is being written
//! (*next*). Each is named by the version in the footers of its nodes, which no two checkpoints share. So an opening
//! with a journal knows whether somebody wrote to the volume without it: then the volume is at neither checkpoint, and
//! the records may name blocks that hold something else by now.
//!
//! Data in records belongs to blocks that were written since the checkpoint and not flushed. The volume keeps these
//! blocks until the next checkpoint, as it does for data that was synced in the log. So a recovery may write the data
//! there again, any number of times.
//!
//! Nodes that were journaled are still to be written by the next checkpoint; they stay on its list. A journal that is
//! full, or failed, costs a checkpoint and no promise. The checkpoint that takes space back is due when half of a lane
//! is used. A thread in the background writes it, if there is one; then operations do so from seven eighths on only.
//!
//! # Locking
//!
//! A sync holds the gate. It holds the stripe of its file from the moment that it reads the nodes until their record is
//! durable. So the records of a file follow each other as its states do, and a sync that finds nothing to write comes
//! after the one that wrote it. Under the stripe, pages are locked one at a time, then a flush is shared with other
//! threads, then the journal locks a lane. The checkpoint announces itself and takes space back while syncs wait for
//! it, so that none is on its way.

mod area;
pub(crate) mod bases;
pub(crate) mod data;
mod filling;
pub(crate) mod names;
mod piece;
pub(crate) mod record;
pub(crate) mod shown;

use f2fs_device::{BlockDevice, DeviceError, Request, WriteBehind};
use f2fs_format::Nid;
use f2fs_journal::{Error, Journal, SharedMedium};
use f2fs_segment::Displaced;
use f2fs_sync::atomic::{AtomicU64, Ordering};
use f2fs_sync::{
    Arc, GroupCommit, Mutex, OnceLock, PerCore, PlainArc, Striped, protocol_step, protocol_value, stripes_here,
};

use crate::node_page::NodePage;
use crate::synced::Synced;
use crate::{StopCause, VolumeError};

pub use area::JournalArea;
use bases::FileOrder;
use data::{Collected, UnflushedData};
use filling::Filling;
use names::NameLog;

pub(crate) use f2fs_format::node::mark::{DENTRY, FSYNC};

/// Locks for the order of each file's records.
const STRIPES: usize = if cfg!(any(loom, shuttle)) { 2 } else { 256 };

/// The order between a file's data and the record of a sync of that file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum JournalMode {
    /// The data is durable on the volume before the record that names it: the device is flushed by each sync, once for
    /// all who sync at the same time.
    #[default]
    Ordered,
    /// A sync does not flush the device. After a power cut a file has its size and attributes, and blocks that were
    /// written shortly before may hold something else, as in ext4's mode of that name.
    Writeback,
    /// The data is in the record, too. So a sync does not flush the device, and promises the same as
    /// [`Ordered`](Self::Ordered). A sync of more data than a record takes flushes the device instead. Not on zoned
    /// devices, where data cannot be written again to its place.
    Journal,
}

/// The journal of an open volume.
#[derive(Debug)]
pub(crate) struct SyncJournal {
    pub(crate) log: Journal<SharedMedium>,
    pub(crate) mode: JournalMode,
    /// The last record of the files of each stripe.
    pub(crate) files: Striped<Mutex<FileOrder>>,
    /// The threads that wait for a flush of the device.
    pub(crate) flushes: GroupCommit<(), Result<(), DeviceError>>,
    /// How full the fullest lane was that took a record since the last checkpoint.
    pub(crate) filling: Filling,
    /// The epoch in which it took its last record, since it failed, or the volume is about to be closed; 0: it takes
    /// them.
    pub(crate) retired: AtomicU64,
    /// In [`JournalMode::Journal`].
    pub(crate) data: Option<UnflushedData>,
    /// The names that changed.
    pub(crate) names: NameLog,
    /// The threads that wait for a record of names.
    pub(crate) name_syncs: GroupCommit<Arc<NodePage>, Result<Synced, VolumeError>>,
    /// Memory for records.
    pub(crate) buffers: PerCore<Mutex<Buffers>>,
}

/// Memory for a record that is put together.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    pub(crate) bytes: Vec<u8>,
    pub(crate) collected: Collected,
}

impl SyncJournal {
    /// `behind`: where data may wait in front of the volume's device.
    pub(crate) fn new(
        journal: Journal<SharedMedium>,
        mode: JournalMode,
        behind: Option<PlainArc<WriteBehind>>,
    ) -> SyncJournal {
        // Several records have room in a lane.
        let data = (mode == JournalMode::Journal).then(|| UnflushedData::new(journal.lane_bytes() / 8, behind));
        SyncJournal {
            log: journal,
            mode,
            data,
            files: Striped::new(stripes_here(STRIPES), |_| Mutex::default()),
            flushes: GroupCommit::new(),
            names: NameLog::new(),
            name_syncs: GroupCommit::new(),
            filling: Filling::default(),
            retired: AtomicU64::new(0),
            buffers: PerCore::new(|_| Mutex::default()),
        }
    }

    /// Whether syncs go to it.
    pub(crate) fn is_open(&self) -> bool {
        self.retired.load(Ordering::Acquire) == 0
    }

    /// Takes no more records. The caller keeps this epoch from ending: it holds the gate, or the turn.
    pub(crate) fn retire(&self, epoch: u64) {
        let _ = self.retired.compare_exchange(0, epoch, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Whether it may hold records of this epoch, and takes no more. Then a sync is a checkpoint: a chain in the log
    /// would stand beside the records, and an opening could not tell which of them is newer.
    pub(crate) fn has_retired_in(&self, epoch: u64) -> bool {
        self.retired.load(Ordering::Acquire) == epoch
    }

    /// The checkpoint with the footer version `next` is about to become valid. Called while syncs wait, in this epoch.
    pub(crate) fn announce(&self, base: u64, next: u64, epoch: u64) {
        let announced =
            protocol_value!("journal_checkpoint_announced", self.set_area(JournalArea { base, next }), Ok(()));
        if announced.is_err() {
            self.retire(epoch);
        }
    }

    /// The checkpoint with this footer version is durable: no record is needed any more. Called while syncs wait, in
    /// this epoch.
    pub(crate) fn take_back(&self, base: u64, epoch: u64) {
        let mark = self.log.mark();
        let taken = self.log.truncate_with(&mark, &JournalArea { base, next: 0 }.bytes());
        if taken.is_err() {
            self.retire(epoch);
        }
        self.filling.clear();
    }

    fn set_area(&self, area: JournalArea) -> Result<(), Error> {
        self.log.set_area(&area.bytes())
    }

    /// Makes all earlier writes to the device durable, with one flush for all threads that ask at the same time.
    pub(crate) fn flush(&self, device: &dyn BlockDevice) -> Result<(), VolumeError> {
        let flush = |group: Vec<()>| {
            let flushed = protocol_value!("journal_flush_of_data", device.flush(), Ok(()));
            group.iter().map(|()| flushed.clone()).collect()
        };
        // There is no answer if the one who flushed for all panicked.
        let flushed = self.flushes.join((), flush);
        Ok(flushed.ok_or(VolumeError::Stopped { reason: StopCause::Panic })??)
    }
}

/// The journal of a volume, if one was attached to it.
#[derive(Debug, Default)]
pub(crate) struct AttachedJournal(OnceLock<SyncJournal>);

impl AttachedJournal {
    pub(crate) fn get(&self) -> Option<&SyncJournal> {
        self.0.get()
    }

    /// False: there is one already.
    pub(crate) fn attach(&self, journal: SyncJournal) -> bool {
        self.0.set(journal).is_ok()
    }

    /// That of [`JournalMode::Journal`].
    fn data(&self) -> Option<&UnflushedData> {
        self.get()?.data.as_ref()
    }

    /// Whether a checkpoint is due that makes room in it.
    pub(crate) fn is_due(&self) -> bool {
        self.get().is_some_and(|journal| journal.filling.is_due())
    }

    /// Whether that checkpoint cannot wait.
    pub(crate) fn is_nearly_full(&self) -> bool {
        self.get().is_some_and(|journal| journal.filling.is_nearly_full())
    }

    /// Whether a record is there only if the data is that its nodes name.
    pub(crate) fn is_whole(&self) -> bool {
        self.get().is_some_and(|journal| journal.is_open() && journal.mode != JournalMode::Writeback)
    }

    /// Whether syncs put data into it.
    pub(crate) fn keeps_data(&self) -> bool {
        self.get().is_some_and(|journal| journal.data.is_some() && journal.is_open())
    }

    /// Lets a write of a file's data wait in front of the device. False: it has to be sent.
    pub(crate) fn defer(&self, request: &PlainArc<Request>) -> bool {
        self.keeps_data() && self.data().is_some_and(|data| data.defer(request))
    }

    /// Keeps data that requests of a file wrote and that no slot names yet, for the record of the next sync.
    /// `is_whole`: they are all that is about to be named.
    pub(crate) fn keep(&self, ino: Nid, requests: impl Iterator<Item = PlainArc<Request>>, is_whole: bool) {
        if let Some(data) = self.data() {
            data.keep(ino, requests, is_whole);
        }
    }

    /// No slot of a file names these blocks any more.
    pub(crate) fn forget(&self, ino: Nid, displaced: &Displaced) {
        if !displaced.is_empty()
            && let Some(data) = self.data()
        {
            data.forget(ino, displaced);
        }
    }

    /// A checkpoint is frozen, with the gate closed: all data that was written until now is durable when it is. Syncs
    /// wait until then.
    pub(crate) fn freeze(&self) {
        if let Some(data) = self.data() {
            data.clear();
            protocol_step!("journal_freeze_seals_data", data.seal());
        }
        if let Some(journal) = self.get() {
            journal.names.clear();
        }
    }

    /// Notes a name of a directory that changed, or, with an empty name, an inode whose links did.
    pub(crate) fn note_name(&self, ino: Nid, name: &[u8]) {
        if let Some(journal) = self.get().filter(|journal| journal.is_open()) {
            journal.names.note(ino, name);
        }
    }

    /// The pack of the checkpoint with the footer version `next` is about to be written, and will count. `base`: that
    /// of the last one. `epoch`: the one that has begun.
    pub(crate) fn announce(&self, base: u64, next: u64, epoch: u64) {
        if let Some(journal) = self.get() {
            journal.announce(base, next, epoch);
            protocol_value!("journal_taken_back_before_checkpoint", (), journal.take_back(next, epoch));
        }
    }

    /// The checkpoint with this footer version is durable.
    pub(crate) fn take_back(&self, base: u64, epoch: u64) {
        if let Some(journal) = self.get() {
            journal.take_back(base, epoch);
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
