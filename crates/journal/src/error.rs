//! Why a journal refused.

use f2fs_device::AlreadyOpen;

use crate::MediumError;
use crate::owner::Uuid;

/// Why a journal refused something.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The medium failed. After a failed append it is not known whether the record will be replayed.
    #[error(transparent)]
    Medium(#[from] MediumError),
    /// Another journal of this process has the medium open. Nothing was written.
    #[error("the journal's medium: {0}")]
    AlreadyOpen(#[from] AlreadyOpen),
    /// The medium is for reading only.
    #[error("the journal's medium is for reading only")]
    ReadOnly,
    /// There is no journal on the medium.
    #[error("there is no journal here")]
    NotAJournal,
    /// There is a journal, and both copies of its header are damaged.
    #[error("both copies of the journal's header are damaged")]
    DamagedHeader,
    /// The journal has another version than this library knows.
    #[error("the journal has version {found}, but this library knows only version {known}")]
    Version {
        /// The journal's.
        found: u32,
        /// This library's.
        known: u32,
    },
    /// The journal belongs to somebody else.
    #[error("the journal belongs to {found}, and not to {expected}")]
    Foreign {
        /// Who opened it.
        expected: Uuid,
        /// Whose it is.
        found: Uuid,
    },
    /// There is a journal already. Nothing was written.
    #[error("there is a journal of {owner} already")]
    OccupiedByJournal {
        /// Whose it is.
        owner: Uuid,
    },
    /// There is something already, and it is no journal. Nothing was written.
    #[error("the medium is not empty: the byte at offset {offset} is not zero")]
    Occupied {
        /// The first byte that is not zero.
        offset: u64,
    },
    /// A grain of another size than the journal's, or than a journal can have.
    #[error("a grain of {found} bytes is not possible for this journal")]
    BadGrain {
        /// Bytes.
        found: usize,
    },
    /// The medium is smaller than the journal.
    #[error("the medium has {bytes} bytes, but the journal needs {needed}")]
    TooSmall {
        /// Bytes of the medium.
        bytes: u64,
        /// Bytes needed.
        needed: u64,
    },
    /// The header names sizes that no journal has.
    #[error("a journal with {lanes} lanes of {lane_bytes} bytes is not possible")]
    Impossible {
        /// Lanes.
        lanes: u32,
        /// Bytes of each.
        lane_bytes: u64,
    },
    /// The record does not fit into an empty lane. Nothing was written.
    #[error(
        "{bytes} bytes do not fit into a lane, which takes {most} with the records' headers: make the journal larger, or its lanes fewer"
    )]
    TooLarge {
        /// Bytes that the records take with their headers, or `u64::MAX` if there are more.
        bytes: u64,
        /// Bytes of a lane.
        most: u64,
    },
    /// No lane has room. Nothing was written. [`Journal::truncate_to`](crate::Journal::truncate_to) makes room.
    #[error(
        "the journal is full: {wanted} bytes are wanted, and no lane has more than {free} left; take space back with truncate_to"
    )]
    Full {
        /// Bytes that the records take with their headers.
        wanted: u64,
        /// Bytes that are left in the lane that has the most.
        free: u64,
    },
    /// No record was given.
    #[error("there is nothing to append")]
    Nothing,
    /// The medium failed before to make something durable, or every lane is closed: nothing more is appended before the
    /// journal is opened again. If all lanes were damaged when it was opened, opening it again finds the same: they
    /// take records again after [`truncate_to`](crate::Journal::truncate_to) a mark, which gives up what they hold.
    #[error("the journal's medium failed before, or all of its lanes are closed: open it again")]
    Closed,
    /// A counter of the journal has come to its end: make a new one.
    #[error("the journal's {what} has reached its end, {value}: make a new journal")]
    Exhausted {
        /// Which: stamp, position or epoch.
        what: &'static str,
        /// Where it is.
        value: u64,
    },
    /// The mark is that of another journal, or of this one as it was opened another time. Nothing was done.
    #[error("the mark was not taken in this journal since it was opened")]
    ForeignMark,
    /// The owner's area is longer than there is room for. Nothing was done.
    #[error("{bytes} bytes do not fit into the owner's area of {most} bytes")]
    AreaTooLarge {
        /// Bytes given.
        bytes: usize,
        /// Bytes that there are.
        most: usize,
    },
    /// A record has changed since the journal was opened.
    #[error("the record at position {position} of lane {lane} changed while the journal was open")]
    Changed {
        /// Its lane.
        lane: usize,
        /// Its position.
        position: u64,
    },
}
