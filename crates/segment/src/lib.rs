//! F2FS segment manager: which blocks of the main area are valid, and where the next ones go.
//!
//! The crate owns the segment information table (SIT), the summaries of segments that the logs write (SSA), the six
//! logs with LFS and SSR allocation, and the set of free segments. It plans and never does I/O: the volume reads the
//! table, hands it over, writes the blocks that [`begin_checkpoint`](SegmentManager::begin_checkpoint) returns, and
//! lends a [`SummarySource`] to read old summaries with. Behaviour follows the kernel's `fs/f2fs/segment.c`.
//!
//! # What holds at all times
//!
//! - A block that is valid now, or was in the last durable checkpoint, or was since, is never handed out. Each segment
//!   has two maps: *valid* (`cur_valid_map`) and *taken* (`ckpt_valid_map`), a superset. Taking a block sets both bits,
//!   freeing it clears the first. A durable checkpoint clears the second of blocks that were freed before it began.
//! - A segment whose last block was freed is *prefree*, not free, until a checkpoint that knows this is durable. Only
//!   then is it used, discarded or reset.
//! - Each log stands on a block that may be written. A log's segment belongs to it alone.
//! - A segment's summary is with its log, or put aside for the next checkpoint, or in the SSA, and is looked for in
//!   this order.
//! - Data and nodes never share a segment; in a section of several segments, logs begin with a free section.
//!
//! # Cleaning
//!
//! [`choose_victim`](SegmentManager::choose_victim) marks the section that is best emptied next. [`plan`] and [`cost`]
//! decide what is cheaper when a write meets valid blocks: skipping, rewriting or moving them. The choices that a crash
//! could turn into a loss are not offered to a write; [`plan`] says which way was chosen and why no crash can lose a
//! block.
//!
//! # Locking model
//!
//! | Lock | protects | taken |
//! |---|---|---|
//! | SIT state | version bitmap, journal set, the pending checkpoint | twice a checkpoint |
//! | log head (6, one for each lane, one for moved blocks) | a log's segment, offset, summary | once an allocation |
//! | victim index | dirty segments by room, sections by cost and age | when a log takes a segment with holes, when a cleaner chooses |
//! | segment (one each) | maps, counts, age, phase | once a run taken, once a block freed |
//! | changed lists (16), free map, retired summaries | what their names say | about once for each 512 blocks |
//!
//! Order: SIT state, a lane, a log head (never two of either), index, segment (one at a time), then one of the last
//! row, of which none is held while another is taken. Counters are atomics: valid blocks striped by segment, the rest
//! changed once for a segment. Freeing a block locks its segment and writes nothing global, beyond the stripe of its
//! counter; taking a batch locks its log and its segment once. The lock that writers of a kind of data share is their
//! log's head; with [lanes](SegmentConfig::lanes), writers on different lanes share none until space is short.
//!
//! # Memory and time
//!
//! | | |
//! |---|---|
//! | a segment that was never used | 4.6 bytes: a word, and its bits in two sets |
//! | a segment with valid blocks, or used since the open | about 250 bytes more: maps, age, its place in the victim index |
//! | a summary that waits for the next checkpoint | 4 KiB |
//! | all sections together | 4160 bytes for each segment that one section has |
//!
//! A TiB is 524,288 segments: 2.4 MB when it is empty, 130 MB when every segment is in use. [`SegmentTable`] takes the
//! SIT over piece by piece, on as many threads as its owner likes; a TiB of it is 38 MiB to read.
//!
//! # Sizes and exhaustion
//!
//! Six logs stand in a section each. A caller of [`Class::User`] gets [`SegmentError::NoSpace`] while
//! [`floor`](SegmentManager::floor) sections are still free ([`user_floor`](SegmentConfig::user_floor), 6 unless set
//! otherwise, and what is dirty): that room is for deleting, which writes nodes and no user data. So data goes through
//! [`allocate`](SegmentManager::allocate), which is `User` for data logs; a *new* node through
//! [`allocate_node_as`](SegmentManager::allocate_node_as) with `User`; a node that is written again, by a checkpoint or
//! because something was deleted from it, goes through [`allocate_node`](SegmentManager::allocate_node), which may have
//! the last segment. `NoSpace` takes nothing; freed blocks are to be had after the next durable checkpoint.
//!
//! Of `n` sections of a new main area, one data log can so fill `n - 5 - user_floor` sections, less the one block that
//! it stands on.
//!
//! # Opening, and the order of a checkpoint's writes
//!
//! The owner keeps a *checkpoint record*: the SIT version bitmap, the SIT journal, where the six logs stand and their
//! summaries, in two places in turn, each whole or not at all (a checksum). The SIT stands on the device twice, the SSA
//! once.
//!
//! Opening: read the newest record that is whole; load the current copy of each SIT block into a [`SegmentTable`], made
//! with the journal; hand table, bitmap and logs to [`SegmentManager::open`]; [`SegmentManager::load`] does both for an
//! owner that keeps the table where [`Geometry`](f2fs_format::Geometry) says. [`LogState::position`] is the part of a
//! log that a checkpoint record holds. Whatever was written behind the record is free again.
//!
//! A checkpoint, with no other call while `begin_checkpoint` runs:
//!
//! 1. Everything that the new record will reach is written: data, then the nodes that name it, at addresses that
//!    `allocate` gave.
//!    [`prepare_checkpoint`](SegmentManager::prepare_checkpoint), beside other calls, makes the next step shorter.
//! 2. [`begin_checkpoint`](SegmentManager::begin_checkpoint). Write [`SegmentFlush::sit_blocks`] to the copies that
//!    they name (never those that the last durable record uses), and [`SegmentFlush::summaries`] to the SSA. A summary
//!    that is overwritten keeps the entries of all blocks that are valid in the old record, so it serves both.
//! 3. Flush the device: all of this is durable **before** the record that points to it.
//! 4. Write the record (bitmap, journal, logs), and make it durable.
//! 5. [`end_checkpoint`](SegmentManager::end_checkpoint), and **not before 4 is durable**: it lets the blocks be
//!    written that were freed before 2, to which the record before still points. Blocks that it returns may be
//!    discarded after it and before the next allocation.
//!
//! If a step fails, leave out the rest; the next `begin_checkpoint` writes again all that this one had. With
//! `f2fs-nat`, both `begin_checkpoint`s come before one flush and one record, and both `end_checkpoint`s after it.
//!
//! # Example
//!
//! ```
//! use f2fs_format::summary::Summary;
//! use f2fs_format::{LogType, Nid};
//! use f2fs_segment::{SegmentConfig, SegmentManager};
//!
//! # fn main() -> Result<(), f2fs_segment::SegmentError> {
//! // An empty main area of 24 segments, each log at the start of one.
//! let manager = SegmentManager::empty(SegmentConfig::embedded(24, 1)?)?;
//!
//! // A thousand blocks of file data: node 5 holds their addresses.
//! let summaries: Vec<Summary> = (0..1000).map(|slot| Summary::new(Nid(5), 0, slot)).collect();
//! let mut runs = Vec::new();
//! manager.allocate(LogType::WarmData, &summaries, 1, &mut runs)?;
//! assert_eq!(runs.iter().map(|run| run.len).sum::<u32>(), 1000);
//! assert_eq!(manager.valid_blocks(), 1000);
//!
//! // The whole first segment is freed: it is used again after the next durable checkpoint, not before.
//! for index in 0..512 {
//!     manager.invalidate(runs[0].addr.offset(index), 2)?;
//! }
//! assert_eq!((manager.free_segments(), manager.prefree_segments()), (17, 1));
//! let flush = manager.begin_checkpoint(6)?;
//! assert_eq!(flush.free_segments, 18);
//! // ... the owner writes `flush` and the rest of the checkpoint, and flushes the device ...
//! manager.end_checkpoint();
//! assert_eq!((manager.free_segments(), manager.prefree_segments()), (18, 0));
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod age_threshold;
mod aged;
mod ages;
mod allocate;
mod aside;
mod bitset;
mod buckets;
mod checkpoint;
mod config;
pub mod cost;
mod embed;
mod error;
mod free;
mod head;
mod index;
mod lanes;
mod manager;
mod map;
mod neighbours;
mod node_log;
mod on_lane;
mod opening;
pub mod plan;
mod pressure;
mod ranked;
mod recover;
mod retired;
mod run;
mod sections;
mod segment;
mod selective;
mod sit;
mod slots;
mod ssr;
mod states;
mod table;
#[cfg(test)]
mod testing;
mod thresholds;
mod trim;
mod victim;
mod zones;
mod zoning;

pub use age_threshold::AgeThreshold;
pub use checkpoint::SegmentFlush;
pub use config::{Class, SegmentConfig, SummarySource};
pub use error::SegmentError;
pub use head::{AllocType, LogState};
pub use manager::SegmentManager;
pub use map::BlockMap;
pub use node_log::NodeLog;
pub use run::Run;
pub use segment::{Phase, SegmentInfo};
pub use sit::SitBlockWrite;
pub use slots::{Change, Displaced, switch_slots};
pub use table::SegmentTable;
pub use victim::{Victim, VictimPolicy};

/// The example of this crate's README, so that it is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
