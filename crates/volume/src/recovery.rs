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
mod room;

use f2fs_sync::GroupCommit;
use f2fs_sync::atomic::{AtomicBool, Ordering};

pub use chain::ChainNode;
use room::Room;

use crate::sync::{SyncRequest, Synced};
use f2fs_format::checkpoint::Checkpoint;

use crate::{FsyncMode, VolumeError};

/// The chain behind the last checkpoint, as far as it is known.
#[derive(Debug)]
pub(crate) struct RollForward {
    /// Operations run although the volume may be open for reading; no checkpoint does.
    pub(crate) recovering: AtomicBool,
    /// There was no checkpoint since the volume was opened.
    pub(crate) opened: AtomicBool,
    pub(crate) room: Room,
    pub(crate) mode: FsyncMode,
    /// Who waits for the warm-node log.
    pub(crate) syncs: GroupCommit<SyncRequest, Result<Synced, VolumeError>>,
}

impl RollForward {
    pub(crate) fn new(checkpoint: &Checkpoint, mode: FsyncMode) -> RollForward {
        RollForward {
            recovering: AtomicBool::new(false),
            opened: AtomicBool::new(true),
            room: Room::new(checkpoint.valid_blocks, checkpoint.valid_nodes.into()),
            mode,
            syncs: GroupCommit::new(),
        }
    }

    /// A checkpoint is frozen, with so much in use: the next chain will begin there. Syncs wait until it does.
    pub(crate) fn freeze(&self, blocks: u64, nodes: u64) {
        self.room.begin(blocks, nodes);
    }

    /// That checkpoint is durable: the chain begins anew.
    pub(crate) fn begin(&self) {
        self.opened.store(false, Ordering::Release);
    }
}
