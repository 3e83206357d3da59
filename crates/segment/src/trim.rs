//! Free segments, for an owner that gives their room back to the device.

use f2fs_format::SegmentNo;

use crate::SegmentManager;
use crate::run::Run;

impl SegmentManager {
    /// Free segments from a number on, at most so many, as runs of blocks; and the segment where the next call goes on,
    /// `None` at the end. No checkpoint needs them, neither the last durable one nor one on its way: segments that were
    /// emptied since the last one are not among them.
    ///
    /// They are free at this moment. An owner that does anything with them lets nobody allocate meanwhile.
    #[must_use]
    pub fn free_runs(&self, from: SegmentNo, most: usize) -> (Vec<Run>, Option<SegmentNo>) {
        let segments = self.free.some(from, most);
        let next = segments.last().filter(|_| segments.len() == most).map(|last| SegmentNo(last.0 + 1));
        (self.runs_of(&segments), next)
    }
}
