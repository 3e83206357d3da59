//! F2FS volumes: superblock, checkpoint packs, node store, cleaner, recovery, and format.
//!
//! A [`Volume`] lies between a block device and a namespace: nodes by their NIDs, data blocks by their addresses, and
//! checkpoints that make both durable together. Files and directories are the business of `f2fs-files`.
//!
//! # Locking model
//!
//! ```text
//! gate (per-core reader counts)  >  node page, parent before child  >  NAT block / log  >  segment
//! ```
//!
//! - **Gate.** Every operation that changes the volume holds an [`Op`], every one that reads data blocks by address a
//!   [`ReadOp`]: a count of its own core, no shared line. To freeze, a checkpoint closes the gate and waits until all
//!   are out; before and after the freeze it works beside operations. So a checkpoint holds no operation half done, and
//!   a block that a reader looks at is not reused under it.
//! - **Node pages.** One reader-writer lock each ([`Node`]). The maps that find them are split into 256 shards.
//! - **Syncs.** Files are synced in groups: one thread writes the nodes of all that wait to the warm-node log, in its
//!   order, and flushes ([`Syncs::file`]). They hold the gate meanwhile; the leader locks one page at a time. On a
//!   device of memory each thread writes its own nodes, beside the others ([`SyncWriters`]).
//! - **NAT, SIT.** State is owned by its on-disk block (see `f2fs-nat`, `f2fs-segment`).
//! - **Lines of the whole file system** (counted: `cargo xtask counting --table`). Creating, unlinking, renaming and
//!   overwriting write none in more than one operation of a hundred: counts of valid blocks, nodes and inodes, of dirty
//!   dentry blocks and of data written since the checkpoint are per processor, until so little is left that "full" has
//!   to be exact. A sync writes some every time: the queue of its group, or the next place of the chain and its slot
//!   there; the head of the one warm-node log; and the count of nodes that were logged.
//!
//! - **Cleaning** runs beside operations ([`Cleaning::step`], [`Cleaning::preclean`]): a block's owner is found
//!   without a lock held over I/O, and its slot is changed under the page's lock only if it still names the old place.
//!   So a writer must free the address that it finds in a slot *when it stores the new one* ([`Flight::land`],
//!   [`Slots::change`]), and not one that it read before. Caches of addresses ask [`Volume::moves`].
//!
//! # What opening takes
//!
//! | | for reading | for writing |
//! |---|---|---|
//! | is read | superblocks, checkpoint | these, and one copy of the SIT: 38 MiB for a TiB |
//! | memory for a TiB, empty | 0.5 MB, of the NAT | 2.9 MB |
//! | memory for a TiB, every segment in use | the same | 130 MB: maps, age and victim index of 524,288 segments |
//!
//! Blocks of the NAT and nodes come when they are asked for; of the SIT, a volume that is open for reading reads a
//! block when somebody asks about one of its segments, and keeps up to 4 MiB of them. The SIT is read on
//! [`VolumeOptions::threads`] threads, which end before the volume is open. Seen once on a virtual machine with two busy
//! processors, a new volume of 16 TiB in a sparse file: `f2fs ls` took 0.01 s of processor time and 14 MB in all, `f2fs
//! mkdir` 0.5 s and 53 MB.
//!
//! # On zones
//!
//! Sections of a volume on a zoned device are its zones. Between such a volume and the device stands an
//! [`OrderedZones`](f2fs_device::OrderedZones), so writes may be submitted in any order. The layer above the volume
//! calls [`Recovery::settle_zones`] after it has recovered what was synced, and before it writes.
//!
//! # What is never done
//!
//! A block or NID that was freed is not handed out again before the checkpoint that frees it is durable; nothing that
//! the last checkpoint speaks of is overwritten with other bytes (see [`Checkpoints::write_with`]). So nodes and data
//! that a sync wrote behind the checkpoint stay until the next one. Files that are being recovered stay as well.
//!
//! Partial cleaning keeps to that in two ways. Within a request a valid run is only *rewritten*: its bytes go to the
//! place where they are. They have to be older than the last durable checkpoint. So each block holds what it held, even
//! if the write is torn. A run that is to be *moved* is moved ahead: its old place stays taken until a checkpoint that
//! knows of the move is durable, and is written only then. So after a crash every block that the durable checkpoint
//! names holds what it held.
#![forbid(unsafe_code)]

mod allocation;
mod attendance;
mod balance;
mod batched_count;
mod blocks;
mod brake;
mod checkpoint;
mod cleaner;
mod clock;
mod damage;
mod data_blocks;
pub mod devices;
mod dirty_nodes;
mod epoch;
mod error;
mod examine;
mod flight;
pub mod format;
mod journal;
mod journal_trouble;
mod journaling;
mod kept_sections;
mod last_checkpoint;
mod life;
mod logs;
#[cfg(loom)]
pub mod models;
mod moves;
mod name_versions;
mod nids;
mod node;
mod node_log;
mod node_page;
mod node_store;
mod nodes;
mod op;
mod options;
mod orphans;
mod pack;
mod precleaner;
mod pressure;
mod recent_nodes;
mod recovery;
mod roll_forward;
#[cfg(all(test, not(any(loom, shuttle))))]
mod samples;
mod segments;
mod sit;
mod slots;
mod space;
mod stat;
mod steps;
mod stop;
mod stop_cause;
mod superblock;
mod sync;
mod synced;
mod table_source;
pub mod tree;
mod trim;
mod unflushed_moves;
mod victims;
mod views;
mod volume;
mod write_stat;
mod zones;
mod zoning;

pub use allocation::{Allocation, UnknownAllocation};
pub use balance::{Balance, Need};
pub use checkpoint::{CheckpointReport, Checkpoints, Reason};
pub use cleaner::{CleanReport, CleanStep, Cleaning};
pub use damage::Damage;
pub use data_blocks::DataBlocks;
pub use error::VolumeError;
pub use examine::{Examination, Examined, Problem, examine};
pub use flight::{Flight, Next, Piece, Target};
pub use journal::names::ChangedNames;
pub use journal::{JournalArea, JournalMode};
pub use journal_trouble::JournalTrouble;
pub use journaling::{BoundName, FoundJournal, GivenUp, JournalContent, JournalRescue, JournaledNodes, Journaling};
pub use nids::Nids;
pub use node::{Node, NodeRead, NodeWrite};
pub use nodes::{NewNode, Nodes};
pub use op::{Alone, Op, ReadOp};
pub use options::{FsyncMode, SyncWriters, VolumeOptions};
pub use orphans::OrphanRoom;
pub use recovery::{ChainNode, Recovery};
pub use slots::Slots;
pub use stat::VolumeStat;
pub use stop_cause::StopCause;
pub use sync::{NameClosure, Syncs};
pub use synced::{MustCheckpoint, Synced};
pub use trim::{Trim, TrimStep};
pub use volume::Volume;
pub use write_stat::WriteStat;

pub use f2fs_segment::cost::CostModel;
pub use f2fs_segment::{AgeThreshold, Change, VictimPolicy};

/// The example of this crate's README, so that it is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
