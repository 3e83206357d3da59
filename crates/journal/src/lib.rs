//! A redo journal, or write-ahead log, in persistent memory or on a block device: a record is durable with one fence.
//!
//! | Item | What it is |
//! |---|---|
//! | [`Journal`] | takes records ([`append`](Journal::append)), and takes their space back ([`truncate_to`](Journal::truncate_to)) |
//! | [`Recovered`] | a journal that was found: how each lane ended, and its records in order; nothing is written before [`start`](Recovered::start) |
//! | [`Medium`] | what a journal lies on: [`RegionMedium`] is persistent memory, [`DeviceMedium`] a block device |
//! | [`Mark`] | a moment of the journal, up to which its space can be taken back |
//! | [`LaneReport`], [`LaneEnd`] | where a lane ended, and why |
//!
//! ```
//! use f2fs_journal::{Create, Entry, Journal, RegionMedium, Uuid};
//! use f2fs_pmem::MemoryRegion;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let journal = Journal::create(RegionMedium::new(MemoryRegion::new(1 << 20)?), &Create::new(Uuid([7; 16])))?;
//! let first = journal.append(0, &[b"object 1: ", b"created"])?;
//! // Several records with one fence, which follow the first.
//! let more = [Entry::new(&[b"object 1: written"]), Entry::new(&[b"object 1: synced"])];
//! journal.append_batch(first.stamp, &more)?;
//! // The engine writes object 1 to its place, durably; then the journal needs none of this any more.
//! let mark = journal.mark();
//! journal.truncate_with(&mark, b"checkpoint 1")?;
//! # Ok(())
//! # }
//! ```
//!
//! # What is durable when
//!
//! | After | durable is |
//! |---|---|
//! | [`append`](Journal::append), [`append_batch`](Journal::append_batch) return | their records |
//! | [`truncate_to`](Journal::truncate_to), [`truncate_with`](Journal::truncate_with) return | that the records before the mark are gone, in all lanes at once, and with them the owner's area |
//! | [`set_area`](Journal::set_area) returns | the owner's area |
//!
//! There is no commit beside these: an append that returned is committed. What is to be there as a whole or not at all
//! is one record, whose parts are given in pieces.
//!
//! A power cut during an append leaves the record or not, and of a batch any number of its first records. During a
//! truncation a crash leaves the state before it, or the state after it. Space is not written again before it is
//! durable that it is free.
//!
//! A record in memory costs its lines, stored past the cache, and one fence: there is no tail pointer, since a record
//! says by its checksums that it is whole. Where memory is not durable at a fence
//! ([`Durability::Sync`](f2fs_pmem::Durability::Sync)) the region is synced behind it. On a device a record is one
//! durable write (FUA), and a batch is some writes and a flush.
//!
//! # The order of records
//!
//! - Records of one lane are replayed in the order in which they were appended.
//! - A record that was appended *after* a stamp is replayed behind the record with that stamp, whichever lanes they are
//!   in. Its own stamp is higher.
//! - Records that were appended since the journal was opened are replayed behind those that were there before.
//! - Two records of different lanes of which neither follows the other are replayed in either order, the same in each
//!   replay, though one of them may have been acknowledged before the other began. A caller that needs an order between
//!   them hands in the stamp.
//! - What is replayed is closed: with a record, all that it follows is replayed, or was taken back. That holds as long
//!   as a stamp is handed to nobody before its append returned.
//!
//! Stamps are Lamport's clocks: each lane has one, it is raised above the stamp that is handed in, and there is no
//! counter for all.
//!
//! # Layout
//!
//! ```text
//!  0              4096           8192            8192 + lane bytes
//!  +--------------+--------------+---------------+---------------+----
//!  | header,      | header,      | lane 0        | lane 1        | ...
//!  | even turns   | odd turns    |               |               |
//!  +--------------+--------------+---------------+---------------+----
//!
//!  lane:  |  free  | record | record | ... | record |  free  |
//!                  ^ head                           ^ where the next one goes; written down nowhere
//!
//!  record, from the beginning of a grain:
//!  0        4        8        12      16         24      32      40
//!  +--------+--------+--------+-------+----------+-------+-------+----------------------+
//!  | header | payload| length | epoch | position | stamp | batch | payload, then zeros  |
//!  | CRC    | sum    |        |       |          |       |       | up to a whole grain  |
//!  +--------+--------+--------+-------+----------+-------+-------+----------------------+
//!
//!  header:
//!  0       8         12    16      32   48     56      60      64           72      76     80       88         96       256
//!  +-------+---------+-----+-------+----+------+-------+-------+------------+-------+------+--------+----------+--------+---------+
//!  | magic | version | CRC | owner | id | turn | epoch | lanes | lane bytes | grain | area | stamp  | reserved | area,  | lanes:  |
//!  |       |         |     |       |    |      |       |       |            |       | used |        |          | 160    | 16 each |
//!  +-------+---------+-----+-------+----+------+-------+-------+------------+-------+------+--------+----------+--------+---------+
//! ```
//! A grain is 64 bytes in memory, and 4096 on a device. Positions in a lane count on, round after round of the ring, so
//! what was there before is never taken for new. The header has two copies, which are written in turn. The number `id`
//! is new with each journal, and the checksums of record headers begin with it and the number of the lane.
//!
//! # How a lane ends
//!
//! A lane is followed from its head to the first thing that is not a record at that position. What then tells a power
//! cut from damage: each record says where its batch began, and all before that was durable when it was written. So if
//! a sound record behind the end began its batch behind the end, the end is damage ([`LaneEnd::Damaged`]). So it is if
//! the lane was longer when it was last opened to append. Only the last record of a lane can be damaged unnoticed, as
//! in every log without a second copy: it counts as torn, or as not there.
//!
//! If a lane is damaged, or cannot be read, [`Recovered::whole_up_to`] is the stamp up to which nothing is missing, and
//! a replay [`up_to`](Replay::up_to) it keeps the order. A damaged lane takes records again when its space was taken
//! back, at positions beyond all that were ever there. A lane that cannot be read is not used any more.
//!
//! Bytes that a power cut left behind the end of a lane stay there. They have an earlier epoch than all that is
//! appended later, and count as none, also where words of a new record complete it.
//!
//! # Errors
//!
//! [`Error::Full`] says how much is wanted and how much is left, when no lane has room. An append that the medium
//! failed leaves it open whether its record is there: the lane takes no more, and if the medium could not make
//! something durable, none does, before the journal is opened again. A journal of another owner, of another version, or
//! with a damaged header is an error of its own each. On any content of the medium, opening and replaying end, read
//! each grain a few times at most, and take no more memory than the journal has bytes.
//!
//! # Locking model
//!
//! Each lane has a lock, on lines of its own, which is held over the stores of a batch and the fence behind them. A
//! thread tries the lane of its processor, and then the others, and waits only if all are taken. An append takes no
//! other lock, and writes no other memory that threads share. Checksums are computed before the lane is locked
//! ([`Entry`]). A [`mark`](Journal::mark) holds the locks of all lanes for a moment, in ascending order, so that it is
//! one moment for all: if a record lies before it, so do all records that this one follows. Taking space back holds the
//! header's lock over the write of the header, and a lane's only to change a number.
#![forbid(unsafe_code)]

mod checksum;
mod device;
mod error;
mod geometry;
mod header;
mod journal;
mod lane;
mod mark;
mod medium;
mod owner;
mod payload_sum;
mod record;
mod recovered;
mod region;
mod replay;
mod scan;
mod window;

pub use device::DeviceMedium;
pub use error::Error;
pub use geometry::{HEADER, MOST_LANES};
pub use header::{AREA, MAGIC};
pub use journal::{Create, Journal};
pub use mark::{Mark, Usage};
pub use medium::{Gather, LARGEST_GRAIN, Medium, MediumError, SMALLEST_GRAIN};
pub use owner::Uuid;
pub use record::{Appended, Entry, Record};
pub use recovered::{Recovered, SharedMedium};
pub use region::RegionMedium;
pub use replay::Replay;
pub use scan::{LaneEnd, LaneReport};

/// The example of this crate's README, so that it is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
