//! The checkpoint: how the state in memory becomes durable, all of it or nothing.
//!
//! ```text
//! gate open:     dirty nodes are written ahead, until few are left (`write_ahead`)
//! gate closed:   above: directory blocks -> nodes (dnodes, then indirect) get their places -> SIT, NAT, SSA and counts are frozen
//! gate open:     nodes, SIT, NAT, SSA -> device flush -> pack without its last block -> device flush -> last block of the pack, durable
//!                -> discards -> what was freed before the freeze can be used
//! ```
//!
//! The first flush makes everything that the pack speaks of durable before the pack can become valid; the pack becomes
//! valid with its last block. Freed NIDs, prefree segments and overwritten table copies can be used after that, not
//! before. The packs alternate, so that the previous checkpoint stays whole until then.
//!
//! From the freeze on operations run again. What they change belongs to the next checkpoint
//! ([`Epochs`](crate::epoch::Epochs)): the frozen nodes and tables are copies, and NIDs and blocks that are freed
//! meanwhile stay apart from those that this checkpoint frees. Syncs wait.
//!
//! An error while directory blocks are written leaves everything as it was, and the checkpoint can be tried again. An
//! error from the first node on stops the volume: memory may be ahead of the tables, and only a new opening finds the
//! state on the device.
//!
//! | Module | Its part |
//! |---|---|
//! | this | who writes a checkpoint, and when: the calls, the turn, the gate |
//! | `write_ahead` | with the gate open: dirty nodes, until few are left; by several threads when the volume is closed |
//! | `freeze` | with the gate closed: nodes get their places, tables and counts are taken as they are |
//! | `write` | with the gate open: nodes, tables, flush, pack, flush, the pack's last block |
//! | `publish` | the checkpoint is durable: what it frees can be used |
//!
//! # Locking
//!
//! One checkpoint runs at a time: it takes the turn ([`Epochs::turn`](crate::epoch::Epochs::turn)) before it closes the
//! gate. No other lock is held from the freeze to the publication.

mod freeze;
mod publish;
mod write;
mod write_ahead;

use std::time::{Duration, Instant};

use f2fs_sync::protocol_never;

use crate::epoch::Turn;
use crate::stop_cause::StopCause;
use crate::write_stat::Count;
use crate::{Need, Op, Volume, VolumeError};

/// Why a checkpoint is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// A checkpoint of a volume that stays open.
    Sync,
    /// The volume is closed: the pack says so (`CP_UMOUNT_FLAG`), and carries the node summaries.
    Unmount,
}

/// The counts of a checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckpointReport {
    /// Its version.
    pub version: u64,
    /// Node blocks written.
    pub nodes: u64,
    /// Of these, the ones that were left to the freeze: operations were kept out while they got their places.
    pub frozen_nodes: u64,
    /// Blocks of SIT, NAT and SSA written.
    pub table_blocks: u64,
    /// Blocks of the pack.
    pub pack_blocks: u64,
    /// Segments that became free.
    pub freed_segments: u64,
    /// How long operations were kept out: from when the gate began to close until it was open again. Zero if all of the
    /// checkpoint was written with the gate closed, as when the volume is closed or cleaned in its last reserve.
    pub pause: Duration,
}

/// The checkpoints of a volume: [`Volume::checkpoints`].
#[derive(Clone, Copy, Debug)]
pub struct Checkpoints<'a>(pub(crate) &'a Volume);

