//! When a checkpoint or a cleaning is due.
//!
//! The rule that must never break: dirty blocks fit into the free segments, so that a checkpoint can always be written.
//! Users' data leaves that much free ([`f2fs_segment::Class`]); nodes and directory blocks become dirty without asking,
//! so each operation asks [`Balance::need`] before it begins.

use f2fs_segment::{Class, SegmentManager};

use crate::Volume;
use crate::kept_sections::{KeptSections, MARGIN};

/// The work that a volume needs before the next operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Nothing.
    Nothing,
    /// A checkpoint, or runs moved out of the way of writes, by who [attends](Balance::attend). [Call](Balance::call)
    /// them.
    Attendance,
    /// A checkpoint: many dirty nodes, segments that wait for one to become free, or a journal that fills.
    Checkpoint,
    /// Runs moved out of the way of writes ([`Cleaning::preclean`](crate::Cleaning::preclean)), and a checkpoint.
    Preclean,
    /// One section emptied beside operations ([`Cleaning::step_ahead`](crate::Cleaning::step_ahead)): soon there will be
    /// few.
    CleaningStep,
    /// A cleaning ([`Cleaning::clean_until`](crate::Cleaning::clean_until)): few free segments, and none that only wait.
    Cleaning,
}

/// Free segments beyond those last sections, from which on a checkpoint is due if as many were written as there are: most
/// of it elsewhere before, where there will be holes. Without it logs would take the free segments meanwhile.
const BESIDE: u32 = 32;
/// As many have to be written at least.
const FEWEST: u32 = 2;

/// What a volume needs so that it can go on: [`Volume::balance`].
#[derive(Clone, Copy, Debug)]
pub struct Balance<'a>(pub(crate) &'a Volume);

