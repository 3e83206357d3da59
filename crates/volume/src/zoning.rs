//! The work of a volume on zones at its opening, at each checkpoint, and after a failed write. On other volumes all of
//! it does nothing.
//!
//! ```text
//!   open ─ roll-forward ─► settle: free zones that were written are reset; logs that are not where their zone goes on move to
//!                          the start of free ones; zones where no log stands are finished
//!   a checkpoint is frozen  ─► note_left: zones that are written in part and where no log stands
//!   and durable             ─► begin_anew: sections that it frees are reset before a log gets them; zones that were noted are finished
//!   a write fails ─► leave_failed: the logs that stand in its zone move on
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

use crate::VolumeError;
use crate::segments::Segments;
use crate::zones::Zones;

/// The zones that a volume lies on, and what becomes of them; or none.
#[derive(Debug)]
pub(crate) struct Zoning(pub(crate) Option<Zones>);

impl Zoning {
    /// Whether there are zones, and they are written to.
    #[inline]
    pub(crate) fn is_zoned(&self) -> bool {
        self.0.is_some()
    }

    /// Writes that are missing in front of others never come: the volume has stopped.
    pub(crate) fn give_up(&self) {
        if let Some(zones) = &self.0 {
            zones.give_up();
        }
    }

    /// Brings the zones together with what was opened.
    pub(crate) fn settle(&self, segments: &Segments) -> Result<(), VolumeError> {
        let Some(zones) = &self.0 else { return Ok(()) };
        let segments = segments.manager()?;
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
    pub(crate) fn note_left(&self, segments: &SegmentManager) {
        if let Some(zones) = &self.0 {
            zones.note_left(segments);
        }
    }

    /// The checkpoint is durable, and blocks that it frees are not yet given out: its zones are begun again. Gives the
    /// runs that it frees and that may be discarded, if somebody `discards` them.
    pub(crate) fn begin_anew(&self, segments: &SegmentManager, discards: bool) -> Vec<Run> {
        match &self.0 {
            Some(zones) => zones.begin_anew(segments),
            None if discards => segments.freed_by_checkpoint(),
            None => Vec::new(),
        }
    }

    /// Moves logs on whose zone takes no more writes since one failed.
    pub(crate) fn leave_failed(&self, segments: &Segments) {
        let (Some(zones), Ok(segments)) = (&self.0, segments.manager()) else { return };
        // If there is nowhere to move to, the next write fails as this one did.
        let _ = segments.leave_zones(|addr| zones.ordered.has_failed(addr.0.into()));
    }
}
