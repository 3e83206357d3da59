//! The chain of synced nodes behind the last checkpoint: its state in memory, and the threads that wait to write to it
//! (`sync.rs`, `recovery.rs`).
//!
//! # Locking
//!
//! `syncs` is a group commit: one thread writes for all who wait. Where syncs write side by side, [`Chain`] has their
//! order. The flags are atomic. See [`Room`] for its counts.

pub(crate) mod chain;
pub(crate) mod room;

use f2fs_format::checkpoint::Checkpoint;
use f2fs_sync::GroupCommit;
use f2fs_sync::atomic::{AtomicBool, Ordering};

use crate::synced::{SyncRequest, Synced};
use crate::{FsyncMode, VolumeError};
use chain::Chain;
use room::Room;

/// The chain behind the last checkpoint, as far as it is known.
#[derive(Debug)]
pub(crate) struct RollForward {
    /// Operations run although the volume may be open for reading; no checkpoint does.
    recovering: AtomicBool,
    /// There was no checkpoint since the volume was opened.
    pub(crate) opened: AtomicBool,
    pub(crate) room: Room,
    pub(crate) mode: FsyncMode,
    /// The order in which syncs write side by side; `None`: they form groups.
    pub(crate) chain: Option<Chain>,
    /// The threads that wait for the warm-node log.
    pub(crate) syncs: GroupCommit<SyncRequest, Result<Synced, VolumeError>>,
}

impl RollForward {
    pub(crate) fn new(checkpoint: &Checkpoint, mode: FsyncMode, side_by_side: bool) -> RollForward {
        RollForward {
            recovering: AtomicBool::new(false),
            opened: AtomicBool::new(true),
            room: Room::new(checkpoint.valid_blocks, checkpoint.valid_nodes.into()),
            mode,
            chain: side_by_side.then(Chain::new),
            syncs: GroupCommit::new(),
        }
    }

    /// Whether files are being brought back.
    pub(crate) fn is_recovering(&self) -> bool {
        self.recovering.load(Ordering::Acquire)
    }

    pub(crate) fn set_recovering(&self, yes: bool) {
        self.recovering.store(yes, Ordering::Release);
    }

    /// A checkpoint is frozen, with so much in use: the next chain will begin there. Syncs wait until it does.
    pub(crate) fn freeze(&self, blocks: u64, nodes: u64) {
        self.room.begin(blocks, nodes);
    }

    /// That checkpoint is durable: the chain begins again.
    pub(crate) fn begin(&self) {
        self.opened.store(false, Ordering::Release);
    }
}
