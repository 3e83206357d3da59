//! The room of free segments, given back to the device: what Linux does for `fstrim`.
//!
//! A segment that a checkpoint frees is discarded by that checkpoint. What a program wrote that ended before its
//! checkpoint was never freed: to the volume it was never there, and the device keeps it.
//!
//! # Locking
//!
//! A step has the turn of checkpoints and the gate closed, so nobody takes a free segment while it is discarded. It is
//! short, and operations run between two of them.

use f2fs_device::Request;
use f2fs_format::{BLOCKS_PER_SEGMENT, SegmentNo};

use crate::{Op, Volume, VolumeError};

/// Segments of a step: 1 GiB.
const STEP: usize = 512;

/// A step of [`Volume::trim`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TrimStep {
    /// Blocks that were given back.
    pub blocks: u64,
    /// Where the next step begins; `None`: all is done.
    pub next: Option<SegmentNo>,
    /// The last run of free segments was given back, and may go on there.
    pub goes_on: bool,
}

/// What [`Volume::trim`] gives back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Trim {
    /// The first segment that is looked at.
    pub from: SegmentNo,
    /// The first one behind those.
    pub until: SegmentNo,
    /// Free segments that lie together and are fewer blocks than this stay. Of more than 1 GiB it is 1 GiB.
    pub least: u64,
    /// The step before [said so](TrimStep::goes_on).
    pub goes_on: bool,
}

impl Trim {
    /// All free segments of these, as the first step.
    #[must_use]
    pub fn new(from: SegmentNo, until: SegmentNo) -> Trim {
        Trim { from, until, least: 0, goes_on: false }
    }

    /// The same, but nothing that is shorter than so many blocks.
    #[must_use]
    pub fn least(self, least: u64) -> Trim {
        Trim { least, ..self }
    }

    /// The same behind a step that said so.
    #[must_use]
    pub fn goes_on(self, goes_on: bool) -> Trim {
        Trim { goes_on, ..self }
    }
}

impl Volume {
    /// Does one step: discards free segments, 1 GiB of them at most, and waits for the device. Nothing else happens on
    /// the volume meanwhile. Segments that were emptied since the last checkpoint are left out, and so is a volume on zones,
    /// whose zones are begun anew when they are empty.
    ///
    /// # Errors
    /// [`VolumeError::Device`] if the device cannot discard, or fails to; nothing is lost then.
    /// [`VolumeError::ReadOnly`], [`VolumeError::Stopped`].
    pub fn trim(&self, what: Trim) -> Result<TrimStep, VolumeError> {
        self.checkpoints().with_gate_closed(
            |_: &Op<'_>| Ok(()),
            |_, _| {
                if self.zoning.is_zoned() {
                    return Ok(TrimStep { blocks: 0, next: None, goes_on: false });
                }
                let (mut runs, mut next) = self.segments.manager()?.free_runs(what.from, STEP);
                let goes_on = next.is_some() && runs.len() == 1;
                if next.is_some()
                    && !goes_on
                    && let Some(last) = runs.pop()
                {
                    // How long it is, the next step sees, which begins with it.
                    next = self.geometry.locate(last.addr).map(|(segment, _)| segment);
                }
                let start = self.geometry.block_at(what.from, 0);
                let end =
                    u64::from(self.geometry.main_blkaddr.0) + u64::from(what.until.0) * u64::from(BLOCKS_PER_SEGMENT);
                let least = what.least.clamp(1, STEP as u64 * u64::from(BLOCKS_PER_SEGMENT));
                let within = |run: &f2fs_segment::Run| {
                    let first = u64::from(run.addr.0);
                    let blocks = end.saturating_sub(first).min(run.len.into());
                    let is_long = blocks >= least || blocks > 0 && what.goes_on && run.addr == start;
                    is_long.then_some((first, blocks))
                };
                let runs: Vec<(u64, u64)> = runs.iter().filter_map(within).collect();
                let discards = runs.iter().map(|&(first, blocks)| Request::discard(first, blocks));
                for completion in self.device.execute_all(discards.collect())? {
                    completion.result?;
                }
                let next = next.filter(|next| *next < what.until);
                Ok(TrimStep { blocks: runs.iter().map(|(_, blocks)| blocks).sum(), next, goes_on })
            },
        )
    }
}
