//! The work of a volume on zones at its opening, at each checkpoint, and after a failed write. On other volumes all of
//! it does nothing.
//!
//! ```text
//!   open ─ roll-forward ─► settle_zones: free zones that were written are reset; logs that are not where their zone goes on move to
//!                          the start of free ones; zones where no log stands are finished
//!   a checkpoint is frozen  ─► note_left_zones: zones that are written in part and where no log stands
//!   and durable             ─► begin_zones_anew: sections that it frees are reset before a log gets them; zones that were noted are finished
//!   a write fails ─► leave_failed_zones: the logs that stand in its zone move on
//! ```
//!
//! The kernel does the same at a mount (`f2fs_check_and_fix_write_pointer` in `fs/f2fs/segment.c`).
//!
//! # Locking
//!
//! Nothing is held here. Zones are reset and finished where nothing writes to them.

use f2fs_format::BlockAddr;
use f2fs_segment::{Run, SegmentManager};
use f2fs_sync::{protocol_step, protocol_value};

use crate::blocks::WriteBatch;
use crate::{Volume, VolumeError};

impl Volume {
    /// Blocks on their way to the device, in requests that do not leave their zone.
    pub(crate) fn batch(&self) -> WriteBatch<'_> {
        let batch = WriteBatch::new(&*self.device);
        if self.zones.is_some() { batch.within_segments(self.geometry.main_blkaddr) } else { batch }
    }

    /// Brings the zones together with what was opened; does nothing on a volume without zones, or one that is open for
    /// reading. Call it after synced files are recovered, and before anything is written; not if the recovery failed.
    ///
    /// # Errors
    /// [`VolumeError::Segment`] if no section is free for a log that has to move; [`VolumeError::Device`].
    pub fn settle_zones(&self) -> Result<(), VolumeError> {
        let Some(zones) = &self.zones else { return Ok(()) };
        let segments = self.segments.manager()?;
        for zone in zones.sequential()? {
            let section = zones.section_of(zone.start);
            if zone.write_pointer() != Some(zone.start) && segments.is_section_free(section) {
                protocol_step!("zones_written_free_zone_is_kept", zones.reset(segments, zone.start));
            }
        }
        let off = |addr: BlockAddr| {
            let block = u64::from(addr.0);
            zones.ordered.is_sequential(block) && zones.ordered.write_pointer(block) != Some(block)
        };
        protocol_value!("zones_log_off_its_pointer_stays", segments.leave_zones(off)?, 0);
        zones.note_left(segments);
        zones.finish_left();
        Ok(())
    }

    /// Zones that no log goes on writing are noted, with the gate closed: the checkpoint that is being frozen finishes
    /// them.
    pub(crate) fn note_left_zones(&self) {
        if let (Some(zones), Ok(segments)) = (&self.zones, self.segments.manager()) {
            zones.note_left(segments);
        }
    }

    /// The checkpoint is durable, and blocks that it frees are not yet given out: its zones are begun again. Gives the
    /// runs that it frees and that may be discarded.
    pub(crate) fn begin_zones_anew(&self, segments: &SegmentManager) -> Vec<Run> {
        match &self.zones {
            Some(zones) => zones.begin_anew(segments),
            None if self.discards => segments.freed_by_checkpoint(),
            None => Vec::new(),
        }
    }

    /// Moves logs on whose zone takes no more writes since one failed.
    pub(crate) fn leave_failed_zones(&self) {
        let Some(zones) = &self.zones else { return };
        let Ok(segments) = self.segments.manager() else { return };
        // If there is nowhere to move to, the next write fails as this one did.
        let _ = segments.leave_zones(|addr| zones.ordered.has_failed(addr.0.into()));
    }
}
