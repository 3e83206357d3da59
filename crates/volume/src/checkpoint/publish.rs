//! Publication: the checkpoint is durable, and the blocks and NIDs that it frees can be used.
//!
//! ```text
//!   zones begin again -> discards -> freed NIDs -> freed blocks and prefree segments -> segments that were cleared ahead
//! ```
//!
//! Not a step earlier: a crash before the pack is durable needs all of it as it was. Discards come before anybody may
//! write there.
//!
//! # Locking
//!
//! Operations run. The NAT and the segment manager lock for themselves.

use f2fs_device::Request;
use f2fs_format::{BLOCKS_PER_SEGMENT, SegmentNo};
use f2fs_segment::Run;
use f2fs_sync::protocol_step;

use super::{CheckpointReport, Checkpoints};
use crate::VolumeError;
use crate::write_stat::Count;

impl Checkpoints<'_> {
    /// The checkpoint is durable: the blocks, segments and NIDs that it frees can be used. `cleared`: segments that the
    /// precleaner had cleared when it was frozen.
    pub(super) fn publish(self, report: &mut CheckpointReport, cleared: &[SegmentNo]) -> Result<(), VolumeError> {
        let segments = self.0.segments.manager()?;
        let discarded = self.0.zoning.begin_anew(segments, self.0.discards);
        if self.0.discards {
            // Before anybody may write there. It is a favour to the device; that it fails loses nothing.
            let discard = |run: &Run| Request::discard(u64::from(run.addr.0), run.len.into());
            let discards = self.0.device.submit(discarded.iter().map(discard).collect());
            protocol_step!("checkpoint_waits_for_discards", drop(discards.wait()));
        }
        self.0.nat.end_checkpoint();
        let freed = segments.end_checkpoint();
        report.freed_segments = freed.iter().map(|run| u64::from(run.len)).sum::<u64>() / u64::from(BLOCKS_PER_SEGMENT);
        self.0.victims.end_freed(|segment| self.0.segments.info(segment).is_ok_and(|info| info.victim));
        for segment in cleared {
            // Its number came from the manager itself.
            let _ = segments.release_segment(*segment);
        }
        self.0.pressure.tell(&self.0.store, &self.0.segments);
        self.0.written.add(Count::Checkpoints, 1);
        self.0.written.add(Count::Nodes, report.nodes);
        self.0.written.add(Count::Tables, report.table_blocks);
        self.0.written.add(Count::Pack, report.pack_blocks);
        Ok(())
    }
}
