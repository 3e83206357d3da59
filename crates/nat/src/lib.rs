//! The F2FS node address table and its free-NID allocator.
//!
//! Every node of a volume (inode, direct or indirect node) has a number, its NID. This crate owns the table that maps NIDs to
//! block addresses, in memory and in the form in which a checkpoint records it, and hands out numbers that are free. It does
//! no I/O of its own: blocks are read through [`NatSource`], and what a checkpoint has to write is returned to the caller.
//!
//! | Item | What it is |
//! |---|---|
//! | [`Nat`] | the table and the allocator |
//! | [`NatEntry`] | inode, address and version of one NID |
//! | [`NatSource`] | how blocks of the table are read |
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
//! What is global, and when it is touched: the sets of blocks with free NIDs and of blocks not read yet, once for a lane's
//! batch of up to 455 NIDs; the lock on returned NIDs, for creates that failed and at the end of a checkpoint; the pool of
//! memory for entries, when a block is loaded. Locks are taken in this order: a block's; then one of the others, alone.
//!
//! # Policies
//!
//! [`Policy::Sharded`] is the default and is what the table above describes. [`Policy::KernelScan`] does what Linux does,
//! and is the baseline that the others are measured against; [`Policy::Clue`] adds the techniques of the paper "CLUE: Compact
//! and Lazy Update for unlink in F2FS" to it, one by one. Those two keep a list of free NIDs under one lock, on allocation
//! and on binding a new NID; their users call [`Nat::balance`] in every create and unlink, as the kernel does. All of them
//! share the table, the checkpoint and the promise about freed NIDs.
//!
//! # Memory
//!
//! [`Nat::bytes_per_nid`]: under 10 bytes with all blocks cached, entries included. With
//! [`cached_blocks`](NatConfig::cached_blocks) set, entries of blocks that are clean and were not used lately are given up,
//! and what stays is 0.6 bytes per NID.
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

mod allocator;
mod block_set;
mod checkpoint;
mod config;
mod entry;
mod error;
mod footprint;
mod frame;
mod free_list;
mod listed;
mod load;
#[cfg(loom)]
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

pub use checkpoint::{NatBlockWrite, NatFlush};
pub use config::NatConfig;
pub use entry::NatEntry;
pub use error::{NatError, SourceError};
pub use load::LoadProgress;
pub use nat::Nat;
pub use policy::{Policy, UnknownPolicy};
pub use source::{EmptySource, NatSource};
pub use stats::NatStats;
