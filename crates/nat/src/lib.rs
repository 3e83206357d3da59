//! The F2FS node address table and its free-NID allocator.
//!
//! Every node of a volume (inode, direct or indirect node) has a number, its NID. This crate owns the table that maps
//! NIDs to block addresses, in memory and in the form that a checkpoint records. It also hands out free NIDs. It does
//! no I/O of its own: blocks are read through [`NatSource`], and what a checkpoint has to write is returned to the
//! caller.
//!
//! | Item | What it is |
//! |---|---|
//! | [`Nat`] | the table and the allocator |
//! | [`NatEntry`] | inode, address and version of one NID |
//! | [`NatSource`] | how blocks of the table are read |
//! | [`UsedNids`] | all NIDs in use, from [`Nat::used`] |
//! | [`NatFlush`] | what a checkpoint has to write: journal entries, blocks, the version bitmap |
//! | [`NatConfig`], [`Policy`] | size, memory, and how free NIDs are found |
//!
//! # Locking model
//!
//! State is owned by its NAT block: entries, free NIDs and dirty marks of 455 NIDs stand together, under one lock.
//!
//! | Operation | Takes | Writes that others share |
//! |---|---|---|
//! | [`get`](Nat::get) | nothing (a version is compared) | nothing |
//! | [`allocate`](Nat::allocate) | nothing | one word of the block that this lane of threads hands out from |
//! | [`bind`](Nat::bind), [`free`](Nat::free) | the lock of the NID's block | that block; once per block and checkpoint, a set of dirty blocks |
//! | [`cancel`](Nat::cancel) | the block's lock, then the lock on returns | both: creates that fail are rare |
//! | [`begin_checkpoint`](Nat::begin_checkpoint) | one block's lock at a time | |
//!
//! Few things are global: the sets of blocks with free NIDs and of blocks not read yet, touched once for a lane's batch
//! of up to 455 NIDs; the lock on returned NIDs, for creates that failed and at the end of a checkpoint; the pool of
//! memory for entries, when a block is loaded. Locks are taken in this order: a block's; then one of the others, alone.
//!
//! # Policies
//!
//! [`Policy::Sharded`] is the default; the table above describes it. The feature `baselines` has two more to measure it
//! against: `Policy::KernelScan` does what Linux does, and `Policy::Clue` adds the techniques of the paper "CLUE:
//! Compact and Lazy Update for unlink in F2FS" to it, one by one. Those two keep a list of free NIDs under one lock, on
//! allocation and on binding a new NID, and take one lock more for every look-up and change, as the kernel's cache of
//! entries does; their users call `Nat::balance` in every create and unlink with the directory locked, as the kernel
//! does. [`Policy`] lists what still differs. All of them share the table, the checkpoint and the promise about freed
//! NIDs.
//!
//! # Memory
//!
//! [`Nat::bytes_per_nid`]: under 10 bytes with all blocks cached, entries included. With
//! [`cached_blocks`](NatConfig::cached_blocks) set, entries of blocks that are clean and were not used lately are given
//! up, and what stays is 0.6 bytes per NID.
//!
//! # Size and exhaustion
//!
//! A table of `n` blocks has `455 n` NIDs, of which `455 n - 3` can be allocated: 0, 1 and 2 belong to no node. When
//! none is free, [`allocate`](Nat::allocate) returns `None`, which is not an error of the table; [`free`](Nat::free)
//! never needs a NID, so deleting goes on, and a NID that was freed can be had after the next durable checkpoint. An
//! owner that answers `None` with a checkpoint and tries once more therefore fails only if every NID is in use.
//!
//! # Opening, and the order of a checkpoint's writes
//!
//! The table stands on the device twice. A *checkpoint record* of the owner says which copy of each block is current
//! (the version bitmap), and holds a journal of entries that are newer than their blocks. The record is the point from
//! which on a checkpoint counts: it must be written whole or not at all, so give it a checksum and two places in turn.
//!
//! Opening: read the newest record that is whole; give its bitmap, journal, `next_free_nid` and number of nodes to
//! [`Nat::new`]. The table's blocks are read when they are needed.
//!
//! A checkpoint, with no other call of the table until [`begin_checkpoint`](Nat::begin_checkpoint) has returned but
//! [`get`](Nat::get) (an owner that keeps others out for less calls [`freeze`](Nat::freeze), lets them go on, and calls
//! [`flush`](Nat::flush)):
//!
//! 1. Write every node whose entry says [`BlockAddr::NEW`](f2fs_format::BlockAddr::NEW), and [`bind`](Nat::bind) it to
//!    its block.
//! 2. [`begin_checkpoint`](Nat::begin_checkpoint). Write each block of [`NatFlush::blocks`] to the copy that it names:
//!    never the one that the last durable record calls current, so a crash up to here changes nothing.
//! 3. Flush the device: nodes and blocks are durable **before** the record that points to them.
//! 4. Write the record: [`NatFlush::version_bitmap`], [`NatFlush::journal`] (all of it: it replaces the one before),
//!    [`next_free_nid`](Nat::next_free_nid). Make it durable (flush, or a write with FUA).
//! 5. [`end_checkpoint`](Nat::end_checkpoint), and **not before 4 is durable**: it lets NIDs be handed out that were
//!    freed before 2. A NID that is bound again while the durable record still calls it bound would name two nodes
//!    after a crash.
//!
//! If a step fails, leave out the rest: the table is as after the last durable checkpoint plus what was changed since,
//! and the next `begin_checkpoint` takes everything over. An owner that has `f2fs-segment` too makes one record for
//! both.
//!
//! # Example
//!
//! ```
//! use f2fs_format::{BlockAddr, Nid};
//! use f2fs_nat::{EmptySource, Nat, NatConfig};
//! use std::sync::Arc;
//!
//! # fn main() -> Result<(), f2fs_nat::NatError> {
//! // A table of 8 blocks (3640 NIDs) that was never written.
//! let nat = Nat::new(NatConfig::new(8), Arc::new(EmptySource), vec![0], &[])?;
//!
//! let nid = nat.allocate()?.expect("3637 NIDs are free");
//! nat.bind(nid, nid, BlockAddr::NEW)?; // a new inode, not written yet
//! nat.bind(nid, nid, BlockAddr(5000))?; // written
//! assert_eq!(nat.get(nid)?.addr, BlockAddr(5000));
//! for used in nat.used() {
//!     let (nid, entry) = used?;
//!     println!("node {nid} of inode {} is in block {}", entry.ino, entry.addr);
//! }
//!
//! // One entry: the journal (of at most 38) has room for it, no block need be written.
//! let flush = nat.begin_checkpoint(38)?;
//! assert_eq!((flush.journal.len(), flush.blocks.len()), (1, 0));
//! // ... write `flush` and make it durable ...
//! nat.end_checkpoint();
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

#[cfg(feature = "baselines")]
mod baseline;
mod block_set;
mod checkpoint;
mod config;
mod entry;
mod error;
mod footprint;
mod frame;
mod load;
#[cfg(all(loom, feature = "baselines"))]
#[doc(hidden)]
pub mod models;
mod nat;
mod policy;
mod sharded;
mod size;
mod slot;
mod source;
mod stats;
mod table;
mod used;

pub use checkpoint::{NatBlockWrite, NatFlush};
pub use config::NatConfig;
pub use entry::NatEntry;
pub use error::{NatError, SourceError};
pub use load::LoadProgress;
pub use nat::Nat;
pub use policy::{Policy, UnknownPolicy};
pub use source::{EmptySource, NatSource};
pub use stats::NatStats;
pub use used::UsedNids;

/// The example of this crate's README, so that it is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