impl Checkpoints<'_> {
    /// Writes a checkpoint of a volume that nothing lies on.
    ///
    /// # Errors
    /// As [`write_with`](Self::write_with).
    pub fn write(self, reason: Reason) -> Result<CheckpointReport, VolumeError> {
        self.write_with(reason, || Ok(()), |_| Ok(()))
    }

    /// Writes a checkpoint that has blocks of the layer above the volume (directories). `ahead` writes dirty ones of
    /// them while operations run, perhaps several times. `above` writes the rest, with the gate closed, through the
    /// [`Op`] that it gets.
    ///
    /// # Errors
    /// Errors of `ahead` and `above`, and [`VolumeError::ReadOnly`], leave everything as it was. Every other error
    /// stops the volume.
    pub fn write_with<E: From<VolumeError>>(
        self,
        reason: Reason,
        ahead: impl FnMut() -> Result<(), E>,
        above: impl FnOnce(&Op<'_>) -> Result<(), E>,
    ) -> Result<CheckpointReport, E> {
        self.check()?;
        let turn = self.0.epochs.turn();
        self.write_in_turn(&turn, reason, ahead, above)
    }

    /// As [`write_with`](Self::write_with), unless what was changed in this epoch
    /// ([`Volume::epoch`]) is durable by then: `None` then.
    ///
    /// # Errors
    /// As there.
    pub fn write_past<E: From<VolumeError>>(
        self,
        epoch: u64,
        ahead: impl FnMut() -> Result<(), E>,
        above: impl FnOnce(&Op<'_>) -> Result<(), E>,
    ) -> Result<Option<CheckpointReport>, E> {
        let written = self.write_unless(|| self.0.epoch() != epoch, ahead, above)?;
        self.0.written.add(Count::SyncCheckpoints, u64::from(written.is_some()));
        Ok(written)
    }

    /// As [`write_with`](Self::write_with), unless none is [needed](crate::Balance::need) any more when it is this
    /// thread's turn: `None` then.
    ///
    /// # Errors
    /// As [`write_with`](Self::write_with).
    pub fn write_if_needed<E: From<VolumeError>>(
        self,
        ahead: impl FnMut() -> Result<(), E>,
        above: impl FnOnce(&Op<'_>) -> Result<(), E>,
    ) -> Result<Option<CheckpointReport>, E> {
        self.write_unless(|| self.0.balance().needs_in_turn() != Need::Checkpoint, ahead, above)
    }

    fn write_unless<E: From<VolumeError>>(
        self,
        done: impl FnOnce() -> bool,
        ahead: impl FnMut() -> Result<(), E>,
        above: impl FnOnce(&Op<'_>) -> Result<(), E>,
    ) -> Result<Option<CheckpointReport>, E> {
        self.check()?;
        let turn = self.0.epochs.turn();
        // The one that was waited for may have failed.
        self.0.check_writable()?;
        if done() {
            return Ok(None);
        }
        self.write_in_turn(&turn, Reason::Sync, ahead, above).map(Some)
    }

    fn check(self) -> Result<(), VolumeError> {
        if self.0.roll_forward.is_recovering() { Err(VolumeError::ReadOnly) } else { self.0.check_writable() }
    }

    fn write_in_turn<E: From<VolumeError>>(
        self,
        turn: &Turn<'_>,
        reason: Reason,
        ahead: impl FnMut() -> Result<(), E>,
        above: impl FnOnce(&Op<'_>) -> Result<(), E>,
    ) -> Result<CheckpointReport, E> {
        let ahead = self.write_ahead(1, ahead)?;
        let begun = Instant::now();
        let mut closed = Some(self.0.gate.close());
        self.0.check_writable()?;
        let op = Op::within_checkpoint(self.0);
        above(&op)?;
        protocol_never!("checkpoint_freezes_behind_the_gate", closed = None);
        let frozen = self.freeze(turn, ahead).inspect_err(|error| self.0.stop(error))?;
        drop(op);
        drop(closed.take());
        let pause = begun.elapsed();
        Ok(CheckpointReport { pause, ..self.write_frozen(reason, frozen)? })
    }

    /// Writes the last checkpoint of a volume, and ends it. It is written twice, so that both packs hold it, as Linux
    /// leaves them: whatever becomes of one of them, the other has everything. Nodes are written ahead on all threads that the volume may
    /// have: nobody is expected to need the processors.
    pub(crate) fn write_last<E: From<VolumeError>>(
        self,
        ahead: impl FnMut() -> Result<(), E>,
        above: impl FnOnce(&Op<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.check()?;
        let turn = self.0.epochs.turn();
        let ahead = self.write_ahead(self.0.threads, ahead)?;
        let _closed = self.0.gate.close();
        self.0.check_writable()?;
        let op = Op::within_checkpoint(self.0);
        above(&op)?;
        self.write_behind_gate(Reason::Unmount, &turn, ahead)?;
        // If this fails, one pack has it, as after any other checkpoint: what is durable stays so.
        let _ = self.write_behind_gate(Reason::Unmount, &turn, 0);
        self.0.stop_for(StopCause::Closed);
        Ok(())
    }

    /// Runs `above` and then `work` with the gate closed.
    pub(crate) fn with_gate_closed<T, E: From<VolumeError>>(
        self,
        above: impl FnOnce(&Op<'_>) -> Result<(), E>,
        work: impl FnOnce(&Op<'_>, &Turn<'_>) -> Result<T, VolumeError>,
    ) -> Result<T, E> {
        self.check()?;
        let turn = self.0.epochs.turn();
        let _closed = self.0.gate.close();
        self.0.check_writable()?;
        let op = Op::within_checkpoint(self.0);
        above(&op)?;
        Ok(work(&op, &turn)?)
    }

    /// Writes a checkpoint for a caller that closed the gate, of what there is; `ahead` nodes were written ahead. An
    /// error stops the volume.
    pub(crate) fn write_behind_gate(
        self,
        reason: Reason,
        turn: &Turn<'_>,
        ahead: u64,
    ) -> Result<CheckpointReport, VolumeError> {
        let frozen = self.freeze(turn, ahead).inspect_err(|error| self.0.stop(error))?;
        self.write_frozen(reason, frozen)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
