//! Closing a volume: its last checkpoint, and the end of all changes.
//!
//! # Locking
//!
//! The gate is closed from before the checkpoint is frozen until the volume refuses changes.

use crate::{Op, Reason, StopCause, Volume, VolumeError};

impl Volume {
    /// Writes the last checkpoint of a volume that nothing lies on, marks the volume as cleanly closed, and refuses all
    /// further changes; others may open the device. A volume that was opened for reading only lets go of the device.
    ///
    /// # Errors
    /// As [`checkpoint_with`](Self::checkpoint_with).
    pub fn close(&self) -> Result<(), VolumeError> {
        self.close_with(|_| Ok(()))
    }

    /// The same, for a volume that something lies on: `above` as for [`checkpoint_with`](Self::checkpoint_with). No
    /// change comes between the checkpoint and the end of the volume.
    ///
    /// # Errors
    /// As there; the volume then stays open, and the device its.
    pub fn close_with<E: From<VolumeError>>(&self, above: impl FnOnce(&Op<'_>) -> Result<(), E>) -> Result<(), E> {
        if !self.read_only {
            self.with_gate_closed(above, |_, turn| {
                self.write_checkpoint(Reason::Unmount, turn)?;
                self.stop_for(StopCause::Closed);
                Ok(())
            })?;
        }
        drop(self.claim.lock().take());
        Ok(())
    }
}
