//! When a checkpoint or a cleaning is due.
//!
//! The rule that must never break: what is dirty fits into the segments that are free, so that a checkpoint can always be
//! written. Users' data leaves that much free ([`f2fs_segment::Class`]); nodes and directory blocks become dirty without
//! asking, so whoever begins an operation asks [`Volume::need`] first.

use f2fs_format::Nid;
use f2fs_segment::Class;
use f2fs_sync::atomic::Ordering;

use crate::Volume;

/// What a volume needs before the next operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Nothing.
    Nothing,
    /// A checkpoint: many dirty nodes, or segments that wait for one to become free.
    Checkpoint,
    /// Runs moved out of the way of writes ([`Volume::preclean_step`]), and a checkpoint.
    Preclean,
    /// A cleaning ([`Volume::clean_with`]): few free segments, and none that only wait.
    Cleaning,
}

/// Free sections beyond the floor at which something is done.
pub(crate) const MARGIN: u32 = 2;

impl Volume {
    /// What should be done before the next operation. Cheap; ask it before each one, with nothing locked.
    #[must_use]
    pub fn need(&self, hint: Nid) -> Need {
        if self.is_recovering() {
            return Need::Nothing;
        }
        if self.store.is_crowded(hint, self.dirty_limit) && self.store.dirty() > self.dirty_limit {
            return Need::Checkpoint;
        }
        let Ok(segments) = self.segments.manager() else { return Need::Nothing };
        // What is dirty must always fit into free segments, or the next checkpoint cannot be written.
        if segments.free_sections() > segments.floor(Class::User) + MARGIN {
            let precleans = self.planner.is_some() && segments.need_ssr() && self.stock.load(Ordering::Relaxed) <= 0;
            return if precleans { Need::Preclean } else { Need::Nothing };
        }
        if segments.dirty_sections() > MARGIN || segments.prefree_segments() > 0 {
            return Need::Checkpoint;
        }
        if self.cleaning_may_help() { Need::Cleaning } else { Need::Nothing }
    }

    /// Free segments that a cleaning should aim at; 0 for a volume that is open for reading.
    #[must_use]
    pub fn cleaning_goal(&self) -> u32 {
        let Ok(segments) = self.segments.manager() else { return 0 };
        let floor = (segments.floor(Class::User) + 2 * MARGIN) * self.geometry.segs_per_sec;
        floor.max(segments.reserved_segments())
    }

    /// Whether a checkpoint or a cleaning would make room for an operation that found none.
    #[must_use]
    pub fn reclaim_may_help(&self) -> bool {
        !self.is_recovering() && (self.segments.free().1 > 0 || self.store.dirty() > 0 || self.cleaning_may_help())
    }

    fn cleaning_may_help(&self) -> bool {
        self.space.blocks() < self.futile.load(Ordering::Relaxed)
    }

    /// Counts directory blocks that wait for the checkpoint.
    pub fn add_dirty_dentries(&self, blocks: u64) {
        self.dirty_dentries.fetch_add(blocks, Ordering::Relaxed);
        self.update_pressure();
    }

    /// Counts directory blocks that were written, or freed before.
    pub fn sub_dirty_dentries(&self, blocks: u64) {
        let _ = self
            .dirty_dentries
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| Some(count.saturating_sub(blocks)));
        self.update_pressure();
    }

    /// Tells the segment manager how many blocks the next checkpoint has to write.
    pub(crate) fn update_pressure(&self) {
        let nodes = self.store.dirty().min(u64::from(u32::MAX)) as u32;
        let dentries = self.dirty_dentries.load(Ordering::Relaxed).min(u64::from(u32::MAX)) as u32;
        if let Ok(segments) = self.segments.manager() {
            segments.set_pressure(nodes, dentries);
        }
    }
}
