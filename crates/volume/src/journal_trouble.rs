//! Why a volume does not open with a journal.

use f2fs_format::BlockAddr;
use thiserror::Error;

/// Why a volume does not open with a journal. Nothing was written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum JournalTrouble {
    /// The journal itself cannot be used: it is another volume's, damaged, or cannot be read.
    #[error("journal: {0}")]
    Journal(#[from] f2fs_journal::Error),
    /// Its records build on another checkpoint than the volume's: somebody wrote to the volume without its journal, or
    /// one of the two is an older copy. The records may name blocks that hold something else by now.
    #[error(
        "the journal's {records} records build on checkpoint {base:#x}, and the volume is at checkpoint {found:#x}: it was written without its journal since, \
         or one of the two is a copy"
    )]
    OtherCheckpoint {
        /// Records of the journal.
        records: u64,
        /// The footer version of the checkpoint that they build on, whose lower half is the checkpoint's number.
        base: u64,
        /// The volume's.
        found: u64,
    },
    /// Both the journal and the warm-node log hold files that were synced since the checkpoint: somebody synced files
    /// without the journal.
    #[error(
        "{records} records of the journal and {nodes} nodes in the log were synced since the checkpoint: somebody wrote to the volume without \
         its journal"
    )]
    SyncedWithout {
        /// Records of the journal.
        records: u64,
        /// Nodes in the log.
        nodes: u64,
    },
    /// A record that was acknowledged is damaged or cannot be read. Those behind it may follow it.
    /// [`JournalRescue::up_to_damage`](crate::JournalRescue::up_to_damage) brings back what is in front of it.
    #[error(
        "lane {lane} of the journal is damaged at offset {offset}, in the record at position {position}: {records} records in front of it \
         are whole, and so are {behind} behind it"
    )]
    Damaged {
        /// The lane.
        lane: usize,
        /// The position of the damaged record in its lane: the bytes that were ever given to the records before it.
        position: u64,
        /// Where the damage begins, in bytes from the start of the journal.
        offset: u64,
        /// Records, of all lanes, that are whole and follow no damaged one.
        records: u64,
        /// Records, of all lanes, that are whole and may follow a damaged one.
        behind: u64,
    },
    /// A record is no sync of a file of this volume.
    #[error(
        "the record at position {position} of lane {lane} of the journal is not a sync that builds on this checkpoint"
    )]
    Record {
        /// Its lane.
        lane: usize,
        /// Its position.
        position: u64,
    },
    /// The open volume has a journal already.
    #[error("the open volume has a journal already")]
    Attached,
    /// A record holds data for a block that the checkpoint uses, or that is not a block for data.
    #[error("a record of the journal holds data for block {}, which the checkpoint uses, or which is not a block for data", .addr.0)]
    Block {
        /// The block.
        addr: BlockAddr,
    },
    /// Data of a zoned device cannot be written again to its place, as bringing back a record of
    /// [`JournalMode::Journal`](crate::JournalMode::Journal) does.
    #[error("a volume on zoned devices cannot have data in its journal: use the mode ordered")]
    Zoned,
    /// The journal's header was not written for a volume.
    #[error("the journal's header has {bytes} bytes of an owner that is not a volume")]
    Area {
        /// Bytes in the owner's area.
        bytes: usize,
    },
}
