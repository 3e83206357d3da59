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

/// Free sections beyond the floor from which on dirty blocks are counted seldom. There are 256 shards of nodes and at most
/// 128 processors: with [`SELDOM`], fewer than 384 x 128 blocks are dirty without being told, which are 96 segments.
const ROOMY_SECTIONS: u32 = 128;
/// How many blocks become dirty in a part before all parts are added up, while there is much room.
const SELDOM: u64 = 128;
/// How many nodes become dirty in a shard before all shards are added up, while there is not.
const OFTEN: u64 = 8;

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
        let here = self.dirty_dentries.add(blocks as i64);
        self.look_at_pressure(here.unsigned_abs(), 1);
    }

    /// Counts directory blocks that were written, or freed before.
    pub fn sub_dirty_dentries(&self, blocks: u64) {
        let here = self.dirty_dentries.add((blocks as i64).wrapping_neg());
        self.look_at_pressure(here.unsigned_abs(), 1);
    }

    /// A node became dirty, one of so many in its shard.
    pub(crate) fn node_became_dirty(&self, in_shard: u64) {
        self.look_at_pressure(in_shard, OFTEN);
    }

    /// Tells the segment manager how much is dirty, if it is time to. `counted` is the number of dirty blocks in a part of all:
    /// a shard of the nodes, or what one processor counted of the directory blocks.
    ///
    /// To add up what is dirty reads a line of every processor, and to tell it writes one that all read. So it is done
    /// seldom while many sections are free: less is dirty without being told than fits into those that make the difference.
    fn look_at_pressure(&self, counted: u64, often: u64) {
        const { assert!(SELDOM.is_multiple_of(OFTEN)) };
        let is_roomy = || self.segments.manager().is_ok_and(|segments| segments.is_roomy(ROOMY_SECTIONS));
        // Whether there is much room is a calculation of its own, and left out where it would change nothing.
        if counted.is_multiple_of(often) && (counted.is_multiple_of(SELDOM) || !is_roomy()) {
            self.update_pressure();
        }
    }

    /// Tells the segment manager how many blocks the next checkpoint has to write.
    pub(crate) fn update_pressure(&self) {
        let blocks = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        let nodes = blocks(self.store.dirty());
        let dentries = blocks(u64::try_from(self.dirty_dentries.sum()).unwrap_or(0));
        if let Ok(segments) = self.segments.manager() {
            segments.set_pressure(nodes, dentries);
        }
    }
}