impl Balance<'_> {
    /// Waits a moment, if operations change nodes faster than the checkpoint that is being written can follow. Cheap;
    /// called before each operation that changes something, with nothing locked.
    pub fn keep_pace(self) {
        self.0.brake.wait();
    }

    /// Says that somebody does what is due when [called](Self::call), or, with false, does no more. Meanwhile operations
    /// do it only when they cannot go on without.
    pub fn attend(self, does: bool) {
        self.0.attendance.change(does);
    }

    /// Something is due: whether to wake who attends. True once until they take the call back ([`needs_beside`]).
    ///
    /// [`needs_beside`]: Self::needs_beside
    #[must_use]
    pub fn call(self) -> bool {
        self.0.attendance.call()
    }

    /// The work that is left to who attends. Takes the [call](Self::call) back.
    #[must_use]
    pub fn needs_beside(self) -> Need {
        self.0.attendance.answer();
        self.needs_in_turn()
    }

    /// The work that should be done before the next operation. Cheap; ask it before each one, with nothing locked.
    #[must_use]
    pub fn need(self) -> Need {
        self.need_if(self.0.pressure.has_many_nodes(&self.0.store))
    }

    fn need_if(self, many_nodes: bool) -> Need {
        match self.needs_with(many_nodes) {
            // One is being written. Blocks that become dirty meanwhile are left to the next one, as long as there is
            // room and memory for them.
            Need::Checkpoint if self.0.epochs.is_taken() && self.may_go_on() => Need::Nothing,
            Need::Checkpoint | Need::Preclean if self.is_left_to_who_attends() => Need::Attendance,
            need => need,
        }
    }

    /// Whether there is room and memory for operations to go on although a checkpoint is due.
    fn may_go_on(self) -> bool {
        let Ok(segments) = self.0.segments.manager() else { return true };
        segments.free_sections() > segments.floor(Class::User) + MARGIN && self.0.pressure.may_go_on(&self.0.store)
    }

    /// Whether a checkpoint that is due can wait for somebody who attends.
    fn is_left_to_who_attends(self) -> bool {
        self.0.attendance.is_on() && self.may_go_on() && !self.0.attached_journal.is_nearly_full()
    }

    /// The same for whoever has the turn to write a checkpoint, or attends: it looks at the nodes of all processors.
    pub(crate) fn needs_in_turn(self) -> Need {
        self.needs_with(self.0.pressure.has_many_nodes_in_all(&self.0.store))
    }

    fn needs_with(self, many_nodes: bool) -> Need {
        if self.0.roll_forward.is_recovering() {
            return Need::Nothing;
        }
        if many_nodes || self.0.attached_journal.is_due() {
            return Need::Checkpoint;
        }
        let Ok(segments) = self.0.segments.manager() else { return Need::Nothing };
        // Dirty blocks must always fit into free segments, or the next checkpoint cannot be written.
        let (free, last) = (segments.free_sections(), segments.floor(Class::User) + MARGIN);
        if free > last {
            return if self.0.precleaner.is_due(segments) {
                Need::Preclean
            } else if self.is_checkpoint_worth_it(segments, free, last) {
                Need::Checkpoint
            } else {
                self.need_ahead(segments, free, last)
            };
        }
        if segments.dirty_sections() > MARGIN || segments.prefree_segments() > 0 {
            return Need::Checkpoint;
        }
        if self.0.writes_into_holes() && self.has_written(segments, FEWEST) {
            return Need::Checkpoint;
        }
        // It has its room, and is done soon.
        if self.0.victims.has_begun() {
            return Need::CleaningStep;
        }
        // A section more than the last cleaning could gain, if that fell short.
        let worth = u64::from(segments.section_blocks());
        let may_help = self.0.pressure.cleaning_may_help(worth, &self.0.space, segments);
        if may_help { Need::Cleaning } else { Need::Nothing }
    }

    /// Whether there is little room beyond the last sections, and a checkpoint makes holes that logs write into. Where they
    /// do not, sections are [emptied ahead](Self::need_ahead).
    fn is_checkpoint_worth_it(self, segments: &SegmentManager, free: u32, last: u32) -> bool {
        let most = BESIDE.div_ceil(segments.section_segments()).min(segments.reserved_sections());
        if free > last.saturating_add(most) || !self.0.writes_into_holes() {
            return false;
        }
        self.has_written(segments, ((free - last) * segments.section_segments()).max(FEWEST))
    }

    /// Whether more than so many segments of data were written since the last checkpoint.
    fn has_written(self, segments: &SegmentManager, count: u32) -> bool {
        !self.0.blocks_written.is_at_most(segments.blocks_in(count))
    }

    /// What is needed while there is room, so that it stays: `last` free sections are the least with which operations may
    /// go on. As many sections are emptied as are taken, and a checkpoint frees them when most of the room is used up.
    /// More room than the reserve can be out of reach of any cleaning.
    fn need_ahead(self, segments: &SegmentManager, free: u32, last: u32) -> Need {
        let goal = last.saturating_add(self.ahead()).min(segments.reserved_sections() + segments.dirty_sections());
        if free > goal {
            return Need::Nothing;
        }
        let emptied = segments.prefree_segments() / segments.section_segments();
        if free + emptied + self.0.pressure.emptied_of_nodes(self.0.epoch()) <= goal {
            let may_help = self.0.victims.has_begun() || self.0.pressure.step_may_help(free);
            return if may_help { Need::CleaningStep } else { Need::Nothing };
        }
        if free <= last + ((goal - last) / 4).max(1) { Need::Checkpoint } else { Need::Nothing }
    }

    /// Free sections beyond the last ones that operations keep by emptying others: 0 on a volume where logs write into
    /// holes, and on one where so few sections are kept from users that these could be out of reach.
    pub(crate) fn ahead(self) -> u32 {
        let Ok(segments) = self.0.segments.manager() else { return 0 };
        if !self.0.zoning.is_zoned() {
            return 0;
        }
        KeptSections::new(&self.0.geometry, segments.overprovision_segments()).ahead(self.0.lanes.slots())
    }

    /// Free segments that a cleaning should aim at; 0 for a volume that is open for reading.
    #[must_use]
    pub fn cleaning_goal(self) -> u32 {
        let Ok(segments) = self.0.segments.manager() else { return 0 };
        let least = segments.floor(Class::User) + 2 * MARGIN;
        let most = match self.ahead() {
            0 => segments.reserved_sections(),
            // Beyond that operations clean ahead.
            ahead => segments.reserved_sections().min(least - MARGIN + ahead),
        };
        least.max(most) * segments.section_segments()
    }

    /// Whether a checkpoint or a cleaning would make room for an operation that found none.
    #[must_use]
    pub fn reclaim_may_help(self) -> bool {
        !self.0.roll_forward.is_recovering()
            && (self.0.segments.free().1 > 0 || self.0.store.been_listed() > 0 || self.cleaning_may_help())
    }

    /// Whether NIDs are freed by the next checkpoint, or by the one that is being written.
    #[must_use]
    pub fn checkpoint_frees_nids(self) -> bool {
        self.0.pressure.has_freed_nodes(self.0.epoch(), self.0.epochs.is_taken())
    }

    /// Whether a cleaning alone can gain anything that the last one could not.
    fn cleaning_may_help(self) -> bool {
        let manager = self.0.segments.manager();
        manager.is_ok_and(|segments| {
            self.0.pressure.holes_may_be_new(self.0.written.read().user_blocks)
                || self.0.pressure.cleaning_may_help(1, &self.0.space, segments)
        })
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

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
