//! Roll-forward, as far as it is the volume's business: what was written behind the checkpoint, and how it comes into use.
//!
//! ```text
//! checkpoint | inode 5 | node of 5 (fsync) | inode 9 (fsync, dentry) | node of 5 | (not of this checkpoint)
//!            ^ where the warm-node log goes on                                     ^ the chain ends
//! ```
//!
//! Each node names the block that its log hands out next, also across the end of a segment; a node belongs to the chain if it
//! carries the version of the checkpoint (`fs/f2fs/recovery.c`). What lies on the volume reads the chain
//! ([`Volume::synced_nodes`]), has its blocks kept ([`Volume::begin_recovery`]), changes its files through ordinary operations
//! and the `adopt` functions, and ends with a checkpoint. Until that is durable nothing of the chain is overwritten, so a
//! crash meanwhile changes nothing.
//!
//! ```text
//!   open --begin_recovery--> recovering --end_recovery--> open
//!            (also when open for reading)   (what is in memory stays there if open for reading)
//! ```

mod adopt;
mod chain;

use f2fs_sync::GroupCommit;
use f2fs_sync::atomic::{AtomicBool, AtomicU64};

pub use chain::ChainNode;

use crate::sync::{SyncRequest, Synced};
use crate::{FsyncMode, VolumeError};

/// The chain behind the last checkpoint, as far as it is known.
#[derive(Debug)]
pub(crate) struct RollForward {
    /// Operations run although the volume may be open for reading; no checkpoint does.
    pub(crate) recovering: AtomicBool,
    /// Valid blocks at the last checkpoint.
    pub(crate) checkpointed_blocks: AtomicU64,
    /// There was no checkpoint since the volume was opened.
    pub(crate) opened: AtomicBool,
    /// Nodes that syncs have written since.
    pub(crate) logged: AtomicU64,
    pub(crate) mode: FsyncMode,
    /// Who waits for the warm-node log.
    pub(crate) syncs: GroupCommit<SyncRequest, Result<Synced, VolumeError>>,
}
