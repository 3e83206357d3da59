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
use f2fs_format::SegmentNo;

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
}

impl Volume {
    /// Discards free segments from a number on, 1 GiB at most, and waits for the device. Nothing else happens on the
    /// volume meanwhile. Segments that were emptied since the last checkpoint are left out, and so is a volume on zones,
    /// whose zones are begun anew when they are empty.
    ///
    /// # Errors
    /// [`VolumeError::Device`] if the device cannot discard, or fails to; nothing is lost then.
    /// [`VolumeError::ReadOnly`], [`VolumeError::Stopped`].
    pub fn trim(&self, from: SegmentNo) -> Result<TrimStep, VolumeError> {
        self.checkpoints().with_gate_closed(
            |_: &Op<'_>| Ok(()),
            |_, _| {
                if self.zoning.is_zoned() {
                    return Ok(TrimStep { blocks: 0, next: None });
                }
                let (runs, next) = self.segments.manager()?.free_runs(from, STEP);
                let discard = |run: &f2fs_segment::Run| Request::discard(u64::from(run.addr.0), run.len.into());
                for completion in self.device.execute_all(runs.iter().map(discard).collect())? {
                    completion.result?;
                }
                Ok(TrimStep { blocks: runs.iter().map(|run| u64::from(run.len)).sum(), next })
            },
        )
    }
}
