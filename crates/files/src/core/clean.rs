//! Cleaning of the volume, by an operation that needs room.

use f2fs_volume::{CleanReport, Reason, VictimPolicy};

use super::Core;
use crate::FsError;

/// Sections emptied between two checkpoints at most: what is moved becomes free only then.
pub(crate) const CLEANED_AT_ONCE: u32 = 16;

impl Core {
    /// Makes free segments: with operations running as far as that goes, alone for the rest. Several threads may be here, each
    /// with victims of its own.
    #[cfg_attr(feature = "tracing", tracing::instrument(level = "info", name = "clean", skip_all, ret, err))]
    pub(crate) fn clean(&self) -> Result<CleanReport, FsError> {
        // Also where there is nothing to gain, a volume that was stopped says so.
        drop(self.volume.begin()?);
        let goal = self.volume.cleaning_goal();
        let mut report = self.clean_beside(VictimPolicy::Greedy, goal)?;
        let stat = self.volume.stat();
        if report.victims > 0 || stat.prefree_segments > 0 {
            self.checkpoint(Reason::Sync)?;
            report.checkpoints += 1;
        }
        report.free_segments = self.volume.stat().free_segments;
        if report.free_segments >= goal {
            return Ok(report);
        }
        let alone = self.volume.clean_with(goal, |op| self.write_directories(op))?;
        report.victims += alone.victims;
        report.data_blocks += alone.data_blocks;
        report.node_blocks += alone.node_blocks;
        report.checkpoints += alone.checkpoints;
        report.free_segments = alone.free_segments;
        Ok(report)
    }

    /// Empties sections beside operations until `goal` segments are free or will be with the next checkpoint, one batch at most.
    fn clean_beside(&self, policy: VictimPolicy, goal: u32) -> Result<CleanReport, FsError> {
        let mut report = CleanReport::default();
        let mut gained = 0;
        for _ in 0..CLEANED_AT_ONCE {
            let stat = self.volume.stat();
            if stat.free_segments + stat.prefree_segments + gained >= goal {
                break;
            }
            let Some(step) = self.volume.clean_step(policy)? else { break };
            report.data_blocks += step.data_blocks;
            report.node_blocks += step.node_blocks;
            if step.segments == 0 {
                break;
            }
            report.victims += 1;
            // Sections of data are prefree at once and counted above; those of nodes follow with the checkpoint.
            gained += if step.node_blocks > 0 { step.segments } else { 0 };
        }
        Ok(report)
    }

    /// Moves blocks out of the way of writes to come, and makes their places usable.
    pub(crate) fn preclean(&self) -> Result<(), FsError> {
        if self.volume.preclean_step()? > 0 {
            self.checkpoint(Reason::Sync)?;
        }
        Ok(())
    }
}
