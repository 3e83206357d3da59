//! When a checkpoint or a cleaning is due.
//!
//! The rule that must never break: dirty blocks fit into the free segments, so that a checkpoint can always be written.
//! Users' data leaves that much free ([`f2fs_segment::Class`]); nodes and directory blocks become dirty without asking,
//! so each operation asks [`Volume::need`] before it begins.

use f2fs_format::Nid;
use f2fs_segment::Class;

use crate::Volume;

/// The work that a volume needs before the next operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Nothing.
    Nothing,
    /// A checkpoint: many dirty nodes, segments that wait for one to become free, or a journal that fills.
    Checkpoint,
    /// Runs moved out of the way of writes ([`Volume::preclean_step`]), and a checkpoint.
    Preclean,
    /// A cleaning ([`Volume::clean_with`]): few free segments, and none that only wait.
    Cleaning,
}

/// Free sections beyond the floor at which something is done.
pub(crate) const MARGIN: u32 = 2;

impl Volume {
    /// The work that should be done before the next operation. Cheap; ask it before each one, with nothing locked.
    #[must_use]
    pub fn need(&self, hint: Nid) -> Need {
        match self.needs_in_turn(hint) {
            // One is being written. Blocks that become dirty meanwhile are left to the next one, as long as there is
            // room and memory for them.
            Need::Checkpoint if self.epochs.is_taken() && self.may_go_on() => Need::Nothing,
            need => need,
        }
    }

    /// Whether operations may go on although a checkpoint is due, as one is being written.
    fn may_go_on(&self) -> bool {
        let Ok(segments) = self.segments.manager() else { return true };
        segments.free_sections() > segments.floor(Class::User) + MARGIN && self.pressure.may_go_on(&self.store)
    }

    /// The same for whoever has the turn to write a checkpoint.
    pub(crate) fn needs_in_turn(&self, hint: Nid) -> Need {
        if self.roll_forward.is_recovering() {
            return Need::Nothing;
        }
        if self.pressure.has_many_nodes(&self.store, hint) || self.journal.is_filling() {
            return Need::Checkpoint;
        }
        let Ok(segments) = self.segments.manager() else { return Need::Nothing };
        // Dirty blocks must always fit into free segments, or the next checkpoint cannot be written.
        if segments.free_sections() > segments.floor(Class::User) + MARGIN {
            return if self.precleaner.is_due(segments) { Need::Preclean } else { Need::Nothing };
        }
        if segments.dirty_sections() > MARGIN || segments.prefree_segments() > 0 {
            return Need::Checkpoint;
        }
        if self.pressure.cleaning_may_help(&self.space) { Need::Cleaning } else { Need::Nothing }
    }

    /// Free segments that a cleaning should aim at; 0 for a volume that is open for reading.
    #[must_use]
    pub fn cleaning_goal(&self) -> u32 {
        let Ok(segments) = self.segments.manager() else { return 0 };
        let sections = (segments.floor(Class::User) + 2 * MARGIN).max(segments.reserved_sections());
        sections * segments.section_segments()
    }

    /// Whether a checkpoint or a cleaning would make room for an operation that found none.
    #[must_use]
    pub fn reclaim_may_help(&self) -> bool {
        !self.roll_forward.is_recovering()
            && (self.segments.free().1 > 0 || self.store.dirty() > 0 || self.pressure.cleaning_may_help(&self.space))
    }

    /// Counts directory blocks that wait for the checkpoint.
    pub fn add_dirty_dentries(&self, blocks: u64) {
        self.pressure.count_dentries(blocks as i64, &self.store, &self.segments);
    }

    /// Counts directory blocks that were written, or freed before.
    pub fn sub_dirty_dentries(&self, blocks: u64) {
        self.pressure.count_dentries((blocks as i64).wrapping_neg(), &self.store, &self.segments);
    }
}
