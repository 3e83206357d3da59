//! Nodes that are written before their checkpoint, aside from the logs that it records.
//!
//! A checkpoint that has many nodes to write begins while operations run. Syncs write nodes meanwhile, and roll-forward
//! follows theirs along the warm-node log: a node that is written ahead must not stand among them. So each node log has
//! one more lane for these nodes. To a checkpoint its segment is a dirty one of that kind, as for every lane
//! ([`crate::lanes`]); roll-forward never comes there.
//!
//! Nodes that are written ahead may change again before the checkpoint, and then take a second block. Hence room for
//! them is never taken from what is kept free for the checkpoint: none is given if users would find no space, or if
//! logs write into holes.
//!
//! # Locking
//!
//! Each of the three lanes is behind a lock of its own, taken as those of other lanes are, before a log's head.

use f2fs_format::summary::Summary;

use crate::run::{Run, Sink};
use crate::{Class, NodeLog, SegmentError, SegmentManager};

impl SegmentManager {
    /// Takes one block for each summary, for nodes that are written before their checkpoint, and appends where they are
    /// to `runs`. All or nothing; false: free sections are too few for that, and the nodes are left to the checkpoint.
    ///
    /// # Errors
    /// As [`allocate`](Self::allocate), without `NoSpace`.
    pub fn allocate_aside(
        &self,
        log: NodeLog,
        summaries: &[Summary],
        now: u64,
        runs: &mut Vec<Run>,
    ) -> Result<bool, SegmentError> {
        if !self.may_write_aside || self.need_ssr() {
            return Ok(false);
        }
        let mut lane = self.lanes.aside(log).lock();
        let Some(head) = self.open_lane(&mut lane, Class::User, log.log())? else { return Ok(false) };
        match self.take_from(head, Class::User, log.log(), summaries, now, &mut Sink::new(runs)) {
            Err(SegmentError::NoSpace { .. }) => Ok(false),
            taken => taken.map(|()| true),
        }
    }
}
