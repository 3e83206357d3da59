//! When a checkpoint or a cleaning is due.
//!
//! The rule that must never break: dirty blocks fit into the free segments, so that a checkpoint can always be written.
//! Users' data leaves that much free ([`f2fs_segment::Class`]); nodes and directory blocks become dirty without asking,
//! so each operation asks [`Balance::need`] before it begins.

use f2fs_segment::Class;

use crate::Volume;

/// The work that a volume needs before the next operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Nothing.
    Nothing,
    /// A checkpoint: many dirty nodes, segments that wait for one to become free, or a journal that fills.
    Checkpoint,
    /// Runs moved out of the way of writes ([`Cleaning::preclean`](crate::Cleaning::preclean)), and a checkpoint.
    Preclean,
    /// A cleaning ([`Cleaning::clean_until`](crate::Cleaning::clean_until)): few free segments, and none that only wait.
    Cleaning,
}

/// Free sections beyond the floor at which something is done.
pub(crate) const MARGIN: u32 = 2;

/// What a volume needs so that it can go on: [`Volume::balance`].
#[derive(Clone, Copy, Debug)]
pub struct Balance<'a>(pub(crate) &'a Volume);

impl Balance<'_> {
    /// Waits a moment, if operations change nodes faster than the checkpoint that is being written can follow. Cheap;
    /// called before each operation that changes something, with nothing locked.
    pub fn keep_pace(self) {
        self.0.brake.wait();
    }

    /// The work that should be done before the next operation. Cheap; ask it before each one, with nothing locked.
    #[must_use]
    pub fn need(self) -> Need {
        match self.needs_in_turn() {
            // One is being written. Blocks that become dirty meanwhile are left to the next one, as long as there is
            // room and memory for them.
            Need::Checkpoint if self.0.epochs.is_taken() && self.may_go_on() => Need::Nothing,
            need => need,
        }
    }

    /// Whether operations may go on although a checkpoint is due, as one is being written.
    fn may_go_on(self) -> bool {
        let Ok(segments) = self.0.segments.manager() else { return true };
        segments.free_sections() > segments.floor(Class::User) + MARGIN && self.0.pressure.may_go_on(&self.0.store)
    }

    /// The same for whoever has the turn to write a checkpoint.
    pub(crate) fn needs_in_turn(self) -> Need {
        if self.0.roll_forward.is_recovering() {
            return Need::Nothing;
        }
        if self.0.pressure.has_many_nodes(&self.0.store) || self.0.attached_journal.is_short() {
            return Need::Checkpoint;
        }
        let Ok(segments) = self.0.segments.manager() else { return Need::Nothing };
        // Dirty blocks must always fit into free segments, or the next checkpoint cannot be written.
        if segments.free_sections() > segments.floor(Class::User) + MARGIN {
            return if self.0.precleaner.is_due(segments) { Need::Preclean } else { Need::Nothing };
        }
        if segments.dirty_sections() > MARGIN || segments.prefree_segments() > 0 {
            return Need::Checkpoint;
        }
        if self.0.pressure.cleaning_may_help(&self.0.space) { Need::Cleaning } else { Need::Nothing }
    }

    /// Free segments that a cleaning should aim at; 0 for a volume that is open for reading.
    #[must_use]
    pub fn cleaning_goal(self) -> u32 {
        let Ok(segments) = self.0.segments.manager() else { return 0 };
        let sections = (segments.floor(Class::User) + 2 * MARGIN).max(segments.reserved_sections());
        sections * segments.section_segments()
    }

    /// Whether a checkpoint or a cleaning would make room for an operation that found none.
    #[must_use]
    pub fn reclaim_may_help(self) -> bool {
        !self.0.roll_forward.is_recovering()
            && (self.0.segments.free().1 > 0
                || self.0.store.dirty() > 0
                || self.0.pressure.cleaning_may_help(&self.0.space))
    }

    /// Counts directory blocks that wait for the checkpoint.
    pub fn add_dirty_dentries(self, blocks: u64) {
        self.0.pressure.count_dentries(blocks as i64, &self.0.store, &self.0.segments);
    }

    /// Counts directory blocks that were written, or freed before.
    pub fn sub_dirty_dentries(self, blocks: u64) {
        self.0.pressure.count_dentries((blocks as i64).wrapping_neg(), &self.0.store, &self.0.segments);
    }
}
